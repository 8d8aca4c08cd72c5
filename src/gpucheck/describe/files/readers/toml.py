"""TOML files as plain values."""

import sys
from typing import Any

from gpucheck.describe.files.text import UnreadableError
from gpucheck.language import say

_DEEPEST = 50
_MOST_STEPS = 10_000_000
"""The parser keeps every beginning of ``a.b.c``: memory grows with the square of the dots."""


def table_of(text: str) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises:
        UnreadableError: it is no TOML, or nested too deeply.
    """
    if sys.version_info >= (3, 11):
        import tomllib  # noqa: PLC0415  # only these files need it
    else:
        import tomli as tomllib  # noqa: PLC0415
    lines = text.split("\n")
    if any(line.count("[") + line.count("{") > _DEEPEST * 4 for line in lines):
        raise UnreadableError(say("it is nested too deeply"))
    if sum(line.count(".") ** 2 for line in lines) > _MOST_STEPS:
        raise UnreadableError(say("it is nested too deeply"))
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits is no TOMLDecodeError
        raise UnreadableError(say("it is not TOML")) from error
    return data


def tables(value: object) -> list[dict[str, Any]]:
    """Return the tables of a list of tables."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def table(value: object, *names: str) -> dict[str, Any]:
    """Return the table under these names; empty if there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def texts(value: object) -> list[str]:
    """Return the texts of a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def text(value: object) -> str:
    """Return a text; "" for anything else."""
    return value if isinstance(value, str) else ""
