"""What a fact is: a typed value that may be unknown, with where it was read or why it was not.

``None`` means *unknown* and nothing else; that something is not there is a value (``False``,
``""`` or an empty list). A section says where each of its fields was read (``sources``) and why a
field is unknown (``problems``); the key ``"*"`` speaks for every field without an entry.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Literal, TypeVar

import msgspec

T = TypeVar("T")
U = TypeVar("U")

PrivateKind = Literal["host", "user", "path", "paths", "address", "uuid", "variables", "package"]


class Private(msgspec.Struct, frozen=True):
    """Marks a field, by ``Annotated``, whose value says who or where the user is."""

    kind: PrivateKind


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """A group of facts with the source or the problem of each."""

    sources: dict[str, str] = {}
    problems: dict[str, str] = {}

    def source(self, field: str) -> str:
        """Return where the field was read, "" when nobody said."""
        return self.sources.get(field) or self.sources.get("*", "")

    def problem(self, field: str) -> str:
        """Return why the field is unknown, "" when nobody said."""
        return self.problems.get(field) or self.problems.get("*", "")


class Section(Facts, frozen=True, kw_only=True):
    """The facts of one probe; ``name`` is its key in a snapshot and the start of a fact's path."""

    name: ClassVar[str] = ""


class UnknownFactError(Exception):
    """A rule needs a fact that nobody knows.

    Args:
        fact: the path of the fact, such as ``driver.release``.
        reason: why it is unknown; "" lets the engine look the reason up in the snapshot.
    """

    def __init__(self, fact: str, reason: str = "") -> None:
        super().__init__(f"{fact}: {reason}" if reason else fact)
        self.fact = fact
        self.reason = reason


def known(value: T | None, fact: str) -> T:
    """Return the value, or make the outcome of the rule "unknown" for want of this fact.

    Raises:
        UnknownFactError: the value is None.
    """
    if value is None:
        raise UnknownFactError(fact)
    return value


class Answer(msgspec.Struct, Generic[T], frozen=True):
    """What the machine answered to one question: a value and its source, or a problem.

    ``missing`` tells a thing that is not there (the machine answered) from one that could not be
    read (the machine did not).
    """

    value: T | None
    source: str
    problem: str = ""
    missing: bool = False

    def map(self, read: Callable[[T], U | None]) -> "Answer[U]":
        """Read the value with ``read``; a ValueError or None makes it a problem."""
        if self.value is None:
            return Answer(None, self.source, self.problem, self.missing)
        try:
            value = read(self.value)
        except (ValueError, LookupError) as error:
            return Answer(None, self.source, f"not understood: {error}")
        return Answer(value, self.source, "" if value is not None else "not understood")

    def absent(self, value: T) -> "Answer[T]":
        """Take ``value`` for a thing that is not there: absence is a value, not a problem."""
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
        """Take the first answer that has a value; when none has, the first real problem."""
        for answer in answers:
            if answer.value is not None:
                return self.take(field, answer)
        worst = next((a for a in answers if not a.missing), answers[0])
        return self.take(field, worst)

    def unknown(self, field: str, why: str) -> None:
        """Say why a field stays unknown."""
        self.problems[field] = why

    def said(self, field: str, source: str) -> None:
        """Say where a field that was worked out here comes from."""
        self.sources[field] = source


def builtins(value: object) -> Any:  # noqa: ANN401  # JSON-like data has no narrower type
    """Turn structs into dictionaries and lists, for JSON."""
    return msgspec.to_builtins(value)
