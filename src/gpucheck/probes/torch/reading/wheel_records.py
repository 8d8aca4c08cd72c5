"""Compares the libraries in the RECORD files of wheels with the files on disk."""

import re

import msgspec

from gpucheck.facts import Answer
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.nvidia_wheels import State
from gpucheck.machine import Host
from gpucheck.machine.paths import join
from gpucheck.probes.torch.reading.dist_info import DistInfo

_RECORD_LIMIT = 8 * 1024 * 1024
"""torch's own RECORD has 1.5 MB."""
_LIBRARY = re.compile(r"\.(?:so(?:\.[0-9.]{1,40})?|dll|pyd)\Z")
_ENDINGS = (".so", ".dll", ".pyd")
_MOST_LIBRARIES = 2000  # chosen: of one wheel; torch's own has some dozens


class Recorded(msgspec.Struct, frozen=True):
    """A library that a distribution installed."""

    info: DistInfo
    path: str
    size: int
    """Bytes, from the RECORD."""
    hash: str = ""
    """In the form of the RECORD: ``sha256=`` and base64."""


def recorded_libraries(host: Host, info: DistInfo) -> Answer[list[Recorded]]:
    """Return the libraries with their sizes that the RECORD of a distribution names.

    Files outside the folder that the distribution was installed into are left out.
    """
    return host.read(join(info.path, "RECORD"), _RECORD_LIMIT).map(
        lambda text: [
            Recorded(info, join(info.entry, *names), size, hashed)
            for names, size, hashed in _libraries(text)[:_MOST_LIBRARIES]
        ]
    )


def _libraries(text: str) -> list[tuple[list[str], int, str]]:
    """Return the parts of each library's path, its size and hash.

    Lines without a size are left out.
    """
    found = []
    for line in _lines_with(text, _ENDINGS):
        fields = line.rstrip("\r").rsplit(",", 2)
        size = whole_number(fields[2]) if len(fields) == 3 else None  # noqa: PLR2004  # path, hash, size
        if size is None:
            continue
        names = fields[0].strip('"').split("/")
        if _LIBRARY.search(names[-1]) and names[0] and ".." not in names:
            found.append((names, size, fields[1]))
    return found


def _lines_with(text: str, literals: tuple[str, ...]) -> list[str]:
    """Return the lines that contain one of the literals: about a hundred of torch's 15,000."""
    found: dict[str, None] = {}
    for literal in literals:
        at = text.find(literal)
        while at >= 0:
            end = text.find("\n", at)
            end = end if end >= 0 else len(text)
            found[text[text.rfind("\n", 0, at) + 1 : end]] = None
            at = text.find(literal, end)
    return list(found)


def damage(host: Host, path: str, size: int) -> State:
    """Return what is wrong with a library whose size does not match the RECORD of its wheel.

    The library may still be complete: somebody may have stripped it or replaced it by another.
    """
    if not size:
        return "cut-off"
    from gpucheck.machine.binaries.elf import read_elf  # noqa: PLC0415  # few machines need it

    elf = read_elf(host, path)
    if elf.value is None:
        return "cut-off" if elf.problem == "file too short" else "changed"
    return "cut-off" if elf.value.cut_off else "changed"
