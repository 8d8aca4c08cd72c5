"""Reads ELF files without loading them.

Only the relevant ranges are read, through the host. The content of a file is not trusted: every
count and length is bounded, and a malformed part gives a problem in the answer or an empty table.
"""

from gpucheck.machine.binaries.elf._file import (
    Elf,
    Needed,
    is_none,
    mapped_bytes,
    read_elf,
    read_needed,
)
from gpucheck.machine.binaries.elf._symbols import (
    Symbol,
    missing_symbols,
    sections,
    symbol_data,
    undefined_symbols,
)

__all__ = [
    "Elf",
    "Needed",
    "Symbol",
    "is_none",
    "mapped_bytes",
    "missing_symbols",
    "read_elf",
    "read_needed",
    "sections",
    "symbol_data",
    "undefined_symbols",
]
