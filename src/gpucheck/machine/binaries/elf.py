"""The header of an ELF file, its dynamic section and its version tables, read without loading it.

Only the relevant ranges are read, through the host. The content of a file is not trusted: every
count and length is bounded, and a malformed part gives a problem in the answer or an empty table.
"""

import struct
from collections.abc import Iterable

import msgspec

from gpucheck.facts import Answer
from gpucheck.facts.base import message_of
from gpucheck.machine import Host

_MAGIC = b"\x7fELF"
_MAGIC_64 = b"\x7fELF\x02\x01"
"""The magic number of a 64-bit, little-endian file."""
_TOO_SHORT, _INVALID = "file too short", "invalid ELF header"
"""The error messages of the dynamic loader."""
# One read gets the header and the table of segments: 15 of them, the most that were seen (below),
# end at byte 904. A table elsewhere is read by itself.
_HEAD = 4096
_HEAD_SIZE = 64
_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_ENTRY = struct.Struct("<qQ")
_VERNEED = struct.Struct("<HHIII")
_VERNAUX = struct.Struct("<IHHII")
_VERDEF = struct.Struct("<HHHHIII")
_VERDAUX = struct.Struct("<II")

# Damaged counts: chosen far above real files. Of the libraries of an environment with torch 2.13
# and of Debian 12, none has more than 15 segments.
_MOST_SEGMENTS = 256
_MOST_DYNAMIC = 32 * 1024
"""Maximum size of a dynamic section in bytes; real ones have less than 2 KiB."""
# Chosen likewise: the most needed versions are 51 (libtorch_cpu.so), the most defined ones 63.
_MOST_VERSIONS = 4096
_VERSION_BLOCKS = (4096, 256 * 1024)
"""Sizes of reads of a version table in bytes; the first one that contains it is enough."""
# Bytes. The longest name of a library there has 58, so nearly every name needs one read; a longer
# one is read again. The longest run path has 194.
_USUAL_NAME = 160
_LONGEST_NAME = 512
_LONGEST_PATH = 8192
_MOST_NAMES = 8192

# Numbers of the ELF specification and of glibc's elf.h.
_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_NEEDED, _SONAME, _RPATH, _RUNPATH, _FLAGS_1 = 1, 14, 15, 29, 0x6FFFFFFB
STRTAB, SYMTAB, STRSZ, HASH, GNU_HASH, VERSYM = 5, 6, 10, 4, 0x6FFFFEF5, 0x6FFFFFF0
_VERDEF_AT, _VERDEF_COUNT, _VERNEED_AT, _VERNEED_COUNT = (
    0x6FFFFFFC, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF,
)  # fmt: skip
_NO_DEFAULT_FOLDERS = 0x800
_VERSION_BASE, _VERSION_WEAK = 1, 2


class Needed(msgspec.Struct, frozen=True):
    """A version that the file needs from a library: ``GLIBC_2.28`` from ``libc.so.6``."""

    library: str
    version: str
    index: int
    """Its number in the file's table of symbol versions."""
    weak: bool


