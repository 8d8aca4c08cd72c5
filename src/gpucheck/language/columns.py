"""How wide text is on a terminal, and where it may be broken: Chinese has no blanks."""

import functools
import re
from collections.abc import Iterator, Sequence

WIDTH = 80  # columns without a terminal; it and the range are promised in docs/architecture.md, 1.1
# Below it commands no longer fit; above it lines of prose are hard to read.
_NARROWEST, _WIDEST = 40, 120
_WIDE = ("W", "F")
_NO_LINE_BEGINS_WITH = "，。、；：？！）」』】》〉”’…—％,.;:?!)]}%"
_NO_LINE_ENDS_WITH = "（「『【《〈“‘([{"
_HAN = (("\u2e80", "\u9fff"), ("\uf900", "\ufaff"), ("\uff00", "\uffef"))
"""Chinese characters, their punctuation and full-width forms. A pattern of so many characters takes
longer to compile than a page to lay out."""
_BREAK = re.compile("(?<=[hb])(?=[hoEe])|(?<=[oB])(?=[he])")
"""Between the kinds of two characters: one is Chinese, and neither sign forbids it."""
_OFTEN = 4096  # characters that a long page in Chinese has; text of others may have any


def width_of(text: str) -> int:
    """Return the columns that a text takes on a terminal (Unicode Standard Annex 11)."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


@functools.lru_cache(_OFTEN)
def _columns(char: str) -> int:
    import unicodedata  # noqa: PLC0415  # most text is ASCII, and its import takes time

    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1


def padded(text: str, columns: int) -> str:
    """Return the text with blanks up to this many columns."""
    return text + " " * (columns - width_of(text))


def cut_to(text: str, columns: int) -> str:
    """Return as much of the text as fits into this many columns."""
    room = columns
    for at, char in enumerate(text):
        room -= width_of(char)
        if room < 0:
            return text[:at]
    return text


def chunks(text: str) -> Iterator[tuple[str, str]]:
    """Yield what a line must not break, each with the blank before it, if there is one.

    A word, a path or a number is whole. Between two Chinese characters a line may break, but not
    before a closing sign nor after an opening one.
    """
    for at, word in enumerate(text.split(" ")):
        blank = " " if at else ""
        for part in _parts(word):
            yield blank, part
            blank = ""


def _parts(word: str) -> Iterator[str]:
    begin = 0
    if not word.isascii():
        for place in _BREAK.finditer("".join(map(_kind, word))):
            yield word[begin : place.start()]
            begin = place.start()
    yield word[begin:]


@functools.lru_cache(_OFTEN)
def _kind(char: str) -> str:
    """Return "e" if no line ends with a Chinese sign, "b" if none begins with it, else "h".

    Of other characters it is the capital, or "o".
    """
    kind = "e" if char in _NO_LINE_ENDS_WITH else "b" if char in _NO_LINE_BEGINS_WITH else ""
    if any(first <= char <= last for first, last in _HAN):
        return kind or "h"
    return kind.upper() or "o"


def wrapped(words: str, width: int, indent: int = 0, hang: int = 0) -> Sequence[str]:
    """Return lines of at most ``width`` columns; a path or a name is never broken."""
    lines: list[str] = []
    line, start, columns = "", indent, 0
    for blank, chunk in chunks(words):
        more = len(blank) + width_of(chunk)
        if line and start + columns + more > width:
            lines.append(" " * start + line)
            line, start, columns = chunk, hang, more - len(blank)
        elif line:
            line, columns = f"{line}{blank}{chunk}", columns + more
        else:
            line, columns = chunk, more - len(blank)
    return [*lines, " " * start + line] if line else lines


def page_columns(width: int | None) -> int:
    """Return the columns of a page on a terminal of this width."""
    return min(max(width or WIDTH, _NARROWEST), _WIDEST)
