"""A pasted text as numbered clean lines, and the machine that readers put together from it."""

import bisect
import itertools
import sys
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from gpucheck.facts import Facts, Section
from gpucheck.probes.environment import Environment
from gpucheck.readers._drafts import Draft
from gpucheck.readers.pasted._words import ByPiece, Shapes, by_piece, pieces, runs, shape_of
from gpucheck.tables import Tables

T = TypeVar("T")

NOT_PASTED = "nothing pasted says it"
"""The problem of every field that no reader filled."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """One line without quoting, prefixes, escape sequences; ``number`` counts as an editor does.

    ``speaker`` is the rank or the host that a prefix names ("rank 3"), "" where none does.
    """

    number: int
    text: str
    speaker: str = ""
    file: str = ""

    @property
    def source(self) -> str:
        """How evidence names the line: ``line 12``, or ``log.txt line 12`` of several files."""
        return f"{self.file} line {self.number}".lstrip() if self.number else self.file


class Text:
    """Lines of a paste; of a long log those that may matter, so numbers may have gaps."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.lines = list(lines)
        texts = [line.text for line in self.lines]
        self.lower = "\n".join(texts).lower()
        if not self.lower.isascii():  # some letters of other scripts change their length
            texts = [text.lower() for text in texts]
            self.lower = "\n".join(texts)
        lengths = map((1).__add__, map(len, texts))  # with the ends of the lines
        self._starts = list(itertools.accumulate(lengths, initial=0))
        self._shapes = Shapes(self.lower, self._starts)
        self._words = self._shapes.words()
        self._pieces = pieces(self._words)
        self._held: dict[str, bool] = {}
        self._found: dict[tuple[str, int], list[int]] = {}

    def holds(self, literal: str) -> bool:
        """Whether a lower-case literal stands in the text."""
        known = self._held.get(literal)
        if known is None:
            word, shape, look = shape_of(literal)
            known = word in self._words and shape in self._shapes.text
            known = known and (not look or literal in self.lower)
            self._held[literal] = known
        return known

    def held(self, literals: tuple[str, ...]) -> list[str]:
        """Return which of the lower-case literals stand in the text, in any order."""
        possible = by_piece(literals).possible(self._pieces)
        return list(filter(self.holds, possible)) if possible else possible

    def possible(self, things: ByPiece[T]) -> list[T]:
        """Return the things whose literal may stand in the text; ``holds`` tells of each."""
        return things.possible(self._pieces)

    def words(self) -> set[str]:
        """Return the runs of letters of ASCII in the text, in lower case."""
        return runs(self._words)

    def find(self, *literals: str, most: int = sys.maxsize) -> list[int]:
        """Return the indexes of the lines that hold one of the lower-case literals, in order.

        Of each literal at most so many lines are looked for.
        """
        held = self.held(literals) if len(literals) > 1 else list(filter(self.holds, literals))
        if len(held) == 1:
            return self._lines_with(held[0], most)
        return sorted({index for literal in held for index in self._lines_with(literal, most)})

    def _lines_with(self, literal: str, most: int) -> list[int]:
        """Return the first lines that hold a literal; several signatures ask for the same one."""
        found = self._found.get((literal, most))
        if found is not None:
            return found
        _, shape, look = shape_of(literal)
        found = self._search(literal, most) if look else self._shapes.find(shape, most)
        self._found[literal, most] = found
        return found

    def _search(self, literal: str, most: int) -> list[int]:
        found: list[int] = []
        lower, starts, index = self.lower, self._starts, 0
        at = lower.find(literal)
        while at >= 0 and len(found) < most:
            index = bisect.bisect_right(starts, at, index) - 1
            found.append(index)
            at = lower.find(literal, starts[index + 1])
        return found

    def after(self, index: int, most: int) -> list[Line]:
        """Return the lines that follow an index, at most so many, up to a gap in the numbers."""
        found = self.lines[index + 1 : index + 1 + most]
        last = self.lines[index]
        for at, line in enumerate(found):
            if line.number - last.number > 1 or line.file != last.file:
                return found[:at]
            last = line
        return found


class Contradiction(msgspec.Struct, frozen=True):
    """A fact that was said twice and differently: two machines, environments or ranks."""

    fact: str
    first: Any
    other: Any
    source: str


