"""The base of all derived facts, and a helper."""

from collections.abc import Callable

from gpucheck.facts import UnknownFactError


class Derived:
    """Base of derived facts: the parameter types of ``__init__`` name what they come from."""


def or_none(ask: Callable[[], str]) -> str | None:
    """Return the answer of derived facts to a question, None if it is unknown."""
    try:
        return ask()
    except UnknownFactError:
        return None
