"""What all views have in common."""

from collections.abc import Callable

from gpucheck.facts import UnknownFactError


class View:
    """Base of the views: ``__init__`` names what it is made of by its parameter types."""


def or_none(ask: Callable[[], str]) -> str | None:
    """Return what a question of a view answers, None where it is unknown."""
    try:
        return ask()
    except UnknownFactError:
        return None
