"""Which of the messages in a text count: by the role of their line, and by what failed.

1. A message that does not name its cause counts in no line that only informs, configures, commands
   or advises, nor in one of another program, unless that is how the message always looks.
2. Where a program failed with an exception of its own, what happened afterwards is an echo: a shell
   that says "Killed", a rank that lost its peer. Weak messages count in the exception only.
3. In a wish or a proposal nothing counts but what names its cause.
"""

import re
from collections.abc import Sequence

from gpucheck.findings import all_rules
from gpucheck.log_patterns.form import Strength
from gpucheck.log_patterns.matcher import Match, names_a_part
from gpucheck.log_patterns.roles import SILENT, Role, role_of, role_of_line
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.complaints import is_wish
from gpucheck.ticket.failure import Failure
from gpucheck.ticket.progress import last_progress

_KILLED = re.compile(r"\s{0,8}(?:\S{0,40} )?(?:Killed|Terminated|Aborted)\b")
_GIVEN = {Role.COMMAND, Role.SETTING}
"""A variable may be set before a command."""
_WEAKENING = {Role.JOURNAL, Role.WARNING}
"""Of what a daemon says, or a program warns of, only what points to a cause counts."""
_NOT_OF_ENVIRONMENT = ("code", "other")
"""The owners of findings that tell of no fault of the environment."""


def that_count(found: Sequence[Match], text: Text, failure: Failure | None) -> list[Match]:
    """Return the messages that count."""
    if failure is None and is_wish(text):
        return [match for match in found if match.message.strength is Strength.NAMES]
    progress = last_progress(text)
    return [
        match
        for match in found
        if _counts(match, text, failure) and not _is_outlived(match, text, progress)
    ]


def _is_outlived(match: Match, text: Text, progress: int) -> bool:
    """Whether a program warned of something and went on."""
    return 0 <= match.index < progress and role_of(text, match.index) is Role.WARNING


def _counts(match: Match, text: Text, failure: Failure | None) -> bool:
    strength = match.message.strength
    role = role_of(text, match.index)
    if strength is Strength.NAMES:
        return role is not Role.HELP
    of_program = failure is not None and failure.is_of_program
    points = strength is Strength.POINTS
    looks_so = _always_looks_so(match, role)
    if role is Role.JOURNAL and not looks_so and not names_a_part(Text([match.line])):
        return False
    if (role in SILENT and (of_program or not looks_so)) or (
        role in _WEAKENING and not points and not looks_so
    ):
        return False
    return points or failure is None or _tells(match, role, failure)


def _always_looks_so(match: Match, role: Role) -> bool:
    """Whether a message counts in a line of a role in which others do not: it is one of them."""
    if role is Role.INFO and match.message.informs:
        return True
    sample = match.message.sample
    usual = role_of_line(sample)
    if role is Role.LISTING:  # a row of a table shows by its cells what it is
        usual = role_of(Text([Line(1, sample)]), 0)
    return usual is role or {usual, role} == _GIVEN


def _tells(match: Match, role: Role, failure: Failure) -> bool:
    """Whether a weak message counts beside an exception."""
    if all_rules()[match.slug].owner in _NOT_OF_ENVIRONMENT or match.index in failure.lines:
        return True
    if failure.is_of_program:
        return False
    is_echo = role is Role.WARNING or _KILLED.match(match.line.text) is not None
    return not (is_echo and failure.raised.frames and match.index > failure.raised.index)
