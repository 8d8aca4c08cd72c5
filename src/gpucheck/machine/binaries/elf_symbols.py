"""The symbols and sections of an ELF file, read only as far as they are needed."""

import struct
from collections.abc import Iterable

import msgspec

from gpucheck.facts import Answer
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.binaries.elf import GNU_HASH, HASH, STRTAB, SYMTAB, VERSYM, Elf, strings_of

_SYMBOL = struct.Struct("<IBBHQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_HASH_HEAD = struct.Struct("<II")
# Damaged counts: the most seen are 64 sections, whose names take 1,065 bytes (libc.so.6), and
# symbols of 604 characters (libLLVM). A name that is cut is not found, so these are generous.
_MOST_SECTIONS = 4096
_SECTION_NAMES = 64 * 1024
_LONGEST_SYMBOL, _LONGEST_SECTION = 4096, 256
_WEAK = 2  # STB_WEAK of elf.h
_HIDDEN = 0x8000
"""The bit of a version number that marks a symbol that is not the default one."""
_NO_BITS = 8  # SHT_NOBITS of elf.h: it has no bytes in the file

_GNU_HEAD = struct.Struct("<IIII")
_OLD_HEAD = struct.Struct("<II")
# Damaged counts would cost memory: chosen five times the 75,415 dynamic symbols of libtorch_cpu.so
# (torch 2.13.0). With more, the answer is unknown, not "missing".
_MOST_SYMBOLS = 400_000
_MOST_WORDS = 1 << 22
_LONGEST_CHAIN = 1000
"""Steps along one chain; real ones have some ten. A hostile chain ends nowhere."""


class Symbol(msgspec.Struct, frozen=True):
    """A symbol that a file needs; ``library`` and ``version`` are "" if it names none."""

    name: str
    library: str
    version: str
    weak: bool


def undefined_symbols(
    host: Host, elf: Elf, libraries: Iterable[str] | None = None
) -> Answer[list[Symbol]]:
    """Return the symbols that the file needs from others.

    Args:
        host: the machine.
        elf: the file.
        libraries: only symbols from these libraries, by SONAME; a symbol without a version names no
            library and is then left out.
    """
    versions = {need.index: need for need in elf.versions_needed}
    if libraries is not None:
        names = set(libraries)
        versions = {index: need for index, need in versions.items() if need.library in names}
        if not versions:
            return Answer([], elf.path)
    count = _undefined_count(host, elf)
    start = elf.table(SYMTAB)
    strings = strings_of(host, elf)
    if count is None or start is None or strings is None:
        return Answer(None, elf.path, say("it has no readable table of symbols"))
    table, numbers = _tables(host, elf, start, count)
    places: Iterable[int] = range(len(table) // _SYMBOL.size)
    if libraries is not None:  # only a few of thousands of symbols are from these
        bound = {index | hidden for index in versions for hidden in (0, _HIDDEN)}
        places = [at for at, number in zip(places, numbers, strict=False) if number in bound]
    wanted: list[tuple[int, int, bool]] = []
    for at in places:
        name, info, _other, section, _value, _size = _SYMBOL.unpack_from(table, at * _SYMBOL.size)
        if section == 0 and name:
            number = numbers[at] & ~_HIDDEN if at < len(numbers) else 0
            wanted.append((name, number, info >> 4 == _WEAK))
    names_at = strings.read((name for name, _, _ in wanted), _LONGEST_SYMBOL)
    found = []
    for name, number, weak in wanted:
        need = versions.get(number)
        library, version = (need.library, need.version) if need is not None else ("", "")
        found.append(Symbol(names_at.get(name, ""), library, version, weak))
    return Answer(found, elf.path)


def missing_symbols(host: Host, elf: Elf, names: Iterable[str]) -> Answer[set[str]]:
    """Return the names that the file does not define, by its hash table."""
    wanted = set(names)
    return _definitions(host, elf, wanted).map(lambda defined: wanted - set(defined))


def symbol_data(host: Host, elf: Elf, name: str, length: int) -> Answer[bytes]:
    """Return the first bytes of a variable that the file defines; missing if it does not."""
    defined = _definitions(host, elf, {name})
    if defined.value is None:
        return Answer(None, elf.path, defined.problem)
    if name not in defined.value:
        return Answer(None, elf.path, say("it does not define {name}", name=name), missing=True)
    offset = elf.offset(defined.value[name])
    if offset is None:
        return Answer(None, elf.path, say("{name} is not in the file", name=name))
    return host.read_ranges(elf.path, [(offset, length)]).map(lambda parts: parts[0])


def _definitions(host: Host, elf: Elf, names: Iterable[str]) -> Answer[dict[str, int]]:
    """Return the addresses of the names that the file defines."""
    symbols = elf.table(SYMTAB)
    strings = strings_of(host, elf)
    table = _hash_table(host, elf)
    if table is None or symbols is None or strings is None:
        return Answer(None, elf.path, say("it has no readable hash table"))
    wanted = {name: table.candidates(name.encode()) for name in names}
    places = sorted({at for candidates in wanted.values() for at in candidates})
    ranges = [(symbols + at * _SYMBOL.size, _SYMBOL.size) for at in places]
    read = host.read_ranges(elf.path, ranges)
    if read.value is None:
        return Answer(None, elf.path, read.problem)
    if any(len(data) < _SYMBOL.size for data in read.value):
        return Answer(None, elf.path, say("its table of symbols is cut off"))
    entries = {at: _SYMBOL.unpack(data) for at, data in zip(places, read.value, strict=True)}
    texts = strings.read((entry[0] for entry in entries.values()), _LONGEST_SYMBOL)
    if not all(texts.get(entry[0]) for entry in entries.values() if entry[0]):
        return Answer(None, elf.path, say("its table of names is cut off"))
    found = {
        name: entries[at][4]
        for name, candidates in wanted.items()
        for at in candidates
        if entries[at][3] != 0 and texts.get(entries[at][0]) == name
    }
    return Answer(found, elf.path)


def sections(host: Host, elf: Elf) -> Answer[dict[str, tuple[int, int]]]:
    """Return offset and length of each section that has bytes in the file, by its name."""
    start, size, count, names_at = elf.section_table
    if size != _SECTION.size or not start or names_at >= min(count, _MOST_SECTIONS):
        return Answer(None, elf.path, say("it has no section table"))
    table = (
        host.read_ranges(elf.path, [(start, min(count, _MOST_SECTIONS) * size)]).value or [b""]
    )[0]
    entries = list(_SECTION.iter_unpack(table[: len(table) - len(table) % size]))
    if names_at >= len(entries):
        return Answer(None, elf.path, say("its section table is cut off"))
    place = (entries[names_at][4], min(entries[names_at][5], _SECTION_NAMES))
    names = (host.read_ranges(elf.path, [place]).value or [b""])[0]
    found: dict[str, tuple[int, int]] = {}
    for name_at, kind, _flags, _address, offset, length, *_ in entries:
        end = names.find(b"\x00", name_at, name_at + _LONGEST_SECTION)
        name = names[name_at:end].decode("utf-8", "replace") if end > name_at else ""
        if name and kind != _NO_BITS and offset + length <= elf.size:
            found.setdefault(name, (offset, length))
    return Answer(found, elf.path)


def _undefined_count(host: Host, elf: Elf) -> int | None:
    """Return how many symbols to examine: the undefined ones come before the hashed ones."""
    start = elf.table(GNU_HASH)
    if start is None:
        start = elf.table(HASH)
    if start is None:
        return None
    head = (host.read_ranges(elf.path, [(start, _HASH_HEAD.size)]).value or [b""])[0]
    if len(head) < _HASH_HEAD.size:
        return None
    # The older table is not sorted; its second number counts all symbols.
    count = int(_HASH_HEAD.unpack(head)[1])
    symbols, strings = elf.table(SYMTAB), elf.table(STRTAB)
    if count <= 1 and symbols is not None and strings is not None and symbols < strings:
        # Linkers write 1 if nothing is exported (libtorch_global_deps.so of torch 2.14.1+cu130),
        # and put the names right behind the symbols.
        count = (strings - symbols) // _SYMBOL.size
    return min(count, _MOST_SYMBOLS)


def _tables(host: Host, elf: Elf, start: int, count: int) -> tuple[bytes, memoryview]:
    """Return the first symbols and the numbers of their versions."""
    versions = elf.table(VERSYM)
    ranges = [(start, count * _SYMBOL.size), (versions or 0, count * 2 if versions else 0)]
    table, numbers = host.read_ranges(elf.path, ranges).value or [b"", b""]
    whole = table[: len(table) - len(table) % _SYMBOL.size]
    return whole, memoryview(numbers[: len(numbers) - len(numbers) % 2]).cast("H")


def _hash_table(host: Host, elf: Elf) -> "GnuHash | OldHash | None":
    """Return the file's table, the GNU one first; None if none can be read."""
    start = elf.table(GNU_HASH)
    if start is not None:
        return GnuHash.read(host, elf, start)
    start = elf.table(HASH)
    return OldHash.read(host, elf, start) if start is not None else None


def _numbers(host: Host, elf: Elf, start: int, form: struct.Struct) -> tuple[int, ...] | None:
    """Return the numbers that a table begins with; None where the file ends before."""
    head = (host.read_ranges(elf.path, [(start, form.size)]).value or [b""])[0]
    return form.unpack(head) if len(head) >= form.size else None


class GnuHash(msgspec.Struct, frozen=True):
    """DT_GNU_HASH: a filter, buckets, and the hash of each symbol."""

    first: int
    bloom: memoryview
    shift: int
    buckets: memoryview
    chain: memoryview

    @classmethod
    def read(cls, host: Host, elf: Elf, start: int) -> "GnuHash | None":
        """Read the table that starts there; None if it makes no sense."""
        head = _numbers(host, elf, start, _GNU_HEAD)
        if head is None:
            return None
        count, first, words, shift = head
        if not 0 < count <= _MOST_WORDS or not 0 < words <= _MOST_WORDS or shift > 63:  # noqa: PLR2004
            return None
        at = start + _GNU_HEAD.size
        tables = host.read_ranges(elf.path, [(at, words * 8), (at + words * 8, count * 4)]).value
        if tables is None or len(tables[0]) < words * 8 or len(tables[1]) < count * 4:
            return None
        bloom, buckets = memoryview(tables[0]).cast("Q"), memoryview(tables[1]).cast("I")
        highest = max(buckets)
        length = max(0, highest - first + 1) if highest else 0
        if length > _MOST_SYMBOLS:
            return None
        # The last chain starts at the highest bucket and ends at a hash whose lowest bit is set.
        after = at + words * 8 + count * 4
        chain = (host.read_ranges(elf.path, [(after, (length + 256) * 4)]).value or [b""])[0]
        whole = memoryview(chain[: len(chain) - len(chain) % 4]).cast("I")
        return cls(first, bloom, shift, buckets, whole)

    def candidates(self, name: bytes) -> list[int]:
        """Return the numbers of the symbols whose hash equals that of the name."""
        hashed = gnu_hash(name)
        word = self.bloom[hashed // 64 % len(self.bloom)]
        if not word >> hashed % 64 & word >> (hashed >> self.shift) % 64 & 1:
            return []
        first = self.buckets[hashed % len(self.buckets)] - self.first
        if first < 0:
            return []
        found: list[int] = []
        for at in range(first, min(len(self.chain), first + _LONGEST_CHAIN)):
            if self.chain[at] | 1 == hashed | 1:
                found.append(at + self.first)
            if self.chain[at] & 1:
                break
        return found


class OldHash(msgspec.Struct, frozen=True):
    """DT_HASH: buckets and chains of symbol numbers; older CUDA libraries have only this one."""

    buckets: memoryview
    chain: memoryview

    @classmethod
    def read(cls, host: Host, elf: Elf, start: int) -> "OldHash | None":
        """Read the table that starts there; None if it makes no sense."""
        head = _numbers(host, elf, start, _OLD_HEAD)
        if head is None:
            return None
        count, symbols = head
        if not 0 < count <= _MOST_WORDS or symbols > _MOST_SYMBOLS:
            return None
        at = start + _OLD_HEAD.size
        ranges = [(at, count * 4), (at + count * 4, symbols * 4)]
        buckets, chain = host.read_ranges(elf.path, ranges).value or (b"", b"")
        if len(buckets) < count * 4 or len(chain) < symbols * 4:
            return None
        return cls(memoryview(buckets).cast("I"), memoryview(chain).cast("I"))

    def candidates(self, name: bytes) -> list[int]:
        """Return the numbers of the symbols in the name's bucket."""
        at = self.buckets[old_hash(name) % len(self.buckets)]
        found: list[int] = []
        while 0 < at < len(self.chain) and len(found) < _LONGEST_CHAIN:
            found.append(at)
            at = self.chain[at]
        return found


def gnu_hash(name: bytes) -> int:
    """Return the hash of the GNU table: multiply by 33 and add, from 5381, in 32 bits."""
    value = 5381
    for byte in name:
        value = value * 33 + byte & 0xFFFFFFFF
    return value


def old_hash(name: bytes) -> int:
    """Return the hash that the System V ABI defines, with 28 bits."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return value
