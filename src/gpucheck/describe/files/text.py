"""The text of an untrusted file, within limits."""

import re

from gpucheck.facts.numbers import whole_number
from gpucheck.facts.streams import in_utf_8
from gpucheck.language import say

# Chosen, and promised in docs/describe/lint.md. Lock files of uv have some hundred KB; a line that
# is longer is data or a key, and nothing is installed in it.
LARGEST = 2 * 1024 * 1024
LONGEST_LINE = 8192
MOST_LINES = 100_000
_QUOTED = re.compile(r"""(["'])((?:(?!\1).){1,500})\1""")


class UnreadableError(ValueError):
    """The file cannot be read; the message is one sentence for the user."""


def text_of(data: bytes) -> str:
    """Return the content as text; a line that nobody has written by hand becomes empty.

    Raises:
        UnreadableError: it is too large, or no text.
    """
    if len(data) > LARGEST:
        raise UnreadableError(say("it is larger than {size} MiB", size=LARGEST >> 20))
    try:
        data = in_utf_8(data)
        text = data.decode()
    except UnicodeDecodeError as error:
        if b"\0" in data:
            raise UnreadableError(say("it is not a text file")) from error
        raise UnreadableError(say("it is not encoded in UTF-8")) from error
    if "\0" in text:
        raise UnreadableError(say("it is not a text file"))
    lines = text.replace("\r\n", "\n").split("\n")
    if len(lines) > MOST_LINES:
        raise UnreadableError(say("it has more than {most} lines", most=MOST_LINES))
    return "\n".join(line if len(line) <= LONGEST_LINE else "" for line in lines)


def line_with(lines: list[str], words: tuple[str, ...], start: int = 1) -> int:
    """Return the number of the first line, from ``start`` on, that has all words; else ``start``.

    Of a language whose parser gives no line numbers.
    """
    for number, line in enumerate(lines[start - 1 :], start):
        if all(word in line for word in words):
            return number
    return start


def lines_of_keys(lines: list[str], start: int) -> dict[str, int]:
    """Return the first line, from ``start`` on, that sets each key of a TOML file."""
    found: dict[str, int] = {}
    for number, line in enumerate(lines[start - 1 :], start):
        key, equals, _ = line.partition("=")
        if equals:
            found.setdefault(key.strip().strip("\"'"), number)
    return found


def lines_of_texts(lines: list[str]) -> dict[str, int]:
    """Return the first line of each text in quotes."""
    found: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        for match in _QUOTED.finditer(line):
            found.setdefault(match[2], number)
    return found


def number_of(text: str) -> int | None:
    """Return a small whole number; None for anything else."""
    return whole_number(text.strip()) if len(text) < LONGEST_LINE else None
