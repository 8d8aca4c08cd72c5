"""Facts: typed values that may be unknown, with where they were read or why they were not.

``None`` means *unknown* and nothing else. The absence of something is a value (``False``, ``""`` or
an empty list). A section records where each of its fields was read (``sources``) and why a field is
unknown (``problems``); the key ``"*"`` applies to every field without an entry.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Literal, TypeVar

import msgspec

from gpucheck.language import Sentence, in_their_words, say

T = TypeVar("T")

PrivateKind = Literal[
    "host", "user", "path", "paths", "address", "uuid", "variables", "setting", "package", "index",
    "conda",
]  # fmt: skip


class Private(msgspec.Struct, frozen=True):
    """Marks a field, in ``Annotated``, whose value reveals who or where the user is."""

    kind: PrivateKind


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """A group of facts with the source or the problem of each."""

    sources: dict[str, str] = {}
    problems: dict[str, str] = {}

    def source(self, field: str) -> str:
        """Return the source of the field, "" if not recorded."""
        return self.sources.get(field) or self.sources.get("*", "")

    def problem(self, field: str) -> str:
        """Return the problem of the field, which is why it is unknown; "" if not recorded."""
        return self.problems.get(field) or self.problems.get("*", "")


class Section(Facts, frozen=True, kw_only=True):
    """The facts of one probe.

    ``name`` is its key in a snapshot and the start of a fact's path, ``subject`` what ``gpucheck
    list`` says of it.
    """

    name: ClassVar[str] = ""
    subject: ClassVar[Sentence]


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


def builtins(value: object) -> Any:  # noqa: ANN401  # JSON-like data has no narrower type
    """Turn structs into dictionaries and lists, for JSON; sentences stay what they are."""
    return msgspec.to_builtins(value, builtin_types=(Sentence,))


# A machine's answer to a question, and the notes about its sources and problems.

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


# Draft sections, which are filled from the given keys.

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


# The base of all derived facts, and a helper.


class Derived:
    """Base of derived facts: the parameter types of ``__init__`` name what they come from."""


def or_none(ask: Callable[[], str]) -> str | None:
    """Return the answer of derived facts to a question, None if it is unknown."""
    try:
        return ask()
    except UnknownFactError:
        return None
