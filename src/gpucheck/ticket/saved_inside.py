"""Snapshots and reports of gpucheck that somebody pasted into a text, as JSON."""

import json
import re
from collections.abc import Iterator

import msgspec

from gpucheck.facts.snapshot import REPORT_SCHEMA, SCHEMA, Snapshot, decode

SAVED_KEYS = (
    "schema", "gpucheck", "origin", "taken", "redacted", "facts", "probes", "verdict",
    "root_causes", "findings", "checks", "open_questions", "selftests", "snapshot", "class",
)  # fmt: skip
"""The keys of snapshots and reports, any of which a tool may have sorted to the first place."""
_SCHEMAS = (f'"{REPORT_SCHEMA}"', f'"{SCHEMA}"')
_BEGINNING = re.compile(r'\{[\s>]{0,80}"(?:' + "|".join(SAVED_KEYS) + r')"\s{0,8}:')
_QUOTE = re.compile(r"(?:> ?){1,6}")
_MOST, _MOST_TRIES = 8, 16
"""Snapshots that are taken out of a text, and places at which one is looked for."""
_decoder = json.JSONDecoder()


class Inside(msgspec.Struct, frozen=True):
    """A snapshot in a text, and where its JSON stands there."""

    snapshot: Snapshot
    begin: int
    end: int


def find_saved(text: str) -> list[Inside]:
    """Return the snapshots and the reports in a text, as they follow one another."""
    if not any(schema in text for schema in _SCHEMAS):
        return []
    return list(_found(text))


def _found(text: str) -> Iterator[Inside]:
    at, found = 0, 0
    for _ in range(_MOST_TRIES):
        start = _BEGINNING.search(text, at)
        if start is None or found == _MOST:
            return
        inside = _read(text, start.start())
        at = start.end() if inside is None else inside.end
        if inside is not None:
            found += 1
            yield inside


def _read(text: str, begin: int) -> Inside | None:
    """Read the JSON that begins here; None if it is none of ours, or not whole."""
    line = text.rfind("\n", 0, begin) + 1
    quote = _QUOTE.match(text, line, begin)
    body = text[begin:] if quote is None else _unquoted(text[begin:])
    try:
        _, length = _decoder.raw_decode(body)
        snapshot = decode(body[:length].encode("utf-8", "replace"))
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None
    end = begin + length if quote is None else _quoted_end(text, begin, body, length)
    return Inside(snapshot, begin, end)


def _unquoted(text: str) -> str:
    first, newline, rest = text.partition("\n")
    return first + newline + re.sub(rf"(?m)^{_QUOTE.pattern}", "", rest)


def _quoted_end(text: str, begin: int, body: str, length: int) -> int:
    """Return where the JSON ends in the text with its quotation marks: at the end of that line."""
    end = begin
    for _ in range(body.count("\n", 0, length) + 1):
        end = text.find("\n", end) + 1 or len(text) + 1
    return end - 1
