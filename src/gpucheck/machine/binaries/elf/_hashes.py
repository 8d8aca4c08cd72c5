"""The hash tables by which the loader finds a symbol without comparing all names."""

import struct
from typing import Protocol

import msgspec

from gpucheck.machine import Host
from gpucheck.machine.binaries.elf._file import GNU_HASH, HASH, Elf

_GNU_HEAD = struct.Struct("<IIII")
_OLD_HEAD = struct.Struct("<II")
# Damaged counts would cost memory: chosen five times the 75,415 dynamic symbols of libtorch_cpu.so
# (torch 2.13.0). With more, the answer is unknown, not "missing".
_MOST_SYMBOLS = 400_000
_MOST_WORDS = 1 << 22
_LONGEST_CHAIN = 1000
"""Steps along one chain; real ones have some ten. A hostile chain ends nowhere."""


class HashTable(Protocol):
    """A hash table of either kind."""

    def candidates(self, name: bytes) -> list[int]:
        """Return the numbers of the symbols that can have this name."""


def hash_table(host: Host, elf: Elf) -> HashTable | None:
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
