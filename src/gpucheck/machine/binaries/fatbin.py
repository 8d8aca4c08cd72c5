"""The GPU code in a library: the headers of the fat binaries that nvcc embeds.

A section contains a sequence of containers, each a header and its entries. An entry has a header of
its own, which is never compressed, and the code. Only headers are read. The layout is not
documented. It was derived from files that nvcc made for known targets, and compared with the output
of ``cuobjdump`` for these files and for published wheels.
"""

import struct
from collections.abc import Iterable

import msgspec

from gpucheck.facts import Answer
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.binaries.elf import Elf
from gpucheck.machine.binaries.elf_symbols import sections

_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
"""The sections of code from an ordinary build, and of code from the device linker."""
_MAGIC = 0xBA55ED50  # seen in files that nvcc made, like all numbers of this module
_CONTAINER = struct.Struct("<IHHQ")
"""Magic number, version, bytes of this header, bytes of all entries."""
_ENTRY = struct.Struct("<HHIQIIIIIIQ")
"""Kind, version, bytes of this header and of the code, compressed size, options, version of the
code, architecture, offset and length of the source name, flags."""
_PTX, _CUBIN = 1, 2  # seen likewise
_OF_ONE_CHIP, _OF_FAMILY = 1 << 20, 1 << 21
"""Flags of the targets whose names end in ``a`` and ``f``."""
_BLOCK = 512  # bytes of a read; chosen: more than a header, little beside the code in between
_ALIGNMENT = 8  # bytes, as seen in ELF files; windows.py has that of DLLs
_MOST_PADDING = 4096
"""Bytes of zeros between containers: chosen; on aarch64 CUDA 12.6 and newer fill up to 256."""
_LARGEST_ARCHITECTURE = 999  # sm_ and three digits (sm_121): a larger number is damage
MOST_ENTRIES = 2048
"""Maximum number of entries of one file; a large one has a few hundred."""


class DeviceCode(msgspec.Struct, frozen=True):
    """The code in a file: ``sm_80`` (cubins) and ``compute_90`` (PTX), in order."""

    codes: tuple[str, ...]
    complete: bool
    """Whether every header was read; if there are too many, only the first ones are."""
    headers: int
    """How many headers were read."""


def device_code(host: Host, elf: Elf, most: int = MOST_ENTRIES) -> Answer[DeviceCode]:
    """Return the GPU code of a library; no codes if it has none.

    Args:
        host: the machine.
        elf: the library.
        most: the maximum number of headers that are read, of containers and of entries.
    """
    found = sections(host, elf)
    if found.value is None:
        return Answer(None, found.source, found.problem, found.missing)
    places = [(name, *found.value.get(name, (0, 0))) for name in _SECTIONS]
    return device_code_at(host, elf.path, places, most, _ALIGNMENT)


def device_code_at(
    host: Host, path: str, places: Iterable[tuple[str, int, int]], most: int, alignment: int
) -> Answer[DeviceCode]:
    """Return the GPU code in parts of a file.

    Args:
        host: the machine.
        path: the file.
        places: name, offset and length of each part.
        most: the maximum number of headers that are read, of containers and of entries.
        alignment: of the start of a container within its part, in bytes.
    """
    walk = _Walk(host, path, most, alignment)
    for name, start, length in places:
        if length and not walk.section(start, start + length):
            return Answer(None, path, say("the headers in {section} make no sense", section=name))
    codes = tuple(sorted(walk.codes, key=_place))
    return Answer(DeviceCode(codes, walk.left > 0, most - walk.left), path)


class _Walk:
    """Goes from header to header; a block is read at once, because headers are often close."""

    def __init__(self, host: Host, path: str, most: int, alignment: int) -> None:
        self._host = host
        self._path = path
        self._alignment = alignment
        self._block = b""
        self._block_at = 0
        self.left = most
        self.codes: set[str] = set()

    def section(self, at: int, end: int) -> bool:
        """Read the containers of a section; False if its content is not a container."""
        start = ended = at
        while at + _CONTAINER.size <= end and self.left > 0:
            data = self._at(at, _CONTAINER.size)
            if len(data) < _CONTAINER.size:
                return False
            magic, _version, header, length = _CONTAINER.unpack(data)
            if magic == 0 and start < at < ended + _MOST_PADDING:
                at += self._alignment
                continue
            self.left -= 1
            if magic != _MAGIC or header < _CONTAINER.size or at + header + length > end:
                return False
            if not self._entries(at + header, at + header + length):
                return False
            ended = at + header + length
            at = ended + -(ended - start) % self._alignment
        return True

    def _entries(self, at: int, end: int) -> bool:
        while at + _ENTRY.size <= end and self.left > 0:
            self.left -= 1
            data = self._at(at, _ENTRY.size)
            if len(data) < _ENTRY.size:
                return False
            kind, _, header, length, *_rest, architecture, _, _, flags = _ENTRY.unpack(data)
            if header < _ENTRY.size or at + header + length > end:
                return False
            self._note(kind, architecture, flags)
            at += header + length
        return True

    def _note(self, kind: int, architecture: int, flags: int) -> None:
        """Note a code that can run; intermediate code for the device linker cannot."""
        word = {_PTX: "compute", _CUBIN: "sm"}.get(kind)
        if word is None or not 0 < architecture <= _LARGEST_ARCHITECTURE:
            return
        suffix = "a" if flags & _OF_ONE_CHIP else "f" if flags & _OF_FAMILY else ""
        self.codes.add(f"{word}_{architecture}{suffix}")

    def _at(self, start: int, length: int) -> bytes:
        if not self._block_at <= start <= self._block_at + len(self._block) - length:
            read = self._host.read_ranges(self._path, [(start, max(length, _BLOCK))])
            self._block_at, self._block = start, (read.value or [b""])[0]
        inside = start - self._block_at
        return self._block[inside : inside + length]


def _place(code: str) -> tuple[bool, int, str]:
    """Sort cubins before PTX, each by its number."""
    word, _, target = code.partition("_")
    return word == "compute", int(target.rstrip("af")), target
