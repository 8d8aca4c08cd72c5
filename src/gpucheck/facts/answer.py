"""What a machine answers to a question, and how its sources and problems are noted."""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")
U = TypeVar("U")

NOT_RECORDED = "not recorded"
"""The problem of what a recording does not hold: nobody asked, so it is no lack of the machine."""


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
