"""Numbers in texts that others wrote.

``"²".isdigit()`` is true, and ``int("²")`` raises; so does ``int`` of more than 4300 digits. And
JSON has no room for a number without a bound.
"""

_MOST_DIGITS = 12


def whole_number(text: str) -> int | None:
    """Return the number of a text that is nothing but up to twelve ASCII digits, else None."""
    if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS:
        return int(text)
    return None
