"""What a program asks for: values that make no sense are refused in one sentence."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from gpucheck.interface.errors import UsageError
from gpucheck.interface.time_limits import MOST
from gpucheck.interface.words import meant, printable, with_hint
from gpucheck.language import any_of, say

T = TypeVar("T")


def one_of(name: str, value: T, choices: Sequence[T]) -> T:
    """Return a value that is one of the choices.

    Raises:
        UsageError: it is none of them.
    """
    if not any(
        value is choice or (value == choice and type(value) is type(choice)) for choice in choices
    ):
        refused = say(
            "{name} must be {choices}, not {value}.",
            name=name,
            choices=any_of([str(choice) for choice in choices]),
            value=_shown(value),
        )
        hint = meant(value, [str(choice) for choice in choices]) if isinstance(value, str) else ""
        raise UsageError(with_hint(refused, hint))
    return value


def seconds(value: object, least: float) -> float:
    """Return a time limit.

    Raises:
        UsageError: it is not a number, too short or too long.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < MOST:
        raise UsageError(
            say(
                "timeout must be a number of seconds from {least:g} to less than {most:d}, not "
                "{value}.",
                least=least,
                most=MOST,
                value=_shown(value),
            )
        )
    return float(value)


def count(name: str, value: int | None, least: int, most: int) -> int | None:
    """Return a whole number, or None.

    Raises:
        UsageError: it is something else, or outside of the limits.
    """
    if value is not None and (type(value) is not int or not least <= value <= most):
        raise UsageError(
            say(
                "{name} must be a whole number from {least} to {most}, not {value}.",
                name=name,
                least=least,
                most=most,
                value=_shown(value),
            )
        )
    return value


def words(name: str, value: str | Iterable[str]) -> tuple[str, ...]:
    """Return one text, or several.

    Raises:
        UsageError: something of it is not text.
    """
    given: object = value  # a program may give anything
    found = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
    texts = tuple(part for part in found if isinstance(part, str))
    if len(texts) != len(found):
        raise UsageError(say("{name} must be a text or a list of texts.", name=name))
    return texts


def text(name: str, value: str | None) -> str | None:
    """Return a text, or None.

    Raises:
        UsageError: it is something else.
    """
    if value is not None and not isinstance(value, str):
        raise UsageError(say("{name} must be a text, not {value}.", name=name, value=_shown(value)))
    return value


def _shown(value: object) -> str:
    """Return a value as a sentence shows it; a program may give anything."""
    try:
        return printable(repr(value))
    except (ValueError, RecursionError):  # Python does not write out an integer of 5000 digits
        return say("a value that is too long to show")


def wheel_mirror(value: str) -> str:
    """Return the base of a mirror of PyTorch's wheels.

    Raises:
        UsageError: a command cannot name it, in one sentence.
    """
    from gpucheck.facts.addresses import is_plain, names_a_build  # noqa: PLC0415  # rarely named

    address = value.rstrip("/")
    if not is_plain(address):
        raise UsageError(
            say(
                "--wheel-mirror expects a plain address that begins with https:// or http://: no "
                "login, no spaces and no query."
            )
        )
    if names_a_build(address):
        raise UsageError(
            say(
                "--wheel-mirror expects the folder above {build}: gpucheck adds the build itself.",
                build=address.rpartition("/")[2],
            )
        )
    return address
