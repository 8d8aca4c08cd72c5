"""English sentences that carry their template and its parameters, so that they can be translated.

The parent looks up the template in its catalogues; a template that they lack is shown in English.
"""

from __future__ import annotations

from typing import Any, Dict, Union

Message = Dict[str, Any]
Part = Union[str, int, float, None]


class SpokenWords(str):
    """A sentence in English with ``key``, its template, and ``params``, which fill it in."""

    __slots__ = ("key", "params")

    key: str
    params: dict[str, Part]

    def __new__(cls, key: str, params: dict[str, Part]) -> SpokenWords:  # noqa: PYI034  # Python 3.8
        """Fill the template in."""
        self = super().__new__(cls, key.format_map(params) if params else key)
        self.key, self.params = key, params
        return self


def say(key: str, /, **params: object) -> SpokenWords:
    """Return a sentence; the template must be a literal, which the catalogues are made from."""
    return SpokenWords(key, {name: _part(value) for name, value in params.items()})


def as_said(text: str) -> Message | None:
    """Return a sentence's template and parameters for a message; None for any other text."""
    if not isinstance(text, SpokenWords):
        return None
    params = {
        name: (as_said(part) or part) if isinstance(part, str) else part
        for name, part in text.params.items()
    }
    return {"key": text.key, "params": params}


def with_said(message: Message, field: str) -> Message:
    """Return a message with ``said`` beside the field if that has a sentence."""
    sentence = as_said(message[field])
    return message if sentence is None else {**message, "said": sentence}


def _part(value: object) -> Part:
    return value if isinstance(value, (str, int, float, type(None))) else str(value)
