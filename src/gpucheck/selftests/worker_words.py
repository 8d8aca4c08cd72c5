"""A sentence in a worker's message: its English text, its template and its parameters.

Any code in the target interpreter may have written the message. So a template is filled in only if
its fields are plain names of the parameters, and is used only if the result equals the text. A
template that the catalogues lack is shown in English.
"""

import re
import string
from typing import Any

from gpucheck.language import Part, Sentence
from gpucheck.machine.worker_pool.messages import Message

_NAME = re.compile(r"[a-z_]{1,40}")
_SPEC = re.compile(r"(?:\.\d)?[defg%]?|#04x")
_LONGEST, _MOST, _DEEPEST = 1000, 20, 3


def sentence_in(message: Message, field: str) -> str:
    """Return the text of a field, with its template if the message has a sound one for it."""
    text = str(message.get(field, ""))
    sentence = _read(message.get("said"), 0)
    return sentence if sentence is not None and sentence == text else text


def _read(said: Any, depth: int) -> Sentence | None:  # noqa: ANN401  # any JSON-like data
    if not isinstance(said, dict) or depth > _DEEPEST:
        return None
    key, given = said.get("key"), said.get("params")
    if not isinstance(key, str) or not isinstance(given, dict) or len(given) > _MOST:
        return None
    params = {str(name): _part(value, depth) for name, value in given.items()}
    if not _is_sound(key, params):
        return None
    try:
        return Sentence(key, params)
    except (ValueError, TypeError):
        return None


def _part(value: Any, depth: int) -> Part:  # noqa: ANN401  # any JSON-like data
    if isinstance(value, dict):
        return _read(value, depth + 1) or ""
    return value if isinstance(value, str | int | float | None) else str(value)


def _is_sound(key: str, params: dict[str, Part]) -> bool:
    """Whether every field of a template is a plain name with a parameter, and none is wide."""
    if len(key) > _LONGEST:
        return False
    if not params:
        return True
    try:
        fields = [one[1:] for one in string.Formatter().parse(key) if one[1] is not None]
    except ValueError:
        return False
    return all(
        name in params and _NAME.fullmatch(name) and _SPEC.fullmatch(spec or "") and not conversion
        for name, spec, conversion in fields
    )
