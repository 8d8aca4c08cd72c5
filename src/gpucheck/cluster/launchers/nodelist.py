"""Slurm's short forms: lists of nodes (``node[01-03,7],gpu-a``) and of counts (``2(x3),1``)."""

import itertools
import re

_LONGEST = 1024 * 1024
"""Characters of a list."""
_MOST = 100_000
"""Names or counts of a list."""
_COUNT = re.compile(r"(\d{1,6})(?:\(x(\d{1,6})\))?", re.ASCII)
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9._-]{0,253}", re.ASCII)


def hosts(text: str) -> list[str]:
    """Expand a list of nodes, in its order.

    A name may have several brackets; as in Slurm, the last one counts fastest.

    Raises:
        ValueError: it is not a list of nodes, or it is too long.
    """
    if len(text) > _LONGEST:
        raise ValueError("a list of nodes of more than 1 MiB")
    found: list[str] = []
    for item in _items(text):
        found += _names(item, _MOST - len(found))
    return found


def counts(text: str) -> list[int]:
    """Expand a list of counts, such as tasks per node: ``2(x3),1`` is 2, 2, 2, 1.

    Raises:
        ValueError: it is not such a list, or it is too long.
    """
    found: list[int] = []
    for item in text[:_LONGEST].split(","):
        match = _COUNT.fullmatch(item)
        if not match:
            raise ValueError(f"{item[:40]!r} is no count")
        times = int(match[2] or 1)
        if len(found) + times > _MOST:
            raise ValueError(f"more than {_MOST} nodes")
        found += [int(match[1])] * times
    return found


def _items(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    items, start, inside = [], 0, False
    for place, letter in enumerate(text):
        if letter == "[" and not inside:
            inside = True
        elif letter == "]" and inside:
            inside = False
        elif letter in "[]":
            raise ValueError(f"brackets that do not fit in {text[:40]!r}")
        elif letter == "," and not inside:
            items.append(text[start:place])
            start = place + 1
    if inside:
        raise ValueError(f"a bracket that stays open in {text[:40]!r}")
    return [*items, text[start:]]


def _names(item: str, most: int) -> list[str]:
    parts = re.split(r"[\[\]]", item)
    choices: list[list[str]] = []
    total = 1
    for index, part in enumerate(parts):
        choice = _numbers(part, most) if index % 2 else [part]
        if not all(_NAME.fullmatch(one) for one in choice):
            raise ValueError(f"{part[:40]!r} is no name of a node")
        total *= len(choice)
        if total > most:
            raise ValueError(f"more than {_MOST} nodes")
        choices.append(choice)
    names = ["".join(one) for one in itertools.product(*choices)]
    if not all(names):
        raise ValueError("a node without a name")
    return names


def _numbers(text: str, most: int) -> list[str]:
    """Expand the content of brackets; a number keeps its leading zeros."""
    found: list[str] = []
    for item in text.split(","):
        match = _RANGE.fullmatch(item)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not match or last < first:
            raise ValueError(f"{item[:40]!r} is no range of numbers")
        if len(found) + last - first >= most:
            raise ValueError(f"more than {_MOST} nodes")
        found += [f"{number:0{len(match[1])}d}" for number in range(first, last + 1)]
    return found
