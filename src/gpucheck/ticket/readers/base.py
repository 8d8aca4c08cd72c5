"""The machine that readers reconstruct from a pasted text."""

from typing import Any

import msgspec

from gpucheck.facts import Facts, Section
from gpucheck.facts.base import Draft
from gpucheck.facts.system import Environment
from gpucheck.language import say
from gpucheck.log_patterns.text import Line
from gpucheck.tables import Tables

NOT_PASTED = say("the text does not say")
"""The problem of every field that no reader filled."""


class Contradiction(msgspec.Struct, frozen=True):
    """A fact that was stated twice and differently: two machines, environments or ranks."""

    fact: str
    first: Any
    other: Any
    source: str


class _Recorded(Draft):
    """A draft that notes later statements that differ."""

    def __init__(self, path: str, others: list[Contradiction]) -> None:
        super().__init__()
        self.problems = {"*": NOT_PASTED}
        self._path = path
        self._others = others

    def fill(self, field: str, value: object, source: str) -> None:
        """Fill a field; the first statement stays, and a contradiction is noted."""
        first = self.fields.get(field, value)
        if first != value:
            self._others.append(Contradiction(f"{self._path}.{field}", first, value, source))
        super().fill(field, value, source)


class Machine:
    """The sections of the machine that a paste is about, while readers fill them.

    ``fill`` fills one field, ``item`` one entry of a list of facts, ``add`` a plain list and
    ``variable`` the environment. The first statement stays, so a more reliable reader runs earlier.
    ``others`` has the statements that contradict; ``tables`` are for readers that look up names.
    """

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.others: list[Contradiction] = []
        self._sections: dict[type[Section], _Recorded] = {}
        self._items: dict[tuple[type[Section], str], dict[Any, tuple[type[Facts], _Recorded]]] = {}
        self._lists: dict[tuple[type[Section], str], list[Any]] = {}
        self.spoken: list[Line] = []
        """The line of each statement; a reader that took nothing does not change it."""
        self.taken: dict[str, list[Line]] = {}
        """The lines that each reader used, for readers that took something."""

    def fill(self, kind: type[Section], field: str, value: object, line: Line) -> None:
        """Fill a field of a section."""
        self.spoken.append(line)
        self._of(kind).fill(field, value, line.source)

    def knows(self, kind: type[Section], field: str) -> bool:
        """Whether a field was filled."""
        return field in self._of(kind).fields or (kind, field) in self._lists

    def value(self, kind: type[Section], field: str) -> Any:  # noqa: ANN401  # of any field
        """Return the value of a filled field, None if it was not filled."""
        return self._of(kind).fields.get(field)

    def line_of(self, kind: type[Section], field: str) -> Line:
        """Return the source line of a field, which is also the source of what follows from it.

        Raises:
            KeyError: the field was not filled.
        """
        return Line(0, "", file=self._of(kind).sources[field])

    def unknown(self, kind: type[Section], field: str, why: str) -> None:
        """Note why a field stays unknown although the text mentions it ("Could not collect")."""
        self._of(kind).unknown(field, why)

    def item(
        self, kind: type[Section], field: str, of: type[Facts], key: object, line: Line
    ) -> Draft:
        """Return the draft of one entry of a list, created when its key is first seen.

        Entries are listed in the order of their keys if these are numbers, otherwise in order of
        arrival.
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
        """Append to a list of plain values, without duplicates."""
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
        """Return every section that was mentioned, by its name."""
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
