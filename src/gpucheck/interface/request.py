"""Requests: what may be asked, each field declared once.

The annotation of a field says its type and its range, and :class:`Option` what the command line
says about it. The options of a command, the checks of what a program gives, and the schema of an
assistant's question are made from it (``cli/request_options.py``, :func:`request`). Functions for
programs repeat names and defaults in their signatures, for editors and type checkers.
"""

import types
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from gpucheck.interface import asked
from gpucheck.language import say

R = TypeVar("R", bound=msgspec.Struct)


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
        return asked.one_of(field.name, value, (*((None,) if field.is_optional else ()), *choices))
    if field.kind is int:
        number = asked.count(field.name, value, field.least or 0, field.most or 0)
        return field.default if number is None else number
    if field.kind is tuple:
        return asked.words(field.name, value)
    return asked.text(field.name, value) or field.default
