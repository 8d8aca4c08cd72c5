"""Writes a machine to a folder, from what a recording host noted (``collect --record``)."""

import base64
import json
import os
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpucheck.facts.environment import Environment
from gpucheck.facts.snapshot import Snapshot
from gpucheck.language import say
from gpucheck.machine import RecordingHost
from gpucheck.machine.record_folder import place_in_folder

_OF_HOST = ("stat", "open", "space", "which", "problems", "listings", "sha256")
_KINDS = (*_OF_HOST, "files", "links", "commands", "answers")


_LINES_KEPT = {
    "/dev/kmsg": ("NVRM", "SXid", "ut of memory"),
    "/proc/self/mountinfo": (" / / ", "nvidia", "libcuda", "enroot"),
    "/proc/cmdline": ("nvidia", "nouveau"),
}


_WITH_LOGINS = ("pip.conf", "pip.ini", "uv.toml", ".condarc")
"""Ends of files that may hold passwords and tokens: they are not written."""

_PATH = re.compile(rb"(?<=[\0:=])/[\x21-\x7e]{1,255}/[\x21-\x7e]{1,4096}")
"""A path in a binary file: between NUL bytes or colons, with at least two slashes."""


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
    merged: dict[str, dict[str, Any]] = {kind: {} for kind in (*_KINDS, "ranges")}
    for entry in log:
        for kind in _KINDS:
            merged[kind].update(entry.get(kind, {}))
        for path, parts in entry.get("ranges", {}).items():
            merged["ranges"].setdefault(path, []).extend(parts)
    try:
        if os.path.exists(folder) and (not os.path.isdir(folder) or os.listdir(folder)):  # noqa: PTH110, PTH112, PTH208  # Path's may raise
            raise RecordError(
                say("{folder} is there already and is not an empty folder", folder=folder)
            )
        _write_all(folder, host, merged, snapshot, expect, redact)
    except OSError as error:
        raise RecordError(
            say(
                "{folder} cannot be written: {strerror}",
                folder=folder,
                strerror=error.strerror or error,
            )
        ) from error


def _write_all(
    folder: Path,
    host: RecordingHost,
    merged: Mapping[str, Mapping[str, Any]],
    snapshot: Snapshot,
    expect: Mapping[str, Any],
    redact: Callable[[str], str],
) -> None:
    import msgspec  # noqa: PLC0415  # only its encoder of structs

    record = {
        "identity": msgspec.to_builtins(host.identity()),
        "limits": msgspec.to_builtins(host.limits()),
        **{kind: merged[kind] for kind in _OF_HOST},
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
    if merged["ranges"]:
        ranges = json.dumps(_public_ranges(merged["ranges"], redact), indent=1, sort_keys=True)
        (folder / "ranges.json").write_text(ranges + "\n", encoding="utf-8")
    for name, content in documents.items():
        text = json.dumps(_each_text(content, redact), indent=1, sort_keys=True)
        (folder / name).write_text(text + "\n", encoding="utf-8")
    for path, data in merged["files"].items():
        if path.endswith(_WITH_LOGINS):
            continue
        text = _what_matters(path, data.decode("utf-8", "surrogateescape"))
        public = redact(text)
        # A binary file whose offsets would be wrong after redaction is left out.
        if "\0" not in text or len(public) == len(text):
            _write_file(folder, redact(path), public)
    for path, target in merged["links"].items():
        if posixpath.normpath(path) == target:
            continue  # a path with .. (a/../b) and not a link
        _write_file(folder, redact(path), redact(target), link=True)
    (folder / "README.md").write_text(
        f"# A recorded machine\n\nRecorded by gpucheck {snapshot.versions.version} with tables "
        f"{snapshot.versions.tables} on {snapshot.taken}. Say here what is wrong with it and "
        "check expect.json by hand.\n",
        encoding="utf-8",
    )


def _public_ranges(
    ranges: Mapping[str, Sequence[tuple[int, bytes]]], redact: Callable[[str], str]
) -> dict[str, list[tuple[int, str]]]:
    """Return the parts of large files in base64; in them only paths can identify somebody."""

    def public(match: re.Match[bytes]) -> bytes:
        path = match[0]
        # The offsets of everything after it must not change.
        return (
            redact(path.decode("ascii"))
            .encode("ascii", "replace")[: len(path)]
            .ljust(len(path), b"\0")
        )

    return {
        redact(path): [
            (start, base64.b64encode(_PATH.sub(public, data)).decode())
            for start, data in sorted({(start, data) for start, data in parts})
        ]
        for path, parts in ranges.items()
    }


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
    """Return only the lines that a probe needs, from files that reveal much else of a machine."""
    if path == "/etc/group":
        return "".join(f"{line.rpartition(':')[0]}:\n" for line in text.splitlines())
    words = _LINES_KEPT.get(path)
    if words is None:
        return text
    return "".join(
        line for line in text.splitlines(keepends=True) if any(word in line for word in words)
    )


def _write_file(folder: Path, path: str, text: str, *, link: bool = False) -> None:
    # A path of the machine may contain .. (PYTHONPATH=/a/../..): none may leave the folder.
    inside = posixpath.normpath("/" + path.replace("\\", "/"))
    place = folder / place_in_folder(inside, link=link)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(text.encode("utf-8", "surrogateescape"))
