"""Sends a worker's messages: JSON between random marks, independent of what is done to stdout."""

from __future__ import annotations

import json
import math
import os
import re
from typing import Any, Dict

Message = Dict[str, Any]

_HALF = re.compile("[\ud800-\udfff]")
"""Half of a UTF-16 pair: Python's form of a byte in a file name that is not UTF-8."""
_DEEPEST = 8
_LONGEST_TEXT = 4000
_MOST_ITEMS = 2000
_LARGEST = 256 * 1024
"""Bytes of one message; a larger one goes without its data."""


class Channel:
    """The channel to the launcher, on a descriptor of its own that no child process inherits."""

    def __init__(self, handle: int, mark: str) -> None:
        self._handle = handle
        self._mark = mark

    def send(self, message: Message) -> None:
        """Send one message; values that JSON cannot hold are sent as text."""
        text = json.dumps(plain(message))
        if len(text) > _LARGEST:
            short = {**message, "data": {"left_out": "it was too large"}, "measurements": []}
            text = json.dumps(plain(short))
        self._write(text)

    def pass_on(self, worker: str, line: bytes) -> None:
        """Send a line of another worker unchanged; the launcher parses it."""
        text = line[:_LARGEST].decode("ascii", "replace")
        self._write(json.dumps({"event": "said", "worker": worker, "said": text}))

    def _write(self, text: str) -> None:
        data = ("\n" + self._mark + text + self._mark + "\n").encode("ascii")
        while data:
            data = data[os.write(self._handle, data) :]

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._handle)


def take_stdout(mark: str) -> Channel:
    """Reserve stdout for the channel: from now on everything that is printed goes to stderr."""
    own = os.dup(1)
    os.dup2(2, 1)
    return Channel(own, mark)


def plain(value: Any, depth: int = 0) -> Any:  # noqa: ANN401  # anything in, JSON-like data out
    """Return the value as JSON-like data, bounded in depth and size; no NaN, no infinity."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth < _DEEPEST and isinstance(value, dict):
        items = list(value.items())[:_MOST_ITEMS]
        return {_text(key): plain(item, depth + 1) for key, item in items}
    if depth < _DEEPEST and isinstance(value, (list, tuple)):
        found: list[Any] = [plain(item, depth + 1) for item in value[:_MOST_ITEMS]]
        return found
    return _text(value)


def _text(value: Any) -> str:  # noqa: ANN401  # whatever has a text
    words = value if isinstance(value, str) else str(value)
    return _HALF.sub("\ufffd", words[:_LONGEST_TEXT])
