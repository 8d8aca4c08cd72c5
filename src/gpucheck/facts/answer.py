"""A machine's answer to a question, and the notes about its sources and problems."""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from gpucheck.language import Sentence, in_their_words, say

T = TypeVar("T")
U = TypeVar("U")

NOT_RECORDED = say("not recorded")
"""The problem of what a recording does not hold: nobody asked, so it is no lack of the machine."""

_OF_SYSTEMS = {
    str(words): words
    for words in (
        say("EACCES: Permission denied"),
        say("EPERM: Operation not permitted"),
        say("EIO: Input/output error"),
        say("ENODEV: No such device"),
        say("ENXIO: No such device or address"),
        say("EINVAL: Invalid argument"),
        say("ESTALE: Stale file handle"),
        say("ENOMEM: Cannot allocate memory"),
        say("EMFILE: Too many open files"),
        say("ELOOP: Too many levels of symbolic links"),
        say("ENAMETOOLONG: File name too long"),
    )
}
"""What Linux says of the errors of a file, which have translations."""


class Answer(msgspec.Struct, Generic[T], frozen=True):
    """The machine's answer to one question: a value and its source, or a problem.

    ``missing`` distinguishes a thing that does not exist (the machine answered) from one that could
    not be read (the machine did not answer).
    """

    value: T | None
    source: str
    problem: str = ""
    missing: bool = False

    @property
    def complaint(self) -> str:
        """Why there is no value, with the source before it."""
        problem = in_their_words(self.problem)
        why = _OF_SYSTEMS.get(self.problem, problem) or say("no answer")
        return say("{source}: {why}", source=self.source, why=why) if self.source else why

    def map(self, read: Callable[[T], U | None]) -> "Answer[U]":
        """Convert the value with ``read``; None, or an error of a malformed value, is a problem."""
        if self.value is None:
            return Answer(None, self.source, self.problem, self.missing)
        try:
            value = read(self.value)
        except (ValueError, LookupError, RecursionError) as error:
            return Answer(
                None, self.source, say("not understood: {error}", error=message_of(error))
            )
        return Answer(value, self.source, "" if value is not None else say("not understood"))

    def absent(self, value: T) -> "Answer[T]":
        """Return ``value`` for a thing that does not exist: absence is a value, not a problem."""
        return Answer(value, self.source) if self.missing else self


def message_of(error: BaseException) -> str:
    """Return the message of an error: the sentence that it was raised with, or else its text."""
    ours = next((part for part in error.args if isinstance(part, Sentence)), None)
    return str(error) if ours is None else ours


class Notes:
    """Collects the sources and problems of a section while its fields are filled."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self.problems: dict[str, str] = {}

    def take(self, field: str, answer: Answer[T]) -> T | None:
        """Note the source or the problem of the field, and return its value."""
        if answer.value is None:
            self.problems[field] = answer.complaint
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

    def known(self, field: str, source: str) -> None:
        """Note the source of a field that was computed here."""
        self.sources[field] = source
