"""Values in words. What was read from a machine is untrusted; it is cleaned here and only here."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

LONGEST = 300
"""Maximum number of characters shown of one value."""
MOST_ITEMS = 12
"""Maximum number of items shown of one list; equal neighbours count once."""
_GIB = 1024**3
_MIB = 1024**2
_BLANKS = re.compile(r"\s+")
_NAMES = ("device_name", "product", "project", "library", "executable", "path", "command",
          "address", "xid", "uuid", "process_name", "pid")  # fmt: skip
"""Fields that identify an item of a list, the best first."""


def clean(text: str, limit: int = LONGEST) -> str:
    """Return the text on one line, harmless to a terminal and to a reader.

    Blanks of every kind become one space.
    """
    if len(text) > limit:
        text = text[: limit - 3] + "..."
    return printable(_BLANKS.sub(" ", text).strip())


def printable(text: str) -> str:
    """Return the text with escapes in place of characters that do not print.

    These are control characters, escape sequences, bidirectional overrides, invisible characters
    and lone surrogates: nothing is hidden, and nothing takes effect. What a :class:`Page` prints
    goes through here, whoever wrote it.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    return repr(char)[1:-1] if char.isascii() else char.encode("ascii", "backslashreplace").decode()


def shown(value: object, field: str = "") -> str:
    """Return a value in a form for people; ``field`` is the last part of its path."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and field.endswith("_bytes"):
        return size(value)
    if isinstance(value, Mapping):
        return _mapping(value)
    if isinstance(value, str):
        return clean(value) or "none"
    if isinstance(value, Sequence):
        return _items(value)
    return clean(str(value))


def size(number: int) -> str:
    """Return a number of bytes in a form for people; -1 is unlimited."""
    if number < 0:
        return "unlimited"
    for unit, name in ((_GIB, "GiB"), (_MIB, "MiB")):
        if number >= unit:
            return f"{number / unit:.1f}".removesuffix(".0") + f" {name}"
    return f"{number} bytes"


def plural(count: int, noun: str) -> str:
    """Return the count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def counted(names: Sequence[str]) -> str:
    """Return ``2 x NVIDIA H100, 1 x NVIDIA T4``; a single item without its count."""
    kinds = dict.fromkeys(names)
    if len(names) == 1:
        return clean(names[0])
    return ", ".join(f"{names.count(kind)} x {clean(kind)}" for kind in kinds)


def _items(values: Sequence[Any]) -> str:
    if not values:
        return "none"
    runs = in_runs(values)
    words = [in_words(run) for run in runs[:MOST_ITEMS]]
    more = sum(count for _words, count in runs[MOST_ITEMS:])
    return ", ".join(words) + (f" and {more} more" if more else "")


def in_runs(values: Sequence[Any]) -> list[tuple[str, int]]:
    """Return the items in words, and how often each follows itself."""
    return [(words, len(list(alike))) for words, alike in groupby(map(item, values))]


def in_words(run: tuple[str, int]) -> str:
    """Return an item, with a number if it follows itself: ``12 x yes``."""
    words, count = run
    return words if count == 1 else f"{count} x {words}"


def item(value: object) -> str:
    """Return one item of a list by its name, with its version if it has one."""
    if not isinstance(value, Mapping):
        return shown(value)
    name = next((value[key] for key in _NAMES if value.get(key) not in (None, "")), None)
    if name is None:
        return _mapping(value)
    version = value.get("version") or value.get("release")
    return f"{shown(name)} {shown(version)}" if version else shown(name)


def _mapping(values: Mapping[str, Any]) -> str:
    told = {
        key: value
        for key, value in values.items()
        if value is not None and key not in ("sources", "problems")
    }
    return _items([f"{key}={shown(value, key)}" for key, value in told.items()])
