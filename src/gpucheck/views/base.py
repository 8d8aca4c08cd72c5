"""What all views have in common."""

from collections.abc import Callable

from gpucheck.facts import UnknownFactError


class View:
    """Base of the views: the parameter types of ``__init__`` name what a view is built from."""


def or_none(ask: Callable[[], str]) -> str | None:
    """Return the answer of a view to a question, None if it is unknown."""
    try:
        return ask()
    except UnknownFactError:
        return None
