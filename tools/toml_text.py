# ruff: noqa: INP001  # a script of this repository
"""Writes TOML to be read by people: a text in its lines, a list of records one line each.

The standard library reads TOML and does not write it. Tables keep the order of their keys.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_WIDTH = 100
_RECORD = 60
"""A record as short as this is written after its key, however long the key is."""
_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*|[0-9]{1,2}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class Octal(int):
    """A number that is written in octal digits, such as the permissions of a file."""


def written(document: Mapping[str, Any]) -> str:
    """Return the text of a document."""
    return "\n".join(_table((), document)).strip("\n") + "\n"


def _table(path: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[str]:
    """Write what fits behind a key first, then the tables that need a heading."""
    headed = {key: value for key, value in table.items() if _needs_heading(path, key, value)}
    for key, value in table.items():
        if key not in headed:
            yield f"{_key(key)} = {_value(value, len(_key(key)) + 3)}"
    for key, value in headed.items():
        inner = (*path, key)
        heading = ".".join(_key(part) for part in inner)
        if isinstance(value, Mapping):
            if not value or any(not _needs_heading(inner, *item) for item in value.items()):
                yield f"\n[{heading}]"
            yield from _table(inner, value)
            continue
        for element in value:
            yield f"\n[[{heading}]]"
            yield from _table(inner, element)


def _needs_heading(path: tuple[str, ...], key: str, value: Any) -> bool:  # noqa: ANN401  # JSON-like
    if isinstance(value, Mapping):
        room = max(_WIDTH - len(_key(key)) - 3, _RECORD)
        nested = any(isinstance(item, Mapping) for item in value.values())
        return not path or nested or not _fits(value, room)
    if not _is_list(value) or not value or not all(isinstance(item, Mapping) for item in value):
        return False
    return not all(_fits(item, _WIDTH - 3) for item in value)


def _fits(value: Any, room: int) -> bool:  # noqa: ANN401  # JSON-like
    return len(_in_line(value)) <= room and not _has_lines(value)


def _has_lines(value: Any) -> bool:  # noqa: ANN401  # JSON-like
    if isinstance(value, str):
        return "\n" in value[:-1]
    if isinstance(value, Mapping):
        return any(_has_lines(item) for item in value.values())
    return _is_list(value) and any(_has_lines(item) for item in value)


def _value(value: Any, used: int) -> str:  # noqa: ANN401  # JSON-like
    """Write the value of a key of this length; only a value may take several lines."""
    if isinstance(value, str):
        return _text(value)
    if _is_list(value) and value and not _fits(value, _WIDTH - used):
        return "[\n" + "".join(f"  {_in_line(item)},\n" for item in value) + "]"
    return _in_line(value)


def _in_line(value: Any) -> str:  # noqa: ANN401  # JSON-like
    if isinstance(value, Mapping):
        if not value:
            return "{}"
        return "{ " + ", ".join(f"{_key(key)} = {_in_line(value[key])}" for key in value) + " }"
    if _is_list(value):
        return "[" + ", ".join(_in_line(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Octal):
        return f"0o{value:o}"
    if isinstance(value, int | float):
        return repr(value)
    if value is None:
        return "{ null = true }"
    return _quoted(value)


def _text(text: str) -> str:
    """Write a text; one of several lines starts below its key, without escapes if possible."""
    if "\n" not in text[:-1]:
        return _quoted(text)
    if not _CONTROL.search(text):
        if "\\" not in text and '"""' not in text and not text.endswith('"'):
            return f'"""\n{text}"""'
        if "'''" not in text and not text.endswith("'"):
            return f"'''\n{text}'''"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    escaped = _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", escaped)
    return f'"""\n{escaped}"""'


def _quoted(text: str) -> str:
    """Write a text in one line, without escapes if possible."""
    plain = "'" not in text and "\n" not in text and not _CONTROL.search(text)
    if plain and ("\\" in text or '"' in text):
        return f"'{text}'"
    # The escapes of JSON are a part of TOML's; DEL alone needs one there and none in JSON.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _quoted(key)


def _is_list(value: Any) -> bool:  # noqa: ANN401  # JSON-like
    return isinstance(value, Sequence) and not isinstance(value, str)
