"""Joins lines that a terminal, a mail program or a form broke at its width."""

from collections.abc import Callable, Iterator

from gpucheck.log_patterns.roles import PRINTED, Role, role_of
from gpucheck.log_patterns.source_code import is_statement
from gpucheck.log_patterns.text import Line, Text

_NARROWEST, _WIDEST = 40, 240
"""The widths in columns: narrower texts are lists of words, wider ones are rarely broken."""
# Chosen: whole logs are not broken by a terminal; 5,000 change no answer on 752 tickets.
_MOST_LINES = 20_000
_SLACK = 24
"""A line that is shorter than the width by more than this was ended by its author."""
_LONGEST = 4096  # as a line that is read (docs/triage/triage.md, Limits)
_BORDER = ("|", "+")
"""The start of a table row."""
_BEGINS = (*_BORDER, "-", "=", "*", "#", "[", "{", ">")
"""The start of a line that continues no other."""


def unwrapped(text: Text) -> Iterator[Text]:
    """Yield the text with broken lines joined, as far as any look broken.

    First as a terminal breaks lines, in the last column, then as a mail program does, between
    words. A joined line has the number of its first part.
    """
    lines = text.lines
    if not 1 < len(lines) <= _MOST_LINES:
        return
    width = max((len(line.text) for line in lines if not line.text.startswith(_BORDER)), default=0)
    if not _NARROWEST <= width <= _WIDEST:
        return
    for between in (_cut, _between_words):
        joined = list(_joined(text, width, between))
        if len(joined) < len(lines):
            yield Text(joined)


def _joined(
    text: Text, width: int, between: Callable[[str, str, int], str | None]
) -> Iterator[Line]:
    held, last = text.lines[0], text.lines[0].text
    for index, line in enumerate(text.lines[1:], 1):
        stood = between(last, line.text, width) if last and line.text else None
        if stood is not None and (is_statement(last) or is_statement(line.text)):
            stood = None
        if stood is not None and _stands_by_itself(text, index):
            stood = None
        if stood is None or last.startswith(_BORDER) or len(held.text) > _LONGEST:
            yield held
            held = line
        else:
            held = Line(held.number, held.text + stood + line.text, held.speaker, held.file)
        last = line.text
    yield held


def _stands_by_itself(text: Text, index: int) -> bool:
    """Whether a program printed a line as it stands: its log or its listing has rows, no width."""
    if role_of(text, index) in PRINTED:
        return True
    return role_of(text, index - 1) in (Role.LISTING, Role.HELP)


def _cut(last: str, _following: str, width: int) -> str | None:
    """Return what was between two lines, None if the first does not fill the width."""
    return {0: "", 1: " "}.get(width - len(last))


def _between_words(last: str, following: str, width: int) -> str | None:
    """Return a blank if the next word would not have fitted, else None."""
    if following.startswith(_BEGINS) or following[0].isspace() or len(last) < width - _SLACK:
        return None
    return " " if len(last) + 1 + len(following.split(None, 1)[0]) > width else None