class _Recorded(Draft):
    """A draft that notes what was said differently later on."""

    def __init__(self, path: str, others: list[Contradiction]) -> None:
        super().__init__()
        self.problems = {"*": NOT_PASTED}
        self._path = path
        self._others = others

    def said(self, field: str, value: object, source: str) -> None:
        """Fill a field; what was said first stays, and a contradiction is noted."""
        first = self.fields.get(field, value)
        if first != value:
            self._others.append(Contradiction(f"{self._path}.{field}", first, value, source))
        super().said(field, value, source)


class Machine:
    """The sections of the machine that a paste is about, while readers fill them.

    ``said`` fills one field, ``item`` one entry of a list of facts, ``add`` a plain list and
    ``variable`` the environment. What is said first stays: a reader that is to be believed more
    runs earlier. ``others`` holds what contradicts; ``tables`` are for readers that look up names.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.others: list[Contradiction] = []
        self._sections: dict[type[Section], _Recorded] = {}
        self._items: dict[tuple[type[Section], str], dict[Any, tuple[type[Facts], _Recorded]]] = {}
        self._lists: dict[tuple[type[Section], str], list[Any]] = {}
        self.spoken: list[Line] = []
        """The line of each thing that was said: a reader that took nothing leaves it as it was."""
        self.taken: dict[str, list[Line]] = {}
        """Of each reader that took something the lines of what it took."""

    def said(self, kind: type[Section], field: str, value: object, line: Line) -> None:
        """Fill a field of a section."""
        self.spoken.append(line)
        self._of(kind).said(field, value, line.source)

    def knows(self, kind: type[Section], field: str) -> bool:
        """Whether a field was filled."""
        return field in self._of(kind).fields or (kind, field) in self._lists

    def value(self, kind: type[Section], field: str) -> Any:  # noqa: ANN401  # of any field
        """Return what a field was filled with, None when it was not."""
        return self._of(kind).fields.get(field)

    def line_of(self, kind: type[Section], field: str) -> Line:
        """Return a line that stands for the source of a field: what follows from it has the same.

        Raises:
            KeyError: the field was not filled.
        """
        return Line(0, "", file=self._of(kind).sources[field])

    def unknown(self, kind: type[Section], field: str, why: str) -> None:
        """Say why a field stays unknown although somebody spoke of it ("Could not collect")."""
        self._of(kind).unknown(field, why)

    def item(
        self, kind: type[Section], field: str, of: type[Facts], key: object, line: Line
    ) -> Draft:
        """Return the draft of one entry of a list, made when its key is first seen.

        Entries are listed in the order of their keys where these are numbers, else as they came.
        """
        self.spoken.append(line)
        entries = self._items.setdefault((kind, field), {})
        if key not in entries:
            path = f"{kind.name}.{field}.{len(entries)}"
            entries[key] = (of, _Recorded(path, self.others))
            self._of(kind).sources.setdefault(field, line.source)
        return entries[key][1]

    def items(self, kind: type[Section], field: str) -> dict[Any, Draft]:
        """Return the drafts of a list by their keys."""
        return {key: draft for key, (_, draft) in self._items.get((kind, field), {}).items()}

    def add(self, kind: type[Section], field: str, value: object, line: Line) -> None:
        """Append to a list of plain values; what is there already is not repeated."""
        self.spoken.append(line)
        values = self._lists.setdefault((kind, field), [])
        if value not in values:
            values.append(value)
        self._of(kind).sources.setdefault(field, line.source)

    def variable(self, name: str, value: str, line: Line) -> None:
        """Note an environment variable."""
        self.spoken.append(line)
        draft = self._of(Environment)
        variables = draft.fields.setdefault("variables", {})
        if variables.setdefault(name, value) != value:
            fact = f"environment.variables.{name}"
            self.others.append(Contradiction(fact, variables[name], value, line.source))
        draft.sources.setdefault("variables", line.source)

    def sections(self) -> dict[str, Section]:
        """Return every section that was spoken of, by its name."""
        for (kind, field), values in self._lists.items():
            self._of(kind).fields.setdefault(field, values)
        for (kind, field), entries in self._items.items():
            keys = list(entries)
            if all(isinstance(key, int) for key in keys):
                keys.sort()
            built = [entries[key][1].build(entries[key][0]) for key in keys]
            self._of(kind).fields.setdefault(field, built)
        return {kind.name: draft.build(kind) for kind, draft in self._sections.items()}

    def _of(self, kind: type[Section]) -> _Recorded:
        if kind not in self._sections:
            self._sections[kind] = _Recorded(kind.name, self.others)
        return self._sections[kind]
