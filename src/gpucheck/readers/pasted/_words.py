"""What a text is made of, so that most literals are known not to stand there without a search."""

import functools

_SHAPE = bytes.maketrans(b"0123456789", b"0" * 10)
"""Makes a 0 of every digit of ASCII."""
_LETTERS = bytes(code if chr(code) in "abcdefghijklmnopqrstuvwxyz" else 32 for code in range(256))
"""Makes a blank of every byte that is no letter of ASCII."""


def shapes(lower: str) -> tuple[str, str]:
    """Return the different lines of a lower-case text, each digit as 0, and their words.

    With their digits alike the lines of a log are a few that repeat: they are searched instead.
    """
    lines = b"\n".join(set(_shaped(lower).split(b"\n")))
    words = b" ".join(set(lines.split()))
    return lines.decode("utf-8", "replace"), words.decode("utf-8", "replace")


@functools.lru_cache(maxsize=8192)
def shape_of(literal: str) -> tuple[str, str, bool]:
    """Return the longest word and line of a literal, each digit as 0.

    The third tells whether to look for the literal itself, too: it has digits or several lines.
    """
    shaped = _shaped(literal).decode("utf-8", "replace")
    word = max(shaped.split(), key=len, default="")
    return word, max(shaped.split("\n"), key=len), "0" in shaped or "\n" in shaped


def runs(lower: str) -> set[str]:
    """Return the runs of letters of ASCII in a lower-case text."""
    return set(lower.encode("utf-8", "replace").translate(_LETTERS).decode("ascii").split())


def _shaped(lower: str) -> bytes:
    return lower.encode("utf-8", "replace").translate(_SHAPE)
