"""The host compilers on PATH and their versions."""

import re

import msgspec

from gpucheck.facts import Answer
from gpucheck.machine import Host
from gpucheck.machine.paths import name

_COMMANDS = ("gcc", "g++", "cc", "c++", "clang", "clang++")
_NUMBERED = r"(?:^|-)(?:gcc|g\+\+|clang)-([0-9]+(?:\.[0-9]+)*)$"
_VERSION = r"[0-9]{1,3}(?:\.[0-9]{1,4}){0,3}"
_LIMIT = 2.0


class FoundCompiler(msgspec.Struct, frozen=True):
    """A command on PATH, the file behind it and its version."""

    command: str
    path: str
    version: Answer[str]


def compilers(host: Host) -> list[FoundCompiler]:
    """Return the compilers; run one only if the name of its file has no version."""
    found: list[FoundCompiler] = []
    by_file: dict[str, Answer[str]] = {}
    for command in _COMMANDS:
        path = host.which(command).value
        if path is None:
            continue
        real = host.real_path(path).value or path
        if real not in by_file:
            by_file[real] = _version(host, path, real)
        found.append(FoundCompiler(command, path, by_file[real]))
    return found


def _version(host: Host, path: str, real: str) -> Answer[str]:
    numbered = re.search(_NUMBERED, name(real))
    if numbered:
        return Answer(numbered.group(1), real)
    clang = "clang" in name(real)
    # gcc before 7 knows only the second option; newer releases answer the first in full.
    options = ["-dumpversion"] if clang else ["-dumpfullversion", "-dumpversion"]
    ran = host.run([path, *options], timeout=_LIMIT)
    return ran.map(lambda finished: _only_version(finished.out) if finished.status == 0 else None)


def _only_version(text: str) -> str | None:
    match = re.fullmatch(_VERSION, text.strip())
    return match.group() if match else None
