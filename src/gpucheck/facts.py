"""Facts: typed values that may be unknown, with where they were read or why they were not.

``None`` means *unknown* and nothing else. The absence of something is a value (``False``, ``""`` or
an empty list). A section records where each of its fields was read (``sources``) and why a field is
unknown (``problems``); the key ``"*"`` applies to every field without an entry.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Literal, TypeVar

import msgspec

T = TypeVar("T")
U = TypeVar("U")

PrivateKind = Literal["host", "user", "path", "paths", "address", "uuid", "variables", "package"]


class Private(msgspec.Struct, frozen=True):
    """Marks a field, in ``Annotated``, whose value reveals who or where the user is."""

    kind: PrivateKind


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """A group of facts with the source or the problem of each."""

    sources: dict[str, str] = {}
    problems: dict[str, str] = {}

    def source(self, field: str) -> str:
        """Return where the field was read, "" if not recorded."""
        return self.sources.get(field) or self.sources.get("*", "")

    def problem(self, field: str) -> str:
        """Return why the field is unknown, "" if not recorded."""
        return self.problems.get(field) or self.problems.get("*", "")


class Section(Facts, frozen=True, kw_only=True):
    """The facts of one probe; ``name`` is its key in a snapshot and the start of a fact's path."""

    name: ClassVar[str] = ""


class UnknownFactError(Exception):
    """A rule needs a fact that is unknown.

    Args:
        fact: the path of the fact, such as ``driver.release``.
        reason: why it is unknown; with "" the engine looks up the reason in the snapshot.
    """

    def __init__(self, fact: str, reason: str = "") -> None:
        super().__init__(f"{fact}: {reason}" if reason else fact)
        self.fact = fact
        self.reason = reason


def known(value: T | None, fact: str) -> T:
    """Return the value; if it is unknown, the outcome of the rule becomes "unknown".

    Args:
        value: the value, or None.
        fact: the path of the fact.

    Raises:
        UnknownFactError: the value is None.
    """
    if value is None:
        raise UnknownFactError(fact)
    return value


class Answer(msgspec.Struct, Generic[T], frozen=True):
    """The machine's answer to one question: a value and its source, or a problem.

    ``missing`` distinguishes a thing that does not exist (the machine answered) from one that could
    not be read (the machine did not answer).
    """

    value: T | None
    source: str
    problem: str = ""
    missing: bool = False

    def map(self, read: Callable[[T], U | None]) -> "Answer[U]":
        """Convert the value with ``read``; a ValueError or None makes it a problem."""
        if self.value is None:
            return Answer(None, self.source, self.problem, self.missing)
        try:
            value = read(self.value)
        except (ValueError, LookupError) as error:
            return Answer(None, self.source, f"not understood: {error}")
        return Answer(value, self.source, "" if value is not None else "not understood")

    def absent(self, value: T) -> "Answer[T]":
        """Return ``value`` for a thing that does not exist: absence is a value, not a problem."""
        return Answer(value, self.source) if self.missing else self


class Notes:
    """Collects the sources and problems of a section while its fields are filled."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self.problems: dict[str, str] = {}

    def take(self, field: str, answer: Answer[T]) -> T | None:
        """Note where the field comes from, or what was wrong, and return its value."""
        if answer.value is None:
            why = answer.problem or "no answer"
            self.problems[field] = f"{answer.source}: {why}" if answer.source else why
        else:
            self.sources[field] = answer.source
        return answer.value

    def first(self, field: str, *answers: Answer[T]) -> T | None:
        """Take the first answer that has a value; if none has, note the first real problem."""
        for answer in answers:
            if answer.value is not None:
                return self.take(field, answer)
        worst = next((a for a in answers if not a.missing), answers[0])
        return self.take(field, worst)

    def unknown(self, field: str, why: str) -> None:
        """Note why a field stays unknown."""
        self.problems[field] = why

    def said(self, field: str, source: str) -> None:
        """Note the source of a field that was computed here."""
        self.sources[field] = source


def builtins(value: object) -> Any:  # noqa: ANN401  # JSON-like data has no narrower type
    """Turn structs into dictionaries and lists, for JSON."""
    return msgspec.to_builtins(value)
