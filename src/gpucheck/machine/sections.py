"""Finds a section of an ELF file, so that only the constants of a large library are searched."""

import mmap
import struct

_MAGIC = b"\x7fELF\x02\x01"
"""64 bits, little-endian, like all of NVIDIA's platforms."""
_OFFSET = struct.Struct("<Q")
_COUNTS = struct.Struct("<HHH")
_HEADER = struct.Struct("<IIQQQQ")
_MAX_SECTIONS = 4096  # damaged counts: as in elf/_symbols.py
_MAX_NAME = 64  # longer than the names that are asked for


def elf_section(data: "mmap.mmap | bytes", name: str) -> tuple[int, int] | None:
    """Return the start and end of the section; None for another kind of file or no such section.

    Only headers are read, and they are not trusted beyond the size of the file.
    """
    if data[: len(_MAGIC)] != _MAGIC:
        return None
    try:
        (table,) = _OFFSET.unpack_from(data, 0x28)
        size, count, names_at = _COUNTS.unpack_from(data, 0x3A)
        headers = [
            _HEADER.unpack_from(data, table + at * size) for at in range(min(count, _MAX_SECTIONS))
        ]
        names = headers[names_at][4]
    except (struct.error, IndexError, OverflowError):
        return None
    wanted = name.encode() + b"\x00"
    for start_of_name, _kind, _flags, _address, start, length in headers:
        found = data[names + start_of_name : names + start_of_name + _MAX_NAME]
        if found.startswith(wanted) and start + length <= len(data):
            return start, start + length
    return None
