"""What can be known about a machine: one module per section, types only.

A fact is a typed value that may be unknown, with where it was read or why it was not. ``None``
means *unknown* and nothing else. A section is a module of this package; ``sections`` finds them.
"""

from gpucheck.facts.answer import Answer, Notes, message_of
from gpucheck.facts.base import (
    Facts,
    Private,
    PrivateKind,
    Section,
    UnknownFactError,
    builtins,
    known,
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
