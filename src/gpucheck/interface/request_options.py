"""The options of a command, made from the fields of its request."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

from gpucheck.interface.request import Field, Option, fields
from gpucheck.interface.spelling import OneOf

F = TypeVar("F", bound=Callable[..., Any])


def options_of(kind: type[msgspec.Struct], *names: str) -> Callable[[F], F]:
    """Return what adds an option for each field that has one, or only for these, in their order."""

    def add(command: F) -> F:
        for field in reversed(fields(kind)):
            if field.option is not None and (not names or field.name in names):
                command = _option(field, field.option)(command)
        return command

    return add


def _option(field: Field, option: Option) -> Callable[[F], F]:
    flag = option.flag or f"--{field.name.replace('_', '-')}"
    more: dict[str, Any] = {}
    if field.choices:
        # A default that is a choice is worth showing; others are explained in the help.
        more = {
            "type": OneOf(field.choices, dict(option.also)),
            "show_default": field.default is not None,
        }
    elif field.kind is bool and field.default is False:
        more = {"is_flag": True}
    elif field.kind is bool:
        flag = f"{flag}/--no-{flag.removeprefix('--')}"
    elif field.kind is int:
        more = {"type": click.IntRange(field.least, field.most)}
    elif field.kind is tuple:
        more = {"multiple": True}
    if field.kind is not tuple:
        more["default"] = field.default
    return click.option(flag, field.name, metavar=option.metavar, help=option.help or None, **more)
