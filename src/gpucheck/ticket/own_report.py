"""A report of gpucheck's own in a text: what it found is taken, its lines are not read again.

A report speaks of many causes in words that look like messages: in its fixes, in what it lists as
fine.
"""

import re
from collections.abc import Sequence

import msgspec

from gpucheck.facts.claims import Severity
from gpucheck.findings import all_rules
from gpucheck.messages import all_messages
from gpucheck.messages.form import Message, Strength
from gpucheck.messages.matcher import Match
from gpucheck.messages.text import Line, Text
from gpucheck.ticket import own_reply

NAME = "gpucheck report"

_VERDICT = re.compile(r"^(?:\*\*)?(HEALTHY|WARNING|BROKEN|UNKNOWN)(?:\*\*:)?\s{1,4}(\S.{0,400})?$")
_FINDING = re.compile(r"^(?:#{1,4} )?(error|warning)(?::|\s{2,6})\s?([a-z][a-z0-9-]{3,50})$")
_OF_TRIAGE = re.compile(r"^([a-z][a-z0-9-]{3,50})(?: \((?:certain|likely|possible)\))$")
_QUIET = re.compile(r"^ {9}([a-z][a-z0-9-]{3,50})$")
_AT_THE_END = re.compile(r"\[([a-z][a-z0-9-]{3,50})\]$")
_MOST_WRAPPED = 4
_FOOTER = re.compile(r"^gpucheck \d[\w.+]{0,20}, tables ")
_READ = re.compile(r"^Read(?:\s{5}\S|$)")
_WITHOUT_CAUSE = (
    "healthy  nothing wrong with pytorch,",
    "unknown  the text does not tell",
    "unknown  nothing is known of",
)
"""What triage says where it names none."""
_SURE = (
    "\ngpucheck 0",
    "\ngpucheck 1",
    "gpucheck explain ",
    "no self-test was run",
    "\nthis machine",
    *_WITHOUT_CAUSE,
)
_VERDICTS = ("broken   ", "warning  ")
_MOST_LINES = 2000
_HEADLINE = r"(?P<headline>.+)"
_TIE_BREAKS = (3, 2, 1)
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
    for schema in _SCHEMA:
        found = text.find(schema, most=1)
        if found:
            return _take_out_json(text, found[0])
    sure, short = bool(text.held(_SURE)), bool(text.held(_VERDICTS))
    begin = None
    if sure or short:
        lines = range(len(text.lines)) if sure else text.find(*_VERDICTS)
        starts = _begins if sure else _names_its_cause
        begin = next((at for at in lines if starts(text.lines, at)), None)
    if begin is None:
        return _take_out_reply(text)
    end = _end(text.lines, begin)
    return Text(text.lines[:begin] + text.lines[end:]), _read(text.lines[begin:end])


def _end(lines: Sequence[Line], begin: int) -> int:
    """Return where a report ends: behind its last line, or with the text."""
    most = min(len(lines), begin + _MOST_LINES)
    for at in range(begin, most):
        if _FOOTER.match(lines[at].text):
            return at + 1
        if _READ.match(lines[at].text):
            return _end_of_indented(lines, at + 1)
    short = lines[begin].text.lower().startswith(_WITHOUT_CAUSE) or _names_its_cause(lines, begin)
    if short and not any(map(_finding, lines[begin:most])):
        return _end_of_indented(lines, begin + 1)
    return most


def _end_of_indented(lines: Sequence[Line], begin: int) -> int:
    most = min(len(lines), begin + _MOST_LINES)
    others = (at for at in range(begin, most) if not lines[at].text.startswith("  "))
    return next(others, most)


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
        if slug in all_rules() and slug in all_messages()
    ]
    rest = Text(text.lines[:begin] + text.lines[end:])
    return rest, OwnReport(said, first, tuple(matches))


def _take_out_reply(text: Text) -> tuple[Text, OwnReport | None]:
    """Take an answer that triage wrote for the reporter for what it says of the cause."""
    reply = own_reply.find(text)
    if reply is None or not all(map(is_known, reply.slugs)):
        return text, None
    line = text.lines[reply.begin]
    matches = [
        own_match(slug, "error", line, {"headline": _headline(reply.headline, slug, at)}, at)
        for at, slug in enumerate(reply.slugs)
    ]
    rest = Text(text.lines[: reply.begin] + text.lines[reply.end :])
    return rest, OwnReport(reply.verdict, line, tuple(matches))


def _begins(lines: Sequence[Line], at: int) -> bool:
    return _VERDICT.match(lines[at].text) is not None or _finding(lines[at]) is not None


def _names_its_cause(lines: Sequence[Line], at: int) -> bool:
    """Whether a verdict ends with the name of a finding, as triage prints it."""
    head = _VERDICT.match(lines[at].text)
    named = _AT_THE_END.search(_headline_at(lines, at)) if head is not None else None
    return named is not None and is_known(named[1])


def _headline_at(lines: Sequence[Line], at: int) -> str:
    """Return the words behind a verdict, with the lines into which they were broken."""
    head = _VERDICT.match(lines[at].text)
    words = [head[2] or ""] if head is not None else []
    for line in lines[at + 1 : at + _MOST_WRAPPED] if words else ():
        if not line.text.startswith("  ") or _AT_THE_END.search(words[-1]):
            break
        words.append(line.text.strip())
    return " ".join(words)


def is_known(slug: str) -> bool:
    """Whether a word is the name of a finding that can be taken over."""
    return slug in all_rules() and slug in all_messages()


def _finding(line: Line) -> tuple[str, str] | None:
    """Return severity ("" where it is not said) and slug of a heading."""
    found = _FINDING.match(line.text)
    if found is not None:
        return (found[1], found[2]) if is_known(found[2]) else None
    found = _OF_TRIAGE.match(line.text)
    return ("", found[1]) if found is not None and is_known(found[1]) else None


def _read(lines: Sequence[Line]) -> OwnReport:
    head = _VERDICT.match(lines[0].text)
    verdict = head[1].lower() if head is not None else "broken"
    headline = _headline_at(lines, 0)
    named = _AT_THE_END.search(headline)
    if named is None and head is not None:
        headline = head[2] or ""
    found = [(line, said) for line in lines if (said := _finding(line)) is not None]
    if not found and named is not None:
        quiet = [(line, ("", slug[1])) for line in lines if (slug := _QUIET.match(line.text))]
        found = [one for one in quiet if is_known(one[1][1])] or [(lines[0], ("", named[1]))]
    headline = headline[: named.start()].rstrip() if named is not None else headline
    of_verdict = "warning" if verdict == "warning" else "error"
    matches = [
        own_match(
            slug, severity or of_verdict, line, {"headline": _headline(headline, slug, at)}, at
        )
        for at, (line, (severity, slug)) in enumerate(found)
    ]
    return OwnReport(verdict, lines[0], tuple(matches))


def _headline(headline: str, slug: str, at: int) -> str:
    return headline if headline and at == 0 else f"A report of gpucheck says so: {slug}"


def own_match(slug: str, severity: str, line: Line, values: dict[str, str], at: int = 0) -> Match:
    """Return what a report found as if a message had."""
    message = Message(
        name=f"{NAME}: {severity}",
        literal="gpucheck",
        pattern=_HEADLINE,
        strength=Strength.NAMES,
        tie_break=_TIE_BREAKS[min(at, len(_TIE_BREAKS) - 1)],
        says="{headline}",
        sample="",
        other="",
        severity=Severity(severity),
    )
    return Match(slug, message, line, values)
