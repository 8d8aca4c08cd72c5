"""Facts: typed values that may be unknown, with where they were read or why they were not.

``None`` means *unknown* and nothing else. The absence of something is a value (``False``, ``""`` or
an empty list). A section records where each of its fields was read (``sources``) and why a field is
unknown (``problems``); the key ``"*"`` applies to every field without an entry.
"""

from typing import Any, ClassVar, Literal, TypeVar

import msgspec

from gpucheck.language import Sentence

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
