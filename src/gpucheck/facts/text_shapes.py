"""Forms in which private values stand in texts of others: how they are written and tried."""

import re
from collections.abc import Iterator
from typing import NamedTuple


class Shape(NamedTuple):
    """A form, and words in lower case without one of which it cannot occur; () if there are none.

    Its groups are the private values. Of a group called ``list`` each item is one.
    """

    words: tuple[str, ...]
    pattern: re.Pattern[str]


def shape(words: str, pattern: str, flags: int = 0) -> Shape:
    """Return a form; ``words`` has ``|`` between its words."""
    return Shape(tuple(words.split("|")) if words else (), re.compile(pattern, flags))


class Shapes:
    """Forms in their order, of which those are tried that can occur in a text."""

    def __init__(self, *shapes: Shape) -> None:
        self._patterns = [shape.pattern for shape in shapes]
        self._always = {at for at, shape in enumerate(shapes) if not shape.words}
        self._places: dict[str, list[int]] = {}
        for at, shape in enumerate(shapes):
            for word in shape.words:
                self._places.setdefault(word, []).append(at)

    def fitting(self, text: str) -> Iterator[re.Pattern[str]]:
        """Yield the patterns that may find something in a text."""
        lower = text.lower()
        found = set(self._always)
        for word, places in self._places.items():
            if word in lower:
                found.update(places)
        return (self._patterns[at] for at in sorted(found))

    def values(self, text: str) -> Iterator[str]:
        """Yield what is private in a text, without the full stop of its sentence."""
        return (value for _group, value in self.named(text))

    def named(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield what is private in a text, as ``values``, after the name of its group."""
        for pattern in self.fitting(text):
            for found in pattern.finditer(text):
                for group, name in found.groupdict().items():
                    yield from ((group, part) for part in parts_of(group, name or ""))


def parts_of(group: str, name: str) -> Iterator[str]:
    """Yield the values of a group; a list is split at brackets, ports, commas and blanks."""
    parts = _OF_LIST.split(name) if group == "list" else (name,)
    return (part.rstrip(".-") for part in parts if part)


_OF_LIST = re.compile(r"\[[^\]]{0,1000}\]?|:\d{1,5}|[,\s\]]+")
