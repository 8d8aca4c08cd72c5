"""Reads ``/etc/ld.so.cache``: the file that the dynamic loader takes for a library name.

Only the current format (``glibc-ld.so.cache1.1``) counts, alone or after one of the old format: a
header, entries of flags and two offsets, and the strings. Offsets are relative to the header.
"""

import os
import struct

_MAGIC = b"glibc-ld.so.cache1.1"
_COUNTS = struct.Struct("<20xII")
_HEADER_SIZE = 48  # struct cache_file_new of glibc
_ENTRY = struct.Struct("<iIIIQ")
# Chosen: a system with 592 libraries has as many entries; a damaged count has more.
_MOST_ENTRIES = 65536
_LONGEST_PATH = 4096  # PATH_MAX of Linux
_ARCHITECTURES = {
    "x86_64": 0x0300,
    "aarch64": 0x0A00,
    "ppc64le": 0x0500,
}
"""The bits of an entry's flags for a 64-bit library, by ``uname -m``."""
_ARCHITECTURE_MASK = 0xFF00  # FLAG_REQUIRED_MASK of glibc's ldconfig.h


def lookup(cache: bytes, soname: str, machine: str) -> list[str]:
    """Return the paths for a library name in the order of the loader.

    For a cache that is truncated, damaged or of another format, the readable part is used, or [].
    """
    start = cache.find(_MAGIC)
    architecture = _ARCHITECTURES.get(machine)
    if start < 0 or architecture is None or len(cache) < start + _HEADER_SIZE:
        return []
    count, _string_bytes = _COUNTS.unpack_from(cache, start)
    keys = _places(cache, os.fsencode(soname) + b"\x00", start)
    if not keys:
        return []
    entries = memoryview(cache)[start + _HEADER_SIZE :]
    whole = min(count, _MOST_ENTRIES, len(entries) // _ENTRY.size) * _ENTRY.size
    return [
        path
        for flags, key, value, _os, _hwcap in _ENTRY.iter_unpack(entries[:whole])
        if key in keys
        and flags & _ARCHITECTURE_MASK == architecture
        and (path := _string(cache, start + value))
    ]


def _places(cache: bytes, text: bytes, start: int) -> set[int]:
    """Return every offset of the text: a name may be stored as the end of a path."""
    places = set()
    at = cache.find(text, start)
    while at >= 0:
        places.add(at - start)
        at = cache.find(text, at + 1)
    return places


def _string(cache: bytes, at: int) -> str:
    end = cache.find(b"\x00", at, at + _LONGEST_PATH)
    return cache[at:end].decode("utf-8", "replace") if end > at else ""
