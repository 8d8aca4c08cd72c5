"""Which characters a reader sees. Every other one could act on a terminal, or hide text."""

import re
from collections.abc import Callable

_UNSEEN = (
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0000-\U000e0fff\u2800\U00013441\U00013442\U00016fe4\U0001d159]"
)
"""Characters of printing categories that show nothing: those that Unicode calls default ignorable
(joiners, Hangul fillers, variation selectors, tags), then blanks that are letters, marks or
symbols. An assistant reads what a person does not see."""


def is_visible(text: str) -> bool:
    """Whether a reader sees every character; a blank is one that is seen, and no other space is.

    Python's categories decide about control and format characters, lone surrogates, separators, and
    what is not assigned.
    """
    return text.isprintable() and (text.isascii() or re.search(_UNSEEN, text) is None)


def made_visible(text: str, instead: Callable[[str], str]) -> str:
    """Return the text with something else in place of each character that is not seen."""
    if is_visible(text):
        return text
    return "".join(char if is_visible(char) else instead(char) for char in text)


def encodable(text: str, encoding: str | None) -> str:
    """Return the text in a form that can always be written in this encoding."""
    encoding = encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeError:
        return text.encode(encoding, "backslashreplace").decode(encoding)
    except LookupError:
        return text.encode("ascii", "backslashreplace").decode()
    return text
