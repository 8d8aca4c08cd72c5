"""JSON as it is written: beside the English sentences of an object stands what to translate."""

import json
from collections.abc import Mapping
from typing import Any

from gpucheck.engine import Report
from gpucheck.language import Sentence, as_said
from gpucheck.output.public import public

_NOTES = ("sources", "problems")
"""Fields that hold a sentence for each of several others."""


def json_text(data: object, *, indent: int | None = 2) -> str:
    """Return JSON with a final newline, in ASCII: no character takes effect in a terminal.

    An object with sentences gets ``said``: by the field, ``key`` (the template) and ``params``.
    """
    return json.dumps(with_said(data), indent=indent, ensure_ascii=True) + "\n"


def with_said(data: Any) -> Any:  # noqa: ANN401  # JSON-like data
    """Return the data with ``said`` in each object that has sentences."""
    if isinstance(data, Mapping):
        sentences = {
            key: found for key, value in data.items() if (found := _sentence_keys(key, value))
        }
        plain = {
            key: _mere(value) if key in _NOTES else with_said(value) for key, value in data.items()
        }
        return {**plain, "said": sentences} if sentences else plain
    if isinstance(data, list | tuple):
        return [with_said(item) for item in data]
    return str(data) if isinstance(data, Sentence) else data


def _mere(notes: Any) -> Any:  # noqa: ANN401  # JSON-like data
    """Return what a field notes about the others, without keys: those stand in ``said``."""
    if not isinstance(notes, Mapping):
        return notes
    return {key: str(note) if isinstance(note, Sentence) else note for key, note in notes.items()}


def _sentence_keys(field: str, value: object) -> object:
    """Return the keys of the sentences in a field; None if there are none."""
    if isinstance(value, Sentence):
        return as_said(value)
    if isinstance(value, list | tuple) and any(isinstance(item, Sentence) for item in value):
        return [as_said(item) if isinstance(item, str) else None for item in value]
    if field in _NOTES and isinstance(value, Mapping):
        return {
            key: as_said(item) for key, item in value.items() if isinstance(item, Sentence)
        } or None
    return None


# A report as JSON, for programs (schema ``gpucheck.report/1``).


def render(report: Report, *, redacted: bool = True) -> str:
    """Return the report as JSON in ASCII, its keys in the order of the schema."""
    return json_text((public(report) if redacted else report).as_json())
