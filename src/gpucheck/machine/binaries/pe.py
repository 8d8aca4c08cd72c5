"""Reads 64-bit PE files (``.dll``, ``.pyd``) without loading them.

Only the relevant ranges are read, through the host. The content of a file is not trusted: every
count and length is bounded, and a malformed table gives a problem in the answer. Delay-loaded
imports are left out, because they may be absent.
"""

import struct
from collections.abc import Collection, Iterable

import msgspec

from gpucheck.facts import Answer
from gpucheck.facts.base import message_of
from gpucheck.language import say
from gpucheck.machine import Host

_NO_PE, _OTHER_KIND = say("it is not a PE file"), say("it is not a 64-bit PE file")
_HEAD = 4096  # bytes: room for the headers and some 85 sections of 40 bytes; a DLL has about ten
_PE32_PLUS = 0x20B  # the PE format's number for 64 bits
_SECTION = struct.Struct("<8sIIII")
_DESCRIPTOR = struct.Struct("<5I")
_MOST_SECTIONS = 96  # more are refused by the loader of Windows (PE format)
_MOST_LIBRARIES = 256  # damaged tables: chosen far above what a DLL imports
_MOST_SYMBOLS = 1 << 16
"""Maximum number of symbols of one library; their numbers have only 16 bits."""
_LONGEST_LIBRARY = 256  # a file name of Windows has at most 255 characters
_LONGEST_SYMBOL = 4096
"""The compiler writes longer names as hashes."""
_MOST_NAME_BYTES = 32 * 1024 * 1024
"""Maximum size of the names of one table; those of torch_cpu.dll take 5 MB."""
_BY_NUMBER = 1 << 63  # IMAGE_ORDINAL_FLAG64
_EXPORTS, _IMPORTS = 0, 1  # places in the table of directories (PE format)
_EXPORT_HEAD = 40  # bytes of the export directory (PE format)


class PeSection(msgspec.Struct, frozen=True):
    """A part of the file, and the address that it is mapped to."""

    name: str
    address: int
    offset: int
    length: int
    """Bytes in the file; the memory after them is zero."""


