"""What can be known about a machine: types only, one module for each subject.

A fact is a typed value that may be unknown, with where it was read or why it was not. ``None``
means *unknown* and nothing else. A section is a class in a module of this package; ``all_sections``
finds them.
"""

from gpucheck.facts.base import (
    Answer,
    Facts,
    Notes,
    Private,
    PrivateKind,
    Section,
    UnknownFactError,
    builtins,
    known,
    message_of,
)

__all__ = [
    "Answer",
    "Facts",
    "Notes",
    "Private",
    "PrivateKind",
    "Section",
    "UnknownFactError",
    "builtins",
    "known",
    "message_of",
]
