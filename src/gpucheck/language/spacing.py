"""Blanks in a Chinese sentence, where a parameter meets the words around it.

Chinese text has a blank between a Chinese character and a Latin letter or a digit, and none at
full-width punctuation. A template cannot know with which of them a parameter begins or ends.
"""

import functools
import re
import string
from collections.abc import Mapping

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_LATIN = re.compile(r"[0-9A-Za-z]")
_FULL_WIDTH = frozenset("，。；：、！？（）《》【】“”‘’")  # noqa: RUF001  # they are meant


def spaced(template: str, params: Mapping[str, object]) -> str:
    """Return a template filled in, with the blanks that belong at the ends of its parameters."""
    words = ""
    for part, is_parameter, after_parameter in _parts(template):
        piece = part.format_map(params) if is_parameter else part
        meets = is_parameter or after_parameter
        words = _joined(words, piece) if meets else words + piece
    return words


@functools.lru_cache(maxsize=1024)
def _parts(template: str) -> tuple[tuple[str, bool, bool], ...]:
    """Return the pieces of a template: whether each is a parameter, and whether it follows one."""
    parts: list[tuple[str, bool, bool]] = []
    for literal, name, form, conversion in string.Formatter().parse(template):
        if literal:
            parts.append((literal, False, bool(parts)))
        if name is not None:
            kind = f"!{conversion}" if conversion else ""
            parts.append((f"{{{name}{kind}{f':{form}' if form else ''}}}", True, True))
    return tuple(parts)


def _joined(before: str, after: str) -> str:
    left, right = before.rstrip(" "), after.lstrip(" ")
    if not left or not right:
        return before + after
    blank = left != before or right != after
    last, first = left[-1], right[0]
    if blank and first in _FULL_WIDTH and "://" in left.rpartition(" ")[2]:
        return before + after  # or the punctuation would be taken for a part of the address
    if first == "。" and "://" in left.rpartition(" ")[2]:
        return f"{left} {right}"
    if last in _FULL_WIDTH or first in _FULL_WIDTH or (_is_han(last) and _is_han(first)):
        return left + right if blank else before + after
    if not blank and (
        (_is_han(last) and _LATIN.match(first)) or (_LATIN.match(last) and _is_han(first))
    ):
        return f"{left} {right}"
    return before + after


def _is_han(char: str) -> bool:
    return _HAN.match(char) is not None
