"""Writes a machine down as a folder, from what a recording door noted (``collect --record``)."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpucheck.host import RecordingHost
from gpucheck.host.recorded import LINK
from gpucheck.probes.environment import Environment
from gpucheck.snapshot import Snapshot

_KINDS = ("files", "links", "stat", "open", "space", "which", "problems", "commands", "answers")


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
        text = json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False)
        (folder / name).write_text(redact(text) + "\n", encoding="utf-8")
    for path, data in merged["files"].items():
        _write_file(folder, redact(path), redact(data.decode("utf-8", "surrogateescape")))
    for path, target in merged["links"].items():
        _write_file(folder, redact(path) + LINK, redact(target))
    (folder / "README.md").write_text(
        f"# A recorded machine\n\nRecorded by gpucheck {snapshot.versions.version} with tables "
        f"{snapshot.versions.tables} on {snapshot.taken}. Say here what is wrong with it and "
        "check expect.json by hand.\n",
        encoding="utf-8",
    )


def _write_file(folder: Path, path: str, text: str) -> None:
    place = folder / "files" / path.replace("\\", "/").replace(":", "%3A").lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text.encode("utf-8", "surrogateescape"))
