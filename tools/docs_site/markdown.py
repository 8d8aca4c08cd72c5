"""Text as Markdown that shows exactly this text: nothing in it is markup."""

import re
from collections.abc import Callable

_SIGNS = re.compile(r"([!-/:-@\[-`{-~])")
"""ASCII punctuation: CommonMark lets a backslash stand before each of these signs."""
_CODE = re.compile(r"`([^`]+)`")
_TICKS = re.compile("`+")
_SLUG = re.compile(r"(?<![\w./-])[a-z0-9]+(?:-[a-z0-9]+)+(?![\w/-])", re.ASCII)


def plain(text: str) -> str:
    """Return Markdown that shows a text on one line."""
    return _SIGNS.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Return Markdown that shows a text on one line as code."""
    fence = "`" * (_longest_run(text) + 1)
    line = " ".join(text.split())
    return (
        f"{fence} {line} {fence}" if line[:1] == "`" or line[-1:] == "`" else fence + line + fence
    )


def block(text: str, language: str = "text") -> str:
    """Return Markdown that shows the lines of a text as they are."""
    fence = "`" * max(3, _longest_run(text) + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"


def prose(text: str, link: Callable[[str], str | None]) -> str:
    """Return Markdown that shows a text of gpucheck, in which `` `code` `` is code.

    Args:
        text: the text.
        link: returns where the name of a finding leads; None for other words.
    """
    pieces = _CODE.split(" ".join(text.split()))
    return "".join(
        code(piece) if at % 2 else _linked(piece, link) for at, piece in enumerate(pieces)
    )


def _linked(text: str, link: Callable[[str], str | None]) -> str:
    done, end = [], 0
    for found in _SLUG.finditer(text):
        target = link(found[0])
        if target:
            done += [plain_within(text[end : found.start()]), f"[{plain(found[0])}]({target})"]
            end = found.end()
    return "".join([*done, plain_within(text[end:])])


def plain_within(text: str) -> str:
    """Return Markdown that shows a part of a line, blanks at its ends included."""
    return _SIGNS.sub(r"\\\1", text)


def _longest_run(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)
