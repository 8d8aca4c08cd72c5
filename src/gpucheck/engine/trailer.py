"""The line for programs at the end of every report for people: by it, triage reads the report back.

    gpucheck-report/1 verdict=broken causes=driver-too-old,nccl-timeout start=062c

It is the same in every form and language. ``start`` stands for the first word of the report, so
that a reader finds where the report begins, whatever has broken, quoted or indented its lines.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

MARK = "gpucheck-report/1"
NONE = "none"
"""Stands for the causes where there are none."""
MOST_LINES = 5
"""Lines into which a line may have been broken: it is no longer than two or three."""
# Chosen: no reader wants more. The longest twenty slugs have 499 characters, commas included, and
# _FORM takes 1,200.
_MOST_CAUSES = 20
_LONGEST = 2000  # of a line, so that a text without line breaks costs nothing here
_WORD = r"\w{1,60}"
_BLANKS = r"\s+"
_FORM = (
    rf"{MARK}verdict=(?P<verdict>healthy|warning|broken|unknown)"
    r"causes=(?P<causes>[a-z0-9,-]{1,1200})start=(?P<start>[0-9a-f]{4})(?![\w-])"
)
"""The line without its blanks: where it was broken, some have come and some have gone."""


class Trailer(msgspec.Struct, frozen=True):
    """What a trailer says; ``lines`` is how many lines it takes up."""

    verdict: str
    causes: tuple[str, ...]
    start: str
    lines: int = 1


def trailer(verdict: str, causes: Iterable[str], first: str) -> str:
    """Return that line of a report that begins with the words ``first``."""
    named = ",".join(list(causes)[:_MOST_CAUSES]) or NONE
    return f"{MARK} verdict={verdict} causes={named} start={start_of(first)}"


def start_of(line: str) -> str:
    """Return what stands for the first word of a line, "" where it has none."""
    word = re.search(_WORD, line)
    if word is None:
        return ""
    # Importing a library for a checksum would cost every check a millisecond.
    return f"{sum(at * byte for at, byte in enumerate(word[0].encode(), 1)) & 0xFFFF:04x}"


def parse(lines: Sequence[str]) -> Trailer | None:
    """Return the trailer that begins in the first of these lines, however it was broken.

    None where no whole trailer follows: then it is text as any other.
    """
    joined = ""
    for count, line in enumerate(lines[:MOST_LINES], start=1):
        joined += re.sub(_BLANKS, "", line[:_LONGEST])
        found = re.search(_FORM, joined)
        if found is not None:
            named = found["causes"].split(",")[:_MOST_CAUSES]
            causes = tuple(cause for cause in dict.fromkeys(named) if cause and cause != NONE)
            return Trailer(found["verdict"], causes, found["start"], count)
    return None