class Pe(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the header of a PE file."""

    path: str
    sections: tuple[PeSection, ...]
    exports: tuple[int, int]
    """Address and length of the table; 0 if there is none."""
    imports: tuple[int, int]

    def place(self, address: int) -> tuple[int, int]:
        """Return the file offset of an address, and how many bytes of its section follow.

        Raises:
            ValueError: no section contains it.
        """
        for section in self.sections:
            inside = address - section.address
            if 0 <= inside < section.length:
                return section.offset + inside, section.length - inside
        raise ValueError(say("an address lies outside all sections"))


def read_pe(host: Host, path: str) -> Answer[Pe]:
    """Read the header of a PE file; a problem if it is not a 64-bit PE file."""
    head = host.read_ranges(path, [(0, _HEAD)])
    if head.value is None:
        return Answer(None, path, head.problem, head.missing)
    try:
        return Answer(_head(path, head.value[0]), path)
    except (ValueError, struct.error) as error:
        return Answer(None, path, message_of(error))


def is_none(problem: str) -> bool:
    """Whether a problem of reading a file means that it is not a 64-bit PE file at all."""
    return problem in (_NO_PE, _OTHER_KIND)


def libraries(host: Host, pe: Pe) -> Answer[list[str]]:
    """Return the names of the DLLs that the file needs when it is loaded."""
    try:
        return Answer([name for name, _ in _libraries(host, pe)], pe.path)
    except (ValueError, struct.error) as error:
        return Answer(
            None, pe.path, say("its import table cannot be read: {why}", why=message_of(error))
        )


def imported(host: Host, pe: Pe, wanted: Collection[str]) -> Answer[dict[str, list[str]]]:
    """Return the symbols that the file needs from some libraries, without those by number.

    Args:
        host: the machine.
        pe: the file.
        wanted: names of libraries in lower case; they are the keys of the answer.
    """
    try:
        found: dict[str, list[str]] = {}
        for name, thunks in _libraries(host, pe):
            if name.lower() in wanted:
                found.setdefault(name.lower(), []).extend(_symbols(host, pe, thunks))
        return Answer(found, pe.path)
    except (ValueError, struct.error) as error:
        return Answer(
            None, pe.path, say("its import table cannot be read: {why}", why=message_of(error))
        )


def missing_exports(host: Host, pe: Pe, names: Iterable[str]) -> Answer[set[str]]:
    """Return the names that the file does not export."""
    wanted = {name.encode() for name in names}
    try:
        left = wanted - _exported(host, pe)
    except (ValueError, struct.error) as error:
        return Answer(
            None, pe.path, say("its export table cannot be read: {why}", why=message_of(error))
        )
    return Answer({name.decode("utf-8", "replace") for name in left}, pe.path)


def _head(path: str, head: bytes) -> Pe:
    """Parse the header.

    Raises:
        ValueError: it is not a 64-bit PE file.
        struct.error: it is truncated within its header.
    """
    if not head.startswith(b"MZ"):
        raise ValueError(_NO_PE)
    (start,) = struct.unpack_from("<I", head, 0x3C)
    if head[start : start + 4] != b"PE\0\0":
        raise ValueError(_NO_PE)
    count, optional = struct.unpack_from("<2xH12xH", head, start + 4)
    (magic,) = struct.unpack_from("<H", head, start + 24)
    if magic != _PE32_PLUS:
        raise ValueError(_OTHER_KIND)
    (known,) = struct.unpack_from("<I", head, start + 24 + 108)
    directories = [(0, 0), (0, 0)]
    for at in range(min(known, len(directories))):
        directories[at] = struct.unpack_from("<II", head, start + 24 + 112 + 8 * at)
    sections = []
    for at in range(min(count, _MOST_SECTIONS)):
        row = _SECTION.unpack_from(head, start + 24 + optional + 40 * at)
        name, memory, address, raw, offset = row
        text = name.partition(b"\0")[0].decode("ascii", "replace")
        # The size in the file is rounded up; if the size in memory is 0, the whole part counts.
        sections.append(PeSection(text, address, offset, min(raw, memory) or raw))
    return Pe(
        path=path,
        sections=tuple(sections),
        exports=directories[_EXPORTS],
        imports=directories[_IMPORTS],
    )


def _read(host: Host, pe: Pe, address: int, length: int) -> bytes:
    """Return the bytes at an address, up to the end of its section.

    Raises:
        ValueError: no section contains the address, or the file cannot be read.
    """
    offset, left = pe.place(address)
    answer = host.read_ranges(pe.path, [(offset, min(length, left))])
    if answer.value is None:
        raise ValueError(answer.problem)
    return answer.value[0]


def _libraries(host: Host, pe: Pe) -> list[tuple[str, int]]:
    """Return the libraries of the import table, each with the address of its list of symbols."""
    address, size = pe.imports
    if not address:
        return []
    length = min(size or _MOST_SYMBOLS, _DESCRIPTOR.size * _MOST_LIBRARIES)
    data = _read(host, pe, address, length)
    found: list[tuple[int, int]] = []
    for row in _DESCRIPTOR.iter_unpack(data[: len(data) - len(data) % _DESCRIPTOR.size]):
        names, _, _, name, bound = row
        if not name:
            break
        found.append((pe.place(name)[0], names or bound))
    answer = host.read_ranges(pe.path, [(place, _LONGEST_LIBRARY) for place, _ in found])
    texts = [data.partition(b"\0")[0].decode("ascii", "replace") for data in answer.value or ()]
    return [(text, names) for text, (_, names) in zip(texts, found, strict=False)]


def _symbols(host: Host, pe: Pe, address: int) -> list[str]:
    """Return the names in a list of symbols."""
    data = _read(host, pe, address, 8 * _MOST_SYMBOLS)
    places: list[int] = []
    for (entry,) in struct.iter_unpack("<Q", data[: len(data) - len(data) % 8]):
        if not entry:
            break
        if not entry & _BY_NUMBER:
            places.append(entry + 2)  # skip two bytes, a hint for the search
    else:
        raise ValueError(say("a list has no end"))
    return [name.decode("utf-8", "replace") for name in _names(host, pe, places)]


def _exported(host: Host, pe: Pe) -> set[bytes]:
    """Return the names that the file exports."""
    address, _ = pe.exports
    if not address:
        return set()
    head = _read(host, pe, address, _EXPORT_HEAD)
    count, _, names = struct.unpack_from("<III", head, 24)
    if count > _MOST_SYMBOLS:
        raise ValueError(say("it claims to have too many names"))
    if not count:
        return set()
    table = _read(host, pe, names, 4 * count)
    if len(table) < 4 * count:
        raise ValueError(say("it is cut off"))
    return set(_names(host, pe, [place for (place,) in struct.iter_unpack("<I", table)]))


def _names(host: Host, pe: Pe, places: list[int]) -> list[bytes]:
    """Return the texts at some addresses, which are close together.

    Raises:
        ValueError: they are far apart, or one has no end.
    """
    if not places:
        return []
    first, last = min(places), max(places)
    if last - first > _MOST_NAME_BYTES:
        raise ValueError(say("its names lie too far apart"))
    data = _read(host, pe, first, last - first + _LONGEST_SYMBOL)
    found = []
    left = _MOST_NAME_BYTES
    for place in places:
        start = place - first
        end = data.find(b"\0", start, start + _LONGEST_SYMBOL)
        left -= end - start
        if end < 0 or left < 0:
            raise ValueError(say("a name has no end, or too many names are long"))
        found.append(data[start:end])
    return found
