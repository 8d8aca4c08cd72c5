"""Splits a line of a report into its label and its value: ``* PyTorch version : 2.1.0``."""

import re

_BULLET = re.compile(r"[\s\-*+#•·]{1,12}")
_ASIDE = re.compile(r"\s?\((?:e\.?g\.?|i\.e\.|if |conda|`|x)[^()]{0,60}\)")
_NO_COLON = re.compile(
    r"(pytorch version|cuda used to build pytorch)\s{1,4}(?=[0-9A-Z])", re.IGNORECASE
)
# Chosen: with 20, two of 752 labelled tickets get another answer.
_LONGEST_LABEL, _LONGEST = 80, 200
_DECORATION = " `*\t\"'"
_UNKNOWN = (
    "could not collect", "n/a", "", "unknown", "not available", "none found", "<fill in>",
    "no cuda", "no response", "_no response_",
)  # fmt: skip


def split_label(text: str) -> tuple[str, str]:
    """Return a line's label, lower case and without bullets and examples, and its value.

    Both are "" if the line has no label.
    """
    bullet = _BULLET.match(text)
    if bullet is not None:
        text = text[bullet.end() :]
    label, colon, value = text[:_LONGEST].partition(":")
    if not colon or len(label) > _LONGEST_LABEL:
        bare = _NO_COLON.match(text)
        if bare is None:
            return "", ""
        return bare[1].lower(), text[bare.end() : _LONGEST].strip()
    label = _ASIDE.sub("", label).strip(_DECORATION).lower()
    return label, value.strip(" `*\t")


def is_unknown(value: str) -> bool:
    """Whether the value means unknown, which is not the same as absent."""
    return value.lower().strip(".") in _UNKNOWN
