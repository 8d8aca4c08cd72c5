"""Writes a machine down as a folder, from what a recording door noted (``collect --record``)."""

import json
import posixpath
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpucheck.host import RecordingHost
from gpucheck.host.recorded import LINK
from gpucheck.probes.environment import Environment
from gpucheck.snapshot import Snapshot

_KINDS = ("files", "links", "stat", "open", "space", "which", "problems", "commands", "answers")


_LINES_KEPT = {
    "/dev/kmsg": ("NVRM", "SXid", "ut of memory"),
    "/proc/self/mountinfo": (" / / ", "nvidia", "libcuda", "enroot"),
    "/proc/cmdline": ("nvidia", "nouveau"),
}


class RecordError(Exception):
    """The folder cannot be written; the message is one sentence for the user."""


def write(
    folder: Path,
    host: RecordingHost,
    log: Sequence[Mapping[str, Any]],
    snapshot: Snapshot,
    *,
    expect: Mapping[str, Any],
    redact: Callable[[str], str],
) -> None:
    """Write the machine; ``redact`` is applied to every text and every path.

    Only the environment variables of the allow-list are written.

    Raises:
        RecordError: the folder exists and is not empty, or cannot be written.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RecordError(f"{folder} is there already and is not an empty folder")
    merged: dict[str, dict[str, Any]] = {kind: {} for kind in _KINDS}
    for entry in log:
        for kind in _KINDS:
            merged[kind].update(entry.get(kind, {}))
    try:
        _write_all(folder, host, merged, snapshot, expect, redact)
    except OSError as error:
        raise RecordError(f"{folder} cannot be written: {error.strerror or error}") from error


def _write_all(
    folder: Path,
    host: RecordingHost,
    merged: Mapping[str, Mapping[str, Any]],
    snapshot: Snapshot,
    expect: Mapping[str, Any],
    redact: Callable[[str], str],
) -> None:
    import msgspec  # noqa: PLC0415  # its encoder of structs only

    record = {
        "identity": msgspec.to_builtins(host.identity()),
        "limits": msgspec.to_builtins(host.limits()),
        **{kind: merged[kind] for kind in ("stat", "open", "space", "which", "problems")},
    }
    environment = snapshot.get(Environment).variables or {}
    documents: dict[str, object] = {
        "host.json": record,
        "env.json": environment,
        "commands.json": merged["commands"],
        "expect.json": expect,
        **merged["answers"],
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in documents.items():
        text = json.dumps(_each_text(content, redact), indent=1, sort_keys=True)
        (folder / name).write_text(text + "\n", encoding="utf-8")
    for path, data in merged["files"].items():
        text = _what_matters(path, data.decode("utf-8", "surrogateescape"))
        public = redact(text)
        # A binary file whose offsets would no longer fit is left out rather than told.
        if "\0" not in text or len(public) == len(text):
            _write_file(folder, redact(path), public)
    for path, target in merged["links"].items():
        _write_file(folder, redact(path) + LINK, redact(target))
    (folder / "README.md").write_text(
        f"# A recorded machine\n\nRecorded by gpucheck {snapshot.versions.version} with tables "
        f"{snapshot.versions.tables} on {snapshot.taken}. Say here what is wrong with it and "
        "check expect.json by hand.\n",
        encoding="utf-8",
    )


def _each_text(value: Any, change: Callable[[str], str]) -> Any:  # noqa: ANN401  # JSON-like data
    """Apply ``change`` to every text and every key, before JSON escapes them."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _each_text(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_each_text(item, change) for item in value]
    return value


def _what_matters(path: str, text: str) -> str:
    """Return only the lines that a probe looks for, of files that tell much else of a machine."""
    if path == "/etc/group":
        return "".join(f"{line.rpartition(':')[0]}:\n" for line in text.splitlines())
    words = _LINES_KEPT.get(path)
    if words is None:
        return text
    return "".join(
        line for line in text.splitlines(keepends=True) if any(word in line for word in words)
    )


def _write_file(folder: Path, path: str, text: str) -> None:
    # A path of the machine may climb (PYTHONPATH=/a/../..): none may leave the folder.
    inside = posixpath.normpath("/" + path.replace("\\", "/").replace(":", "%3A"))
    place = folder / "files" / inside.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text.encode("utf-8", "surrogateescape"))
