"""Builds small recorded machines for tests."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpucheck.machine import RecordedHost
from gpucheck.machine.record_folder import place_in_folder


def machine(  # one keyword per file of a recorded machine
    folder: Path,
    *,
    files: Mapping[str, str | bytes] | None = None,
    links: Mapping[str, str] | None = None,
    host: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    commands: Mapping[str, Mapping[str, Any]] | None = None,
    answers: Mapping[str, Mapping[str, Any]] | None = None,
) -> RecordedHost:
    """Write a recorded machine and return its door.

    ``host`` is the content of host.json (``identity`` defaults to Linux on x86_64), ``answers``
    maps ``nvml.json``, ``cuinit.json`` and ``worker.json`` to their contents.
    """
    record = {"identity": {"os": "linux", "machine": "x86_64", "release": "6.8.0"}, **(host or {})}
    _write(folder / "host.json", json.dumps(record))
    _write(folder / "env.json", json.dumps(dict(env or {})))
    _write(folder / "commands.json", json.dumps({k: dict(v) for k, v in (commands or {}).items()}))
    for name, content in (answers or {}).items():
        _write(folder / name, json.dumps(content))
    for path, text in (files or {}).items():
        _write(folder / place_in_folder(path), text)
    for path, target in (links or {}).items():
        _write(folder / place_in_folder(path, link=True), target)
    return RecordedHost(folder)


def _write(file: Path, text: str | bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)
