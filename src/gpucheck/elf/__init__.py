"""Reads what ELF files say of themselves, without loading them.

Only the ranges that matter are read, through the door. What a file says is not trusted: every
count and length is bounded, and what does not fit is a problem of the answer or an empty table.
"""

from gpucheck.elf._file import Elf, Needed, is_none, read_elf, read_needed
from gpucheck.elf._symbols import (
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
    "missing_symbols",
    "read_elf",
    "read_needed",
    "sections",
    "symbol_data",
    "undefined_symbols",
]
