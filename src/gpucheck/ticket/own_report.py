"""A report of gpucheck's own in a text: what it found is taken, its lines are not read again.

A report speaks of many causes in words that a signature would take for messages: in its fixes, in
what it lists as fine.
"""

import re
from collections.abc import Sequence

import msgspec

from gpucheck.findings import Severity
from gpucheck.readers.pasted.base import Line, Text
from gpucheck.rules import all_rules
from gpucheck.signatures import all_signs
from gpucheck.signatures.base import Signature
from gpucheck.ticket.search import Match

NAME = "gpucheck report"

_VERDICT = re.compile(r"^(?:\*\*)?(HEALTHY|WARNING|BROKEN|UNKNOWN)(?:\*\*:)?\s{1,4}(\S.{0,400})?$")
_FINDING = re.compile(r"^(?:#{1,4} )?(error|warning)(?::|\s{2,6})\s?([a-z][a-z0-9-]{3,50})$")
_FOOTER = re.compile(r"^gpucheck \d[\w.+]{0,20}, tables ")
_SURE = (
    "\ngpucheck 0",
    "\ngpucheck 1",
    "gpucheck explain ",
    "no self-test was run",
    "\nthis machine",
)
_MOST_LINES = 2000
_HEADLINE = r"(?P<headline>.+)"
_WEIGHTS = (98, 95, 92)
"""Of the first, second and further findings: a report puts the cause first."""
_SCHEMA = '"gpucheck.report/1"', '"gpucheck.snapshot/1"'
_JSON_VERDICT = re.compile(r'"verdict":\s{0,8}"(healthy|warning|broken|unknown)"')
_JSON_CAUSES = re.compile(r'"root_causes":\s{0,8}\[([^\[\]]{0,2000})\]')
_JSON_HEAD, _JSON_ENDS = 40, ("}", "```")
"""Lines in which the causes stand, and lines that end a JSON text that is broken into lines."""


class OwnReport(msgspec.Struct, frozen=True):
    """The verdict of a report that stands in a text, and what it found."""

    verdict: str
    line: Line
    matches: tuple[Match, ...]


def take_out(text: Text) -> tuple[Text, OwnReport | None]:
    """Return the text without the report, and the report; None where there is none."""
    if "gpucheck" not in text.lower and "no self-test was run" not in text.lower:
        return text, None
    for schema in _SCHEMA:
        found = text.find(schema, most=1)
        if found:
            return _take_out_json(text, found[0])
    if not any(words in text.lower for words in _SURE):
        return text, None
    begin = next((at for at, line in enumerate(text.lines) if _begins(line)), None)
    if begin is None:
        return text, None
    end = next(
        (
            at + 1
            for at, line in enumerate(text.lines[begin : begin + _MOST_LINES], begin)
            if _FOOTER.match(line.text)
        ),
        min(len(text.lines), begin + _MOST_LINES),
    )
    return Text(text.lines[:begin] + text.lines[end:]), _read(text.lines[begin:end])


def _take_out_json(text: Text, begin: int) -> tuple[Text, OwnReport]:
    """Take a saved report for what it says of its causes; its facts were cut with its lines."""
    first = text.lines[begin]
    head = "".join(line.text for line in text.lines[begin : begin + _JSON_HEAD])
    in_one_line = first.text.lstrip().startswith("{")
    end = begin + 1
    while end < len(text.lines):
        line = text.lines[end]
        if in_one_line and line.number != first.number:
            break
        end += 1
        if not in_one_line and line.text in _JSON_ENDS:
            break
    verdict, causes = _JSON_VERDICT.search(head), _JSON_CAUSES.search(head)
    said = verdict[1] if verdict is not None else "unknown"
    severity = "warning" if said == "warning" else "error"
    slugs = re.findall(r'"([a-z][a-z0-9-]{3,50})"', causes[1]) if causes is not None else []
    matches = [
        own_match(slug, severity, first, {"headline": _headline("", slug, at)}, at)
        for at, slug in enumerate(slugs)
        if slug in all_rules() and slug in all_signs()
    ]
    rest = Text(text.lines[:begin] + text.lines[end:])
    return rest, OwnReport(said, first, tuple(matches))


def _begins(line: Line) -> bool:
    return _VERDICT.match(line.text) is not None or _finding(line) is not None


def _finding(line: Line) -> tuple[str, str] | None:
    """Return severity and slug of a heading."""
    found = _FINDING.match(line.text)
    if found is None or found[2] not in all_rules() or found[2] not in all_signs():
        return None
    return found[1], found[2]


def _read(lines: Sequence[Line]) -> OwnReport:
    head = _VERDICT.match(lines[0].text)
    headline = head[2] if head is not None and head[2] else ""
    found = [(line, said) for line in lines if (said := _finding(line)) is not None]
    matches = [
        own_match(slug, severity, line, {"headline": _headline(headline, slug, at)}, at)
        for at, (line, (severity, slug)) in enumerate(found)
    ]
    verdict = head[1].lower() if head is not None else "broken"
    return OwnReport(verdict, lines[0], tuple(matches))


def _headline(headline: str, slug: str, at: int) -> str:
    return headline if headline and at == 0 else f"A report of gpucheck says so: {slug}"


def own_match(slug: str, severity: str, line: Line, values: dict[str, str], at: int = 0) -> Match:
    """Return what a report found as if a signature had."""
    signature = Signature(
        name=f"{NAME}: {severity}",
        literal="gpucheck",
        pattern=_HEADLINE,
        weight=_WEIGHTS[min(at, len(_WEIGHTS) - 1)],
        says="{headline}",
        sample="",
        other="",
        stands=True,
        severity=Severity(severity),
    )
    return Match(slug, signature, line, values)
