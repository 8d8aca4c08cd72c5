# ruff: noqa: INP001  # a script of this repository
"""Finds the texts that one machine says everywhere instead of another one's: ``[instead]``.

Candidates come from paths that differ in one part and from lines that differ in a word. Each is
tried, and kept where the machine's file becomes shorter for the reader.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from machine_difference import cost, difference
from machine_sections import BY_PATH, Sections, said_instead

_SHORTEST = 3
_LONGEST = 40
_TRIED = 60
_PASSES = 3
_WORTH = 60
"""How much shorter a file must become (see ``cost``), so that texts are not replaced by chance."""
_WORDS = re.compile(
    r"""[0-9a-fA-F]{4}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9]  # a place on the PCI bus
    | [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}  # a UUID
    | [0-9a-f]{40}  # a commit
    | python[0-9.]*[0-9]
    | [0-9]\w*(?:\.[0-9]\w*)*(?:\+\w+)?  # a version
    | [A-Za-z]+
    | .""",
    re.VERBOSE,
)
_DIGIT = re.compile("[0-9]")
_NUMBER = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}(?::[0-9a-f]{2}\.[0-9])?|[0-9][0-9a-f.]*(?:\+\w+)?")


def instead_of(base: Sections, own: Sections) -> dict[str, str]:
    """Return texts of the base, and what the machine says instead of each."""

    def reached(instead: dict[str, str]) -> float:
        try:
            replaced = said_instead(base, instead)
        except ValueError:  # one is a part of another and replaces nothing any more
            return math.inf
        return cost({"instead": instead, **difference(replaced, own)})

    best = reached({})
    alone = {pair: reached(dict([pair])) for pair in _candidates(base, own)}
    found: dict[str, str] = {}
    for _ in range(_PASSES):  # a text may be worth it only after another one
        before = len(found)
        for old, new in sorted(alone, key=lambda pair: (alone[pair], pair)):
            if old in found:
                continue
            trial = {**found, old: new}
            if (now := reached(trial)) < best - _WORTH:
                found, best = trial, now
        if len(found) == before:
            break
    return dict(sorted(found.items()))


def _candidates(base: Sections, own: Sections) -> list[tuple[str, str]]:
    """Return words and short texts at the same positions, the most frequent first."""
    counted: Counter[tuple[str, str]] = Counter()
    for old, new in (*_differing_paths(base, own), *_differing_texts(base, own)):
        for pair in {(old, new), *_differing_words(old, new)}:
            lengths = [len(text) for text in pair]
            if min(lengths) >= _SHORTEST and max(lengths) <= _LONGEST and _DIGIT.search(pair[0]):
                counted[pair] += 1
    ranked = sorted(counted, key=lambda pair: (-counted[pair] * len(pair[1]), pair))
    texts = list(_texts(base))
    return [pair for pair in ranked if _is_said_twice(pair[0], texts)][:_TRIED]


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401  # JSON-like
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _is_said_twice(word: str, texts: list[str]) -> bool:
    """Whether it occurs twice, or in a text of several lines that would be repeated."""
    found = [text for text in texts if word in text]
    return len(found) > 1 or any("\n" in text[:-1] for text in found)


def _differing_paths(base: Sections, own: Sections) -> Iterator[tuple[str, str]]:
    """Yield what differs of paths that differ in numbers only: a part, or several in a row."""
    for name in BY_PATH:
        left, right = base.get(name, {}).keys(), own.get(name, {}).keys()
        new: dict[str, list[str]] = {}
        for path in sorted(right - left):
            new.setdefault(_NUMBER.sub("#", path), []).append(path)
        for path in sorted(left - right):
            for other in new.get(_NUMBER.sub("#", path), ()):
                pairs = list(zip(path.split("/"), other.split("/"), strict=True))
                places = [at for at, (a, b) in enumerate(pairs) if a != b]
                yield from (pairs[at] for at in places)
                row = list(zip(*pairs[places[0] : places[-1] + 1], strict=True))
                yield "/".join(row[0]), "/".join(row[1])


def _differing_texts(base: Any, own: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401  # JSON-like
    """Yield texts, or lines of them, that are at the same position in both."""
    if isinstance(base, dict) and isinstance(own, dict):
        for key in base.keys() & own.keys():
            yield from _differing_texts(base[key], own[key])
    elif isinstance(base, list) and isinstance(own, list):
        for left, right in zip(base, own, strict=False):
            yield from _differing_texts(left, right)
    elif isinstance(base, str) and isinstance(own, str):
        lines = base.split("\n"), own.split("\n")
        if len(lines[0]) == len(lines[1]):
            yield from ((a, b) for a, b in zip(*lines, strict=True) if a != b)


def _differing_words(old: str, new: str) -> Iterator[tuple[str, str]]:
    words = _WORDS.findall(old), _WORDS.findall(new)
    if len(words[0]) == len(words[1]):
        yield from ((a, b) for a, b in zip(*words, strict=True) if a != b)
