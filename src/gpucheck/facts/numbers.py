"""Numbers in texts that others wrote.

``"²".isdigit()`` is true, but ``int("²")`` raises, and so does ``int`` of more than 4300 digits.
JSON readers also limit the size of numbers.
"""

import re

from gpucheck.language import say

# chosen: above every PID, count and size in MiB; whoever reads bytes asks for more digits
_MOST_DIGITS = 12
_LONGEST = 20
"""The digits of the largest number of 64 bits."""
_LONG = rb"[0-9]{%d}" % (_LONGEST + 1)


def whole_number(text: str, digits: int = _MOST_DIGITS) -> int | None:
    """Return the number in a text of some ASCII digits, at most twelve; None for any other text."""
    if text.isascii() and text.isdecimal() and len(text) <= digits:
        return int(text)
    return None


def signed_number(text: str, digits: int = _MOST_DIGITS) -> int | None:
    """Return the number in a text of some ASCII digits, perhaps after a minus; None for others."""
    number = whole_number(text.removeprefix("-"), digits)
    return -number if number is not None and text.startswith("-") else number


def refuse_long_numbers(data: bytes) -> None:
    """Refuse JSON with a whole number of more than 64 bits, which no float and few readers take.

    Raises:
        ValueError: there is such a number, or there may be one and the data is not JSON.
        RecursionError: the data is nested too deeply to be searched.
    """
    if re.search(_LONG, data) is None:
        return
    import json  # noqa: PLC0415  # nothing that gpucheck writes needs it

    def whole(digits: str) -> int:
        if len(digits.lstrip("-")) > _LONGEST:
            raise ValueError(
                say("a number of {digits} characters, more than 64 bits", digits=len(digits))
            )
        return int(digits)

    json.loads(data, parse_int=whole)
