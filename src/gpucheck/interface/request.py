"""Requests: what may be asked, each field declared once.

The annotation of a field says its type and its range, and :class:`Option` what the command line
says about it. The options of a command, the checks of what a program gives, and the schema of an
assistant's question are made from it (``interface/options.py``, :func:`request`). Functions
for programs repeat names and defaults in their signatures, for editors and type checkers.
"""

import types
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from gpucheck.interface.errors import UsageError, meant, printable, with_hint
from gpucheck.language import any_of, say

# The range of time limits in seconds, for a program and on the command line alike.

# Chosen; docs/architecture.md, 1.1, promises them. With less nothing could be answered: a self-test
# imports torch first (some seconds), and the tasks of a job have to meet as well.
LEAST_SECONDS, LEAST_OF_SELF_TESTS, LEAST_OF_A_JOB = 0.1, 1, 10
MOST_SECONDS = 1_000_000
"""Whatever is as long as this is a mistake."""

R = TypeVar("R", bound=msgspec.Struct)
T = TypeVar("T")


class Option(msgspec.Struct, frozen=True):
    """What the command line says about a field."""

    help: str = ""
    metavar: str | None = None
    flag: str = ""
    """The option, if it is not called like the field."""
    also: tuple[tuple[str, str], ...] = ()
    """Other names that people use for some of the values, each with the value."""


Level = Annotated[
    Literal["quick", "standard", "stress"],
    Option(
        say("How thorough the self-tests are: seconds, minutes, or a load on the whole machine.")
    ),
]


class WithLevel(msgspec.Struct):
    """A level alone, for commands without a request of their own."""

    level: Level = "quick"


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a request."""

    name: str
    kind: type[Any]
    """``str``, ``int``, ``bool``, ``tuple`` (of text); of a field with choices ``str``."""
    default: Any
    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None
    is_optional: bool = False
    """Whether ``None`` is a value."""
    option: Option | None = None


def fields(kind: type[msgspec.Struct]) -> list[Field]:
    """Return the fields of a request in their order; each has a default."""
    # typing.get_type_hints and msgspec.structs.fields would cost every check two milliseconds.
    hints = kind.__annotations__
    defaults = zip(kind.__struct_fields__, kind.__struct_defaults__, strict=True)
    return [_field(name, hints[name], default) for name, default in defaults]


def _field(name: str, hint: Any, default: Any) -> Field:  # noqa: ANN401  # a type and its value
    option, meta, is_optional = None, msgspec.Meta(), False
    while get_origin(hint) in (Annotated, Union, types.UnionType):
        if get_origin(hint) is Annotated:
            hint, *notes = get_args(hint)
            option = next((note for note in notes if isinstance(note, Option)), option)
            meta = next((note for note in notes if isinstance(note, msgspec.Meta)), meta)
        else:
            (hint,) = (argument for argument in get_args(hint) if argument is not type(None))
            is_optional = True
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    return Field(
        name=name,
        kind=str if choices else get_origin(hint) or hint,
        default=default,
        choices=choices,
        least=None if meta.ge is None else int(meta.ge),
        most=None if meta.le is None else int(meta.le),
        is_optional=is_optional,
        option=option,
    )


def request(kind: type[R], /, **values: Any) -> R:  # noqa: ANN401  # a program may give anything
    """Return the request of a program, whose values are checked.

    A field that has no :class:`Option` is taken as it is.

    Raises:
        UsageError: a value makes no sense.
    """
    known = {field.name: field for field in fields(kind)}
    return kind(**{name: _checked(known[name], value) for name, value in values.items()})


def _checked(field: Field, value: Any) -> Any:  # noqa: ANN401  # as above
    if field.option is None:
        return value
    if field.choices or field.kind is bool:
        choices = field.choices or (True, False)
        return one_of(field.name, value, (*((None,) if field.is_optional else ()), *choices))
    if field.kind is int:
        number = count(field.name, value, field.least or 0, field.most or 0)
        return field.default if number is None else number
    if field.kind is tuple:
        return words(field.name, value)
    return text(field.name, value) or field.default


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
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not least <= value < MOST_SECONDS
    ):
        raise UsageError(
            say(
                "timeout must be a number of seconds from {least:g} to less than {most:d}, not "
                "{value}.",
                least=least,
                most=MOST_SECONDS,
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
    from gpucheck.facts.secrets import is_plain, names_a_build  # noqa: PLC0415  # rarely named

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
