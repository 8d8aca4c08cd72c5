"""What the API refuses, as a refusal of the command line."""

import contextlib
from collections.abc import Iterator

import click

from gpucheck.interface.errors import AskError, UsageError
from gpucheck.interface.text import RefusedError, words_of

_LONGEST_MESSAGE = 10_000
"""Of one of our messages, which may list every key."""


@contextlib.contextmanager
def in_the_words_of_click() -> Iterator[None]:
    """Turn what was asked wrongly into a refusal of the command line."""
    try:
        yield
    except AskError as error:
        words = words_of(error, limit=_LONGEST_MESSAGE)
        kind = click.UsageError if isinstance(error, UsageError) else RefusedError
        raise kind(words) from error
