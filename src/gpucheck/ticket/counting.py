"""Which of the messages in a text count: by the role of their line, and by what failed.

1. A weak message counts in no line that only informs, configures or commands, nor in one of another
   program, unless that is how the message always looks.
2. Where a program failed with an exception of its own, what happened afterwards is an echo: a shell
   that says "Killed", a rank that lost its peer. Weak messages count in the exception only.
"""

from collections.abc import Sequence

from gpucheck.messages.form import Message, Strength
from gpucheck.messages.matcher import Match
from gpucheck.messages.roles import SILENT, Role, role_of, role_of_line
from gpucheck.messages.text import Text
from gpucheck.ticket.failure import About, Failure

_WEAK = (Strength.FITS, Strength.SYMPTOM)
_PROGRAMS = ("application-bug", "not-gpu-related")


def that_count(found: Sequence[Match], text: Text, failure: Failure | None) -> list[Match]:
    """Return the messages that count."""
    failed = failure is not None and failure.is_of_program
    return [
        match
        for match in found
        if not _is_weak(match)
        or (_has_role(match, text) and (not failed or _tells(match, text, failure)))
    ]


def _is_weak(match: Match) -> bool:
    return match.message.strength in _WEAK


def _has_role(match: Match, text: Text) -> bool:
    """Whether a weak message counts in a line of this role."""
    role = role_of(text, match.index)
    return role not in SILENT or role_of_line(match.message.sample) is role


def _tells(match: Match, text: Text, failure: Failure) -> bool:
    """Whether a weak message counts beside an exception of the program itself."""
    return match.slug in _PROGRAMS or match.index in failure.lines
