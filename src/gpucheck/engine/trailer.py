"""The last line of every report for people: triage reads such a report back from it.

    gpucheck-report/1 verdict=broken causes=driver-too-old,nccl-timeout start=6c1e

It is the same in every format and language. ``start`` is a checksum of the first word of the
report. By it a reader finds where the report begins, even if its lines were broken, quoted or
indented.
"""

import binascii
import re
from collections.abc import Iterable, Sequence

import msgspec

MARK = "gpucheck-report/1"
NONE = "none"
"""Written in place of the causes if there are none."""
MOST_LINES = 5
"""The most lines into which the trailer may have been broken; two or three are usual."""
_MOST_CAUSES = 20
_LONGEST = 2000
_WORD = re.compile(r"\w{1,60}")
_BLANKS = re.compile(r"\s+")
_FORM = re.compile(
    rf"{MARK}verdict=(?P<verdict>healthy|warning|broken|unknown)"
    r"causes=(?P<causes>[a-z0-9,-]{1,1200})start=(?P<start>[0-9a-f]{4})(?![\w-])"
)
"""Matches the line without blanks: where it was broken, blanks may be missing or added."""


class Trailer(msgspec.Struct, frozen=True):
    """What a trailer says; ``lines`` is how many lines it takes up."""

    verdict: str
    causes: tuple[str, ...]
    start: str
    lines: int = 1


def trailer(verdict: str, causes: Iterable[str], first: str) -> str:
    """Return the last line of a report that begins with the words ``first``."""
    named = ",".join(list(causes)[:_MOST_CAUSES]) or NONE
    return f"{MARK} verdict={verdict} causes={named} start={start_of(first)}"


def start_of(line: str) -> str:
    """Return the checksum of the first word of a line, "" if it has none."""
    word = _WORD.search(line)
    return f"{binascii.crc_hqx(word[0].encode(), 0):04x}" if word is not None else ""


def parse(lines: Sequence[str]) -> Trailer | None:
    """Return the trailer that begins in the first of these lines, however it was broken.

    None if no complete trailer follows: then this is ordinary text.
    """
    said = ""
    for count, line in enumerate(lines[:MOST_LINES], start=1):
        said += _BLANKS.sub("", line[:_LONGEST])
        found = _FORM.search(said)
        if found is not None:
            named = found["causes"].split(",")[:_MOST_CAUSES]
            causes = tuple(one for one in dict.fromkeys(named) if one and one != NONE)
            return Trailer(found["verdict"], causes, found["start"], count)
    return None
