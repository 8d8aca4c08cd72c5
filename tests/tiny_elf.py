"""Writes small ELF libraries: heads, symbols and GPU code as real ones have, and no code."""

import struct
from collections.abc import Mapping, Sequence

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_GLOBAL_FUNCTION, _WEAK_FUNCTION = 0x12, 0x22
_PTX, _CUBIN = 1, 2


def tiny_elf(
    *,
    needed: Sequence[str] = (),
    runpath: str = "",
    soname: str = "",
    wants: Sequence[str] = (),
    wants_weakly: Sequence[str] = (),
    offers: Sequence[str] = (),
    sections: Mapping[str, bytes] | None = None,
) -> bytes:
    """Return a shared library for x86-64: ``wants`` are symbols that it needs of others."""
    strings = _Strings()
    symbols = b"\x00" * _SYMBOL.size
    for name, info in (
        *((name, _GLOBAL_FUNCTION) for name in wants),
        *((name, _WEAK_FUNCTION) for name in wants_weakly),
    ):
        symbols += _SYMBOL.pack(strings.add(name), info, 0, 0, 0, 0)
    first = len(symbols) // _SYMBOL.size
    for name in offers:
        symbols += _SYMBOL.pack(strings.add(name), _GLOBAL_FUNCTION, 0, 7, 0x1000, 8)
    entries = [(1, strings.add(name)) for name in needed]
    entries += [(29, strings.add(runpath))] if runpath else []
    entries += [(14, strings.add(soname))] if soname else []
    start = _HEADER.size + 2 * _SEGMENT.size
    at_symbols = start + len(strings.data)
    table = _gnu_hash(offers, first)
    at_hash = at_symbols + len(symbols)
    at_dynamic = at_hash + len(table)
    entries += [(5, start), (10, len(strings.data)), (6, at_symbols), (0x6FFFFEF5, at_hash), (0, 0)]
    dynamic = b"".join(struct.pack("<qQ", *entry) for entry in entries)
    body = strings.data + symbols + table + dynamic
    tail, sections_at, count = _sections(sections or {}, start + len(body))
    size = start + len(body) + len(tail)
    head = _HEADER.pack(
        b"\x7fELF\x02\x01\x01" + b"\x00" * 9, 3, 62, 1, 0, _HEADER.size, sections_at, 0,
        _HEADER.size, _SEGMENT.size, 2, _SECTION.size, count, count - 1,
    )  # fmt: skip
    load = _SEGMENT.pack(1, 5, 0, 0, 0, size, size, 0x1000)
    dynamic_segment = _SEGMENT.pack(
        2, 6, at_dynamic, at_dynamic, at_dynamic, len(dynamic), len(dynamic), 8
    )
    return head + load + dynamic_segment + body + tail


def fat_binary(*containers: Sequence[str]) -> bytes:
    """Return a section of GPU code: a container for each list of ``sm_80``, ``compute_90``."""
    return b"".join(_container(codes) for codes in containers)


def _container(codes: Sequence[str]) -> bytes:
    entries = b""
    for code in codes:
        word, _, target = code.partition("_")
        number = int(target.rstrip("af"))
        flags = 0x11 | {"a": 1 << 20, "f": 1 << 21}.get(target[-1], 0)
        kind = _PTX if word == "compute" else _CUBIN
        entries += struct.pack(
            "<HHIQIIIIIIQQQ", kind, 0x101, 64, 24, 0, 0, 0x10008, number, 0, 0, flags, 0, 0
        )
        entries += b"\xaa" * 24
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


class _Strings:
    def __init__(self) -> None:
        self.data = b"\x00"

    def add(self, text: str) -> int:
        at = len(self.data)
        self.data += text.encode() + b"\x00"
        return at


def _gnu_hash(offers: Sequence[str], first: int) -> bytes:
    """Return a table of one bucket whose filter lets everything through."""
    hashes = []
    for name in offers:
        value = 5381
        for byte in name.encode():
            value = value * 33 + byte & 0xFFFFFFFF
        hashes.append(value & ~1)
    chain = [*hashes[:-1], hashes[-1] | 1] if hashes else []
    bucket = first if hashes else 0
    head = struct.pack("<IIII", 1, first, 1, 0) + struct.pack("<QI", (1 << 64) - 1, bucket)
    return head + struct.pack(f"<{len(chain)}I", *chain)


def _sections(sections: Mapping[str, bytes], start: int) -> tuple[bytes, int, int]:
    """Return the sections with their table, where the table lies, and its length."""
    names = _Strings()
    data = b""
    headers = [b"\x00" * _SECTION.size]
    for name, content in sections.items():
        place = start + len(data)
        headers.append(_SECTION.pack(names.add(name), 1, 2, place, place, len(content), 0, 0, 8, 0))
        data += content
    own = names.add(".shstrtab")
    place = start + len(data)
    headers.append(_SECTION.pack(own, 3, 0, 0, place, len(names.data), 0, 0, 1, 0))
    data += names.data
    return data + b"".join(headers), start + len(data), len(headers)
