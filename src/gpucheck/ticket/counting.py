"""Which of the messages in a text count: by the role of their line, and by what failed.

1. A weak message counts in no line that only informs, configures or commands, nor in one of another
   program, unless that is how the message always looks.
2. Where a program failed with an exception of its own, what happened afterwards is an echo: a shell
   that says "Killed", a rank that lost its peer. Weak messages count in the exception only.
"""

import re
from collections.abc import Sequence

from gpucheck.findings import all_rules
from gpucheck.messages.form import Strength
from gpucheck.messages.matcher import Match
from gpucheck.messages.roles import SILENT, Role, role_of, role_of_line
from gpucheck.messages.text import Text
from gpucheck.ticket.failure import Failure

_KILLED = re.compile(r"\s{0,8}(?:\S{0,40} )?(?:Killed|Terminated|Aborted)\b")
_NOT_OF_ENVIRONMENT = ("code", "other")
"""The owners of findings that tell of no fault of the environment."""


def that_count(found: Sequence[Match], text: Text, failure: Failure | None) -> list[Match]:
    """Return the messages that count."""
    return [match for match in found if _counts(match, text, failure)]


def _counts(match: Match, text: Text, failure: Failure | None) -> bool:
    if match.message.strength is Strength.NAMES:
        return True
    role = role_of(text, match.index)
    if match.message.strength is Strength.POINTS:
        return role not in (Role.OTHER, Role.ADVICE) or role_of_line(match.message.sample) is role
    informs = role is Role.INFO and match.message.informs
    if role in SILENT and not informs and role_of_line(match.message.sample) is not role:
        return False
    return failure is None or _tells(match, role, failure)


def _tells(match: Match, role: Role, failure: Failure) -> bool:
    """Whether a weak message counts beside an exception."""
    if all_rules()[match.slug].owner in _NOT_OF_ENVIRONMENT or match.index in failure.lines:
        return True
    if failure.is_of_program:
        return False
    is_echo = role is Role.WARNING or _KILLED.match(match.line.text) is not None
    return not (is_echo and failure.raised.frames and match.index > failure.raised.index)
