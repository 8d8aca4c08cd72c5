"""Draft sections, which are filled from the given keys."""

from typing import Any, TypeVar

import msgspec

from gpucheck.facts import Facts, Section
from gpucheck.language import say

NOT_GIVEN = say("not given")
"""The problem of every field that no key mentions."""

F = TypeVar("F", bound=Facts)


class Missing(msgspec.Struct, frozen=True):
    """A given value that the tables do not have: the fact that it leaves open, and why."""

    fact: str
    reason: str


class Draft:
    """The fields of one group of facts, with the source or the problem of each."""

    def __init__(self) -> None:
        self.fields: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.problems: dict[str, str] = {"*": NOT_GIVEN}

    def fill(self, field: str, value: object, source: str) -> None:
        """Fill a field; the first value stays."""
        if field not in self.fields:
            self.fields[field] = value
            self.sources[field] = source

    def unknown(self, field: str, why: str) -> None:
        """Note why a field stays unknown, although the input mentions it."""
        self.problems[field] = why

    def build(self, kind: type[F]) -> F:
        """Return the group of facts."""
        return kind(**self.fields, sources=self.sources, problems=self.problems)


class Drafts:
    """One draft per section, and the given values that the tables do not have."""

    def __init__(self) -> None:
        self._drafts: dict[type[Section], Draft] = {}
        self.missing: list[Missing] = []

    def of(self, kind: type[Section]) -> Draft:
        """Return the draft of a section."""
        return self._drafts.setdefault(kind, Draft())

    def miss(self, fact: str, reason: str) -> None:
        """Note a given value that the tables do not have."""
        self.missing.append(Missing(fact, reason))

    def sections(self) -> dict[str, Section]:
        """Return every section that was mentioned, by its name."""
        return {kind.name: draft.build(kind) for kind, draft in self._drafts.items()}
