"""Sentences that are read back: from a saved JSON document, or from a worker's message.

Anybody may have written them, and what is a sentence of ours counts as our words. So a template is
believed only if our catalogues have it, and the result is the very text beside it. Everything else
is text of somebody else.
"""

import string
from collections.abc import Mapping
from typing import Any

from gpucheck.language.catalogue import catalogue_of
from gpucheck.language.sentence import Part, Sentence

_MOST, _DEEPEST = 20, 100
"""Parameters, and sentences within one another: each item of a long list is a step."""
_FORMATS = (LookupError, ValueError, TypeError, OverflowError)


def said_again(text: str, template: Any) -> str:  # noqa: ANN401  # any JSON-like data
    """Return the sentence that a text is, by what is said beside it; otherwise the text."""
    found = _sentence(template, len(text) + 1, 0)
    return found if found is not None and found == text else text


def with_sentences(data: Any) -> Any:  # noqa: ANN401  # JSON-like data
    """Return JSON-like data with the sentences that ``said`` in its objects has, and without it."""
    if isinstance(data, list):
        return [with_sentences(item) for item in data]
    if not isinstance(data, dict):
        return data
    templates = data.get("said")
    if not isinstance(templates, dict):
        return {key: with_sentences(value) for key, value in data.items()}
    return {
        key: _field(value, templates.get(key)) if key in templates else with_sentences(value)
        for key, value in data.items()
        if key != "said"
    }


def _field(value: Any, template: Any) -> Any:  # noqa: ANN401  # JSON-like data
    """Return a field as it was: a sentence, or a list or an object with some."""
    if isinstance(value, str):
        return said_again(value, template)
    if isinstance(value, list) and isinstance(template, list) and len(value) == len(template):
        return [_field(item, its) for item, its in zip(value, template, strict=True)]
    if isinstance(value, dict) and isinstance(template, dict):
        return {key: _field(item, template.get(key)) for key, item in value.items()}
    return with_sentences(value)


def _sentence(template: Any, limit: int, depth: int) -> Sentence | None:  # noqa: ANN401  # as above
    """Return a sentence; None if it is malformed or has more characters than the limit."""
    if not isinstance(template, dict) or depth > _DEEPEST:
        return None
    key, given, plural = template.get("key"), template.get("params"), template.get("plural", "")
    number = template.get("number", 1)
    if not (isinstance(key, str) and isinstance(plural, str) and isinstance(given, dict)):
        return None
    if not isinstance(number, int) or len(given) > _MOST or not _is_ours(key, plural):
        return None
    params = {str(name): _part(value, limit, depth) for name, value in given.items()}
    inner, first = template.get("within") is True, template.get("first") is True
    try:
        if params and not (_fits(key, params, limit) and _fits(plural, params, limit)):
            return None
        return Sentence(key, params, plural=plural, number=number, inner=inner, first=first)
    except _FORMATS:
        return None


def _is_ours(key: str, plural: str) -> bool:
    """Whether our code has the template. Every language has all: a test sees to that."""
    return catalogue_of("zh").has(key, plural)


def _part(value: Any, limit: int, depth: int) -> Part:  # noqa: ANN401  # any JSON-like data
    if isinstance(value, dict):
        found = _sentence(value, limit, depth + 1)
        if found is None and value.get("params") == {} and isinstance(value.get("key"), str):
            return str(value["key"])  # a phrase without a translation: a name, or a word of others
        return found or ""
    return value if isinstance(value, str | int | float | None) else ""


def _fits(template: str, params: Mapping[str, Part], limit: int) -> bool:
    """Whether what fills a template in is not longer than the text that it should be."""
    fields = (name for _words, name, _spec, _how in string.Formatter().parse(template))
    return sum(_length(params.get(name)) for name in fields if name is not None) <= limit


def _length(part: Part) -> int:
    """Return how many characters a parameter has at least."""
    return len(part) if isinstance(part, str) else 0
