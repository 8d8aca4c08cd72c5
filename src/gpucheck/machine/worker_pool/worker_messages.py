"""The messages of workers: JSON between random marks on stdout (``worker/channel.py``).

Anything else that a broken environment prints on stdout is skipped.
"""

import json
import re
from typing import Any

from gpucheck.facts.numbers import refuse_long_numbers

Message = dict[str, Any]
_LARGEST = 4 * 1024 * 1024
"""The most bytes between two marks; more is not a message of a worker."""


_MOST = 2**31  # chosen: above every number of a rank or code that is read here
_HALF = re.compile("[\ud800-\udfff]")
"""Half of a UTF-16 pair: Python's form of a byte in a file name that is not UTF-8."""


def count_in(message: Message, field: str) -> int:
    """Return a number of things, an identifier or a port; 0 for what is none of these.

    Any code in the target interpreter may have written the message.
    """
    value = message.get(field)
    return value if type(value) is int and 0 <= value < _MOST else 0


class MessageStream:
    """Extracts messages from the output of a program."""

    def __init__(self, mark: str) -> None:
        self._mark = mark.encode()
        self._rest = b""

    def messages(self, data: bytes) -> list[Message]:
        """Return the messages that have become complete."""
        parts = (self._rest + data).split(self._mark)
        # Noise and messages alternate; an even number of parts ends with half a message.
        half = len(parts) % 2 == 0
        rest = parts.pop()
        self._rest = (self._mark if half else b"") + rest[-_LARGEST:]
        return [read_message(part) for part in parts[1::2]]


def read_message(text: bytes) -> Message:
    """Parse one message; any other text becomes the message ``bad-answer``."""
    try:
        refuse_long_numbers(text)
        message = json.loads(text.decode("utf-8", "replace"))
        if b"\\ud" in text.lower():
            message = _encodable(message)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        return {"event": "bad-answer", "text": text[:200].decode("utf-8", "replace")}
    return message


def _encodable(message: Any) -> Any:  # noqa: ANN401  # JSON-like data
    """Return the message without halves of UTF-16 pairs, which no file or connection takes."""
    return json.loads(_HALF.sub("\ufffd", json.dumps(message, ensure_ascii=False)))
