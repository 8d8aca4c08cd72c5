"""Readers of pasted texts: one module reads one format into sections of facts.

A reader module has ``NAME`` (the format as a user knows it), ``MARKS`` (lower-case texts, one of
which occurs in every paste of this format) and ``read(text, machine)``. Nothing is registered: a
module of this package that has a ``read`` is a reader. Readers run in the order of their ``RANK``
(0 by default), lowest first: if two report the same fact, the first one is believed.

The bounds in their patterns, such as ``{0,60}``, are above what programs print. They keep a search
in a hostile line linear (``tests/triage/test_pattern_form.py``).
"""

import functools
import importlib
from collections.abc import Callable

import msgspec

from gpucheck._about import modules_of
from gpucheck.log_patterns.text import ByPiece, Text
from gpucheck.ticket.readers.base import Machine


class Reader(msgspec.Struct, frozen=True):
    """A module of this package, as triage sees it."""

    name: str
    marks: tuple[str, ...]
    read: Callable[[Text, Machine], None]
    rank: int = 0


@functools.cache
def all_readers() -> tuple[Reader, ...]:
    """Return every reader, in the order in which they are believed."""
    found = []
    for name in modules_of(__path__):
        module = importlib.import_module(f"{__name__}.{name}")
        if hasattr(module, "read"):
            rank = getattr(module, "RANK", 0)
            found.append(Reader(module.NAME, module.MARKS, module.read, rank))
    return tuple(sorted(found, key=lambda reader: reader.rank))


def read_pasted(text: Text, machine: Machine) -> tuple[str, ...]:
    """Let every reader whose mark occurs in the text fill the machine; return their names.

    A reader that took nothing has not recognised its format.
    """
    recognised = []
    marked = {name for name, mark in text.possible(_by_mark()) if text.holds(mark)}
    for reader in all_readers():
        if reader.name in marked:
            before = len(machine.spoken)
            reader.read(text, machine)
            if len(machine.spoken) > before:
                machine.taken[reader.name] = machine.spoken[before:]
                recognised.append(reader.name)
    return tuple(recognised)


@functools.cache
def _by_mark() -> ByPiece[tuple[str, str]]:
    """Return the name of each reader with each of its marks."""
    return ByPiece((mark, (reader.name, mark)) for reader in all_readers() for mark in reader.marks)
