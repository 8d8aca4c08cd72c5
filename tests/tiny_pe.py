"""Writes small PE files for 64 bits: the tables of imports and exports, sections, and no code."""

import struct
from collections.abc import Mapping, Sequence

_START, _FILE_ALIGNMENT, _MEMORY_ALIGNMENT = 0x80, 0x200, 0x1000
_OPTIONAL_SIZE = 240
_DATA_AT = 0x1000
"""Where the tables lie in memory; in the file they begin at another place."""


def tiny_pe(
    imports: Mapping[str, Sequence[str | int]] | None = None,
    *,
    exports: Sequence[str] = (),
    sections: Mapping[str, bytes] | None = None,
) -> bytes:
    """Return a DLL that needs symbols (or, by number, ordinals) of others and offers some."""
    data = _Data()
    wanted = data.imports(imports or {})
    offered = data.exports(exports) if exports else (0, 0)
    parts = {".rdata": bytes(data.bytes), **(sections or {})}
    rows, body = b"", b""
    memory, at = _DATA_AT, 0x400
    for name, content in parts.items():
        raw = content.ljust(-(-len(content) // _FILE_ALIGNMENT) * _FILE_ALIGNMENT, b"\0")
        numbers = struct.pack("<IIII", len(content), memory, len(raw), at)
        rows += (name.encode().ljust(8, b"\0") + numbers).ljust(40, b"\0")
        body += raw
        at += len(raw)
        memory += -(-len(content) // _MEMORY_ALIGNMENT) * _MEMORY_ALIGNMENT
    directories = struct.pack("<IIII", *offered, *wanted).ljust(128, b"\0")
    optional = struct.pack("<H", 0x20B).ljust(108, b"\0") + struct.pack("<I", 16) + directories
    head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", _START)
    coff = struct.pack("<HHIIIHH", 0x8664, len(parts), 0, 0, 0, _OPTIONAL_SIZE, 0x2022)
    whole = head.ljust(_START, b"\0") + b"PE\0\0" + coff + optional + rows
    return whole.ljust(0x400, b"\0") + body


class _Data:
    """The tables; each piece is put behind the others and known by its address."""

    def __init__(self) -> None:
        self.bytes = bytearray()

    def _put(self, data: bytes) -> int:
        at = _DATA_AT + len(self.bytes)
        self.bytes += data.ljust(-(-len(data) // 8) * 8, b"\0")
        return at

    def imports(self, wanted: Mapping[str, Sequence[str | int]]) -> tuple[int, int]:
        rows = b""
        for library, symbols in wanted.items():
            thunks = b""
            for symbol in symbols:
                if isinstance(symbol, int):
                    thunks += struct.pack("<Q", 1 << 63 | symbol)
                else:
                    thunks += struct.pack("<Q", self._put(b"\0\0" + symbol.encode() + b"\0"))
            table = self._put(thunks + bytes(8))
            rows += struct.pack("<IIIII", table, 0, 0, self._put(library.encode() + b"\0"), table)
        rows += bytes(20)
        return self._put(rows), len(rows)

    def exports(self, offered: Sequence[str]) -> tuple[int, int]:
        places = [self._put(name.encode() + b"\0") for name in sorted(offered)]
        names = self._put(struct.pack(f"<{len(places)}I", *places))
        head = struct.pack("<IIIIIIIIIII", 0, 0, 0, 0, 1, len(places), len(places), 0, names, 0, 0)
        return self._put(head[:40]), 40
