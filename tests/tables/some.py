"""A value that a test expects to be there."""

from typing import TypeVar

T = TypeVar("T")


def some(value: T | None) -> T:
    """Return the value; fail when a table does not know it."""
    assert value is not None
    return value