class Elf(msgspec.Struct, frozen=True, kw_only=True):
    """The content of an ELF file; only the header if it is not 64-bit, little-endian."""

    path: str
    size: int
    """Bytes of the file."""
    whole_size: int = 0
    """Bytes that its segments need; a shorter file was truncated."""
    bits: int
    machine: int
    """Number of the processor: 62 x86-64, 183 AArch64."""
    kind: int
    """2: an executable; 3: a shared object (a library or a position-independent executable)."""
    dynamic: bool = False
    """Whether it has a dynamic section."""
    interpreter: str = ""
    """The loader that an executable requests."""
    soname: str = ""
    needed: tuple[str, ...] = ()
    rpath: str | None = None
    """Folders of DT_RPATH, which counts only if there is no ``runpath``."""
    runpath: str | None = None
    no_default_folders: bool = False
    """DF_1_NODEFLIB: the cache and the default folders are not searched for this file's needs."""
    versions_defined: tuple[str, ...] = ()
    versions_needed: tuple[Needed, ...] = ()
    loads: tuple[tuple[int, int, int], ...] = ()
    """Address, offset and length in the file of each loaded segment."""
    tags: dict[int, int] = {}
    """Entries of the dynamic section that occur once, by their numbers."""
    section_table: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Offset, size of an entry, number of entries, and the index of the entry with the names."""

    @property
    def cut_off(self) -> bool:
        """Whether the file is shorter than its segments require."""
        return self.size < self.whole_size

    def table(self, tag: int) -> int | None:
        """Return the file offset of the table whose address is stored under this tag."""
        address = self.tags.get(tag)
        return self.offset(address) if address is not None else None

    def offset(self, address: int) -> int | None:
        """Return the file offset of an address; None if no segment contains it."""
        for start, offset, length in self.loads:
            if start <= address < start + length:
                return offset + address - start
        return None


def read_elf(host: Host, path: str) -> Answer[Elf]:
    """Read the header, the dynamic section and the version tables of an ELF file.

    If the file is not ELF, or its header makes no sense, the problem starts with the words of the
    dynamic loader: "file too short", "invalid ELF header".
    """
    stat = host.stat(path)
    if stat.value is None:
        return Answer(None, path, stat.problem, stat.missing)
    head = host.read_ranges(path, [(0, _HEAD)])
    if head.value is None:
        return Answer(None, path, head.problem, head.missing)
    try:
        return Answer(_read(host, path, stat.value.size, head.value[0]), path)
    except (ValueError, struct.error) as error:
        return Answer(None, path, message_of(error))


def read_needed(host: Host, path: str) -> Answer[tuple[str, ...]]:
    """Read only the names of the libraries that a file needs.

    This takes a fraction of the time of ``read_elf``. The result is also [] for a file that is not
    64-bit.
    """
    head = host.read_ranges(path, [(0, _HEAD)])
    if head.value is None:
        return Answer(None, path, head.problem, head.missing)
    data = head.value[0]
    if len(data) < _HEAD_SIZE:
        return Answer(None, path, _TOO_SHORT)
    if not data.startswith(_MAGIC_64):
        return Answer(() if data.startswith(_MAGIC) else None, path, _INVALID)
    fields = _HEADER.unpack_from(data)
    segments = _segments(host, path, data, fields[5], fields[9], fields[10])
    place = next(((s[2], min(s[5], _MOST_DYNAMIC)) for s in segments if s[0] == _PT_DYNAMIC), None)
    if place is None:
        return Answer((), path)
    table = (host.read_ranges(path, [place]).value or [b""])[0]
    tags, needed = _dynamic(table)
    loads = tuple((s[3], s[2], s[5]) for s in segments if s[0] == _PT_LOAD)
    elf = Elf(path=path, size=0, bits=64, machine=fields[2], kind=fields[1], loads=loads, tags=tags)
    strings = strings_of(host, elf)
    names = strings.read(needed) if strings is not None else {}
    return Answer(tuple(name for at in needed if (name := names.get(at, ""))), path)


def mapped_bytes(host: Host, path: str) -> int:
    """Return how much of the address space a library takes; 0 if the file does not say."""
    data = (host.read_ranges(path, [(0, _HEAD)]).value or [b""])[0]
    if len(data) < _HEAD_SIZE or not data.startswith(_MAGIC_64):
        return 0
    fields = _HEADER.unpack_from(data)
    segments = _segments(host, path, data, fields[5], fields[9], fields[10])
    return max((s[3] + s[6] for s in segments if s[0] == _PT_LOAD), default=0)


def is_none(problem: str) -> bool:
    """Whether a problem of reading a file means that it is not an ELF file at all."""
    return problem in (_TOO_SHORT, _INVALID)


class Strings:
    """The strings of a file, read by their offsets, many at a time."""

    def __init__(self, host: Host, path: str, start: int, size: int) -> None:
        self._host, self._path, self._start, self._size = host, path, start, size

    def read(self, offsets: Iterable[int], longest: int = _LONGEST_NAME) -> dict[int, str]:
        """Return the string at each offset; "" for an offset outside the table."""
        wanted = sorted({at for at in offsets if 0 <= at < self._size})[:_MOST_NAMES]
        found = self._read(wanted, min(longest, _USUAL_NAME))
        long = [at for at in wanted if at not in found]
        return {**found, **self._read(long, longest, cut=True)} if long else found

    def _read(self, wanted: list[int], longest: int, *, cut: bool = False) -> dict[int, str]:
        """Return the strings that end within ``longest`` bytes; with ``cut`` also longer ones."""
        blocks: list[tuple[int, int]] = []
        for at in wanted:
            end = min(at + longest, self._size)
            if blocks and at <= blocks[-1][1]:
                blocks[-1] = (blocks[-1][0], max(end, blocks[-1][1]))
            else:
                blocks.append((at, end))
        ranges = [(self._start + start, end - start) for start, end in blocks]
        data = self._host.read_ranges(self._path, ranges).value or [b""] * len(ranges)
        found: dict[int, str] = {}
        block = 0
        for at in wanted:
            while at >= blocks[block][1]:
                block += 1
            inside = at - blocks[block][0]
            end = data[block].find(b"\x00", inside, inside + longest)
            if end >= 0 or cut:
                text = data[block][inside : end if end >= 0 else inside + longest]
                found[at] = text.decode("utf-8", "replace")
        return found


def strings_of(host: Host, elf: Elf) -> Strings | None:
    """Return the reader of the names in the dynamic section; None if there are none."""
    start = elf.table(STRTAB)
    if start is None:
        return None
    return Strings(host, elf.path, start, elf.tags.get(STRSZ, 0))


def _read(host: Host, path: str, size: int, head: bytes) -> Elf:
    """Read what follows the header.

    Raises:
        ValueError: the file is not ELF.
        struct.error: it is truncated within a table.
    """
    if len(head) < _HEAD_SIZE:
        raise ValueError(_TOO_SHORT)
    if not head.startswith(_MAGIC):
        raise ValueError(_INVALID)
    bits, little = {1: 32, 2: 64}.get(head[4], 0), head[5] == 1
    order = "little" if little else "big"
    kind, machine = (int.from_bytes(head[at : at + 2], order) for at in (16, 18))  # type: ignore[arg-type]
    if bits != 64 or not little:  # noqa: PLR2004
        return Elf(path=path, size=size, bits=bits, machine=machine, kind=kind)
    fields = _HEADER.unpack_from(head)
    segments = _segments(host, path, head, fields[5], fields[9], fields[10])
    loads = tuple((s[3], s[2], s[5]) for s in segments if s[0] == _PT_LOAD)
    ends = (offset + length for _address, offset, length in loads)
    found = Elf(
        path=path,
        size=size,
        whole_size=max(ends, default=0),
        bits=bits,
        machine=machine,
        kind=kind,
        loads=loads,
        interpreter=_interpreter(host, path, segments),
        section_table=(fields[6], fields[11], fields[12], fields[13]),
    )
    dynamic = next((s for s in segments if s[0] == _PT_DYNAMIC), None)
    if dynamic is None:
        return found
    answer = host.read_ranges(path, [(dynamic[2], min(dynamic[5], _MOST_DYNAMIC))])
    return _with_dynamic(host, found, (answer.value or [b""])[0])


def _segments(
    host: Host, path: str, head: bytes, start: int, size: int, count: int
) -> list[tuple[int, ...]]:
    if size != _SEGMENT.size:
        return []
    length = min(count, _MOST_SEGMENTS) * size
    table = head[start : start + length]
    if start + length > len(head):
        table = (host.read_ranges(path, [(start, length)]).value or [b""])[0]
    whole = len(table) - len(table) % size
    return list(_SEGMENT.iter_unpack(table[:whole]))


def _interpreter(host: Host, path: str, segments: list[tuple[int, ...]]) -> str:
    place = next(((s[2], min(s[5], _LONGEST_NAME)) for s in segments if s[0] == _PT_INTERP), None)
    if place is None:
        return ""
    text = (host.read_ranges(path, [place]).value or [b""])[0]
    return text.partition(b"\x00")[0].decode("utf-8", "replace")


def _dynamic(table: bytes) -> tuple[dict[int, int], list[int]]:
    """Return the entries of a dynamic section by their tags, and those of DT_NEEDED in order."""
    tags: dict[int, int] = {}
    needed: list[int] = []
    for tag, value in _ENTRY.iter_unpack(table[: len(table) - len(table) % _ENTRY.size]):
        if tag == 0:
            break
        if tag == _NEEDED:
            needed.append(value)
        else:
            tags[tag] = value
    return tags, needed


def _with_dynamic(host: Host, elf: Elf, table: bytes) -> Elf:
    tags, needed = _dynamic(table)
    elf = msgspec.structs.replace(elf, dynamic=True, tags=tags)
    strings = strings_of(host, elf)
    if strings is None:
        return elf
    needs = _versions_needed(host, elf)
    defined = _versions_defined(host, elf)
    names = strings.read(
        [*needed, tags.get(_SONAME, -1), *defined, *(at for n in needs for at in n[:2])]
    )
    paths = strings.read([tags.get(_RPATH, -1), tags.get(_RUNPATH, -1)], _LONGEST_PATH)
    return msgspec.structs.replace(
        elf,
        soname=names.get(tags.get(_SONAME, -1), ""),
        needed=tuple(name for at in needed if (name := names.get(at, ""))),
        rpath=paths.get(tags[_RPATH], "") if _RPATH in tags else None,
        runpath=paths.get(tags[_RUNPATH], "") if _RUNPATH in tags else None,
        no_default_folders=bool(tags.get(_FLAGS_1, 0) & _NO_DEFAULT_FOLDERS),
        versions_defined=tuple(names.get(at, "") for at in defined),
        versions_needed=tuple(
            Needed(names.get(file, ""), names.get(name, ""), index, weak)
            for file, name, index, weak in needs
        ),
    )


def _versions_needed(host: Host, elf: Elf) -> list[tuple[int, int, int, bool]]:
    """Return for each needed version the offsets of library and name, its number, and if weak."""
    count = min(elf.tags.get(_VERNEED_COUNT, 0), _MOST_VERSIONS)

    def walk(data: bytes) -> list[tuple[int, int, int, bool]]:
        found: list[tuple[int, int, int, bool]] = []
        at = 0
        for _ in range(count):
            _version, names, file, first, following = _VERNEED.unpack_from(data, at)
            aux = at + first
            for _ in range(min(names, _MOST_VERSIONS - len(found))):
                _hash, flags, other, name, after = _VERNAUX.unpack_from(data, aux)
                found.append((file, name, other & 0x7FFF, bool(flags & _VERSION_WEAK)))
                if not after:
                    break
                aux += after
            if not following:
                break
            at += following
        return found

    for data in _blocks(host, elf, _VERNEED_AT, count):
        try:
            return walk(data)
        except struct.error:
            continue
    return []


def _versions_defined(host: Host, elf: Elf) -> list[int]:
    """Return the offsets of the names of the versions that the file defines."""
    count = min(elf.tags.get(_VERDEF_COUNT, 0), _MOST_VERSIONS)

    def walk(data: bytes) -> list[int]:
        found: list[int] = []
        at = 0
        for _ in range(count):
            _version, flags, _index, _names, _hash, aux, following = _VERDEF.unpack_from(data, at)
            name, _after = _VERDAUX.unpack_from(data, at + aux)
            if not flags & _VERSION_BASE:
                found.append(name)
            if not following:
                break
            at += following
        return found

    for data in _blocks(host, elf, _VERDEF_AT, count):
        try:
            return walk(data)
        except struct.error:
            continue
    return []


def _blocks(host: Host, elf: Elf, tag: int, count: int) -> Iterable[bytes]:
    """Return the version table: first a short part, then a longer one if that is not enough."""
    start = elf.table(tag) if count else None
    if start is None:
        return
    for length in _VERSION_BLOCKS:
        yield (host.read_ranges(elf.path, [(start, length)]).value or [b""])[0]
