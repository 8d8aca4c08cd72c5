"""Sections under way, while the keys that were given are turned into their fields."""

from typing import Any, TypeVar

import msgspec

from gpucheck.facts import Facts, Section

NOT_GIVEN = "not given"
"""The problem of every field that no key speaks of."""

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

    def said(self, field: str, value: object, source: str) -> None:
        """Fill a field; what was said first stays."""
        if field not in self.fields:
            self.fields[field] = value
            self.sources[field] = source

    def unknown(self, field: str, why: str) -> None:
        """Say why a field stays unknown, although somebody spoke of it."""
        self.problems[field] = why

    def build(self, kind: type[F]) -> F:
        """Return the group of facts."""
        return kind(**self.fields, sources=self.sources, problems=self.problems)


class Drafts:
    """One draft a section, and what the tables do not have."""

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
        """Return every section that was spoken of, by its name."""
        return {kind.name: draft.build(kind) for kind, draft in self._drafts.items()}
