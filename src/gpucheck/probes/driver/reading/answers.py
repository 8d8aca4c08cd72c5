"""Reads raw answers of NVML and libcuda: plain values, or ``{"error": ...}`` in their place."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gpucheck.facts import Answer, Notes
from gpucheck.language import say

T = TypeVar("T")
_BEYOND = 2**64
_NOT_ASKED = say("not asked")


def as_words(error: object) -> str:
    """Return the message in place of an answer; a sentence of gpucheck stays translatable."""
    return error if isinstance(error, str) else str(error)


class RawAnswers:
    """One object of raw answers, and the notes of the fields that are filled from it.

    Args:
        raw: the answers, by key.
        source: the library that answered.
        words: the meaning of error codes.
        unasked: why a key is missing.
    """

    def __init__(
        self, raw: object, source: str, words: Mapping[int, str], unasked: str = _NOT_ASKED
    ) -> None:
        self.notes = Notes()
        self._raw: dict[str, Any] = raw if isinstance(raw, dict) else {}
        self._source = source
        self._words = words
        self._unasked = unasked

    def answer(self, key: str) -> Answer[Any]:
        """Return the value of a key, or the problem that is in its place."""
        if key not in self._raw:
            return Answer(None, self._source, self._unasked)
        value = self._raw[key]
        code = self.error(key)
        if code is not None:
            words = self._words.get(code) if isinstance(code, int) else as_words(code)
            return Answer(None, self._source, words or say("error {code}", code=code))
        return Answer(value, self._source, say("it gave no value") if value is None else "")

    def error(self, key: str) -> object:
        """Return the error code (or message) of a key; None if there was no error."""
        value = self._raw.get(key)
        return value.get("error") if isinstance(value, dict) else None

    def take(self, field: str, key: str, read: Callable[[Any], T]) -> T | None:
        """Fill a field from a key."""
        return self.notes.take(field, self.answer(key).map(read))

    def fill(self, field: str, value: T) -> T:
        """Fill a field with the meaning of an answer."""
        self.notes.known(field, self._source)
        return value

    def has_code(self, code: int) -> bool:
        """Whether any question was answered with this error code."""
        return any(self.error(key) == code for key in self._raw)


def integer(value: object) -> int:
    """Return a whole number.

    Raises:
        ValueError: the value is not a whole number of 64 bits.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(say("{value} is not a whole number", value=repr(str(value)[:40])))  # noqa: TRY004  # a bad answer
    if not -_BEYOND < value < _BEYOND:
        raise ValueError(say("the number is out of range"))
    return value


def text(value: object) -> str:
    """Return a text without surrounding blanks.

    Raises:
        ValueError: the value is not a text.
    """
    if not isinstance(value, str):
        raise ValueError(say("{value} is not text", value=repr(str(value)[:40])))  # noqa: TRY004  # a bad answer
    return value.strip("\x00 \t\r\n")


def item(at: int, count: int) -> Callable[[object], int]:
    """Read the whole number at one index of a list of ``count`` numbers."""

    def read(value: object) -> int:
        if not isinstance(value, list) or len(value) != count:
            raise ValueError(say("it is not a list of {count} numbers", count=count))
        return integer(value[at])

    return read


def within(key: str) -> Callable[[object], int]:
    """Read the whole number of one key of an object."""

    def read(value: object) -> int:
        return integer(value.get(key) if isinstance(value, dict) else None)

    return read


def flag(read: Callable[[object], int]) -> Callable[[object], bool]:
    """Read a number that means yes or no."""
    return lambda value: read(value) != 0


def capability(value: object) -> str:
    """Read ``[9, 0]`` as ``9.0``."""
    return f"{item(0, 2)(value)}.{item(1, 2)(value)}"


def cuda_version(value: object) -> str:
    """Read 12020 as ``12.2``.

    Raises:
        ValueError: the value is not a version.
    """
    number = integer(value)
    if number < 1000:  # noqa: PLR2004  # the major version is in thousands
        raise ValueError(say("{number} is not a CUDA version", number=number))
    return f"{number // 1000}.{number % 1000 // 10}"
