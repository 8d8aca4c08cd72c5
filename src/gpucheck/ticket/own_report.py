"""A report of gpucheck in a text: its findings are taken, its lines are not read again.

A report mentions many causes in words that look like messages: in its fixes, and in its list of
what is fine. Its findings are read from its last line, which is the same in every format and
language, or from its JSON.
"""

import re
from collections.abc import Sequence

import msgspec

from gpucheck.engine import Report
from gpucheck.engine.report import MARK, MOST_LINES, Trailer, parse, start_of
from gpucheck.facts.claims import Severity
from gpucheck.facts.snapshot import REPORT_SCHEMA, SCHEMA
from gpucheck.findings import all_rules
from gpucheck.language import plain, say
from gpucheck.log_patterns.form import FindingMessages, Message, MessageFix, Strength
from gpucheck.log_patterns.loading import all_messages
from gpucheck.log_patterns.matcher import Match
from gpucheck.log_patterns.text import Line, Text

NAME = say("gpucheck report")

_MOST_REPORTS, _MOST_LINES, _MOST_CAUSES = 16, 4000, 20
"""The most reports that are taken out of a text, and the most lines and causes of each."""
_FOOTER = re.compile(r"^(?:gpucheck \d[\w.+]{0,20}, tables \d|Read {5}\S)")
_VERDICT = re.compile(r"^\*{0,2}(?:HEALTHY|WARNING|BROKEN|UNKNOWN)\b")
"""The last and the first line of a report by the first version, which had no trailer."""
_SAYS_SO = say("A report of gpucheck says so: {slug}").key
_AS_SAID = say("Follow the advice of that report. This command shows what the finding means.").key
_SLUG = r"(?P<slug>.+)"
_TIE_BREAKS = (3, 2, 1)
"""The tie-breaks of the first, second and further findings: a report has the cause first."""
_SCHEMA = tuple(f'"{schema}"' for schema in (REPORT_SCHEMA, SCHEMA))
_JSON_VERDICT = re.compile(r'"verdict":\s{0,8}"(healthy|warning|broken|unknown)"')
_JSON_CAUSES = re.compile(r'"root_causes":\s{0,8}\[([^\[\]]{0,2000})\]')
_JSON_HEAD, _JSON_ENDS = 40, ("}", "```")
"""The number of lines that can have the causes, and the lines that end a JSON text."""


class OwnReport(msgspec.Struct, frozen=True):
    """The verdict of a report that is in a text, and what it found."""

    verdict: str
    line: Line
    matches: tuple[Match, ...]


def take_out(text: Text) -> tuple[Text, OwnReport | None]:
    """Return the text without its reports, and what they found; None if there are none."""
    if any(map(text.holds, _SCHEMA)):
        return _without_json(text)
    lines, reports = list(text.lines), []
    upper = len(lines)
    for at in reversed(text.find(MARK)[-_MOST_REPORTS:]):
        trailer = parse([line.text for line in lines[at : at + MOST_LINES]])
        if at >= upper or trailer is None:  # it is quoted in a report, or is no trailer
            continue
        reports.append(_read(trailer, lines[at]))
        upper = _begin(lines, at, trailer)
        end = at + trailer.lines
        repeated = end < len(lines) and start_of(lines[end].text) == trailer.start
        del lines[upper : end + repeated]  # a terminal's page ends with the verdict once more
    if reports:
        return Text(lines), _joined(reports[::-1])
    return _without_older(text), None


def _begin(lines: Sequence[Line], at: int, trailer: Trailer) -> int:
    """Return where the report with this trailer begins; the trailer's line if unknown."""
    above = range(at - 1, max(-1, at - _MOST_LINES), -1)
    return next((index for index in above if start_of(lines[index].text) == trailer.start), at)


def _read(trailer: Trailer, line: Line) -> OwnReport:
    return OwnReport(trailer.verdict, line, _matches(trailer.verdict, trailer.causes, line))


def _joined(reports: Sequence[OwnReport]) -> OwnReport:
    """Return several reports as one: all causes, with the verdict of the first that has any."""
    first = next((report for report in reports if report.matches), reports[0])
    matches = {match.slug: match for report in reversed(reports) for match in report.matches}
    ordered = dict.fromkeys(match.slug for report in (first, *reports) for match in report.matches)
    return OwnReport(first.verdict, first.line, tuple(matches[slug] for slug in ordered))


def _without_older(text: Text) -> Text:
    """Return the text without reports that have no trailer: their lines are no messages."""
    footers = [
        at for at in text.find(", tables ", "read     ") if _FOOTER.match(text.lines[at].text)
    ]
    lines = list(text.lines)
    upper = len(lines)
    for at in reversed(footers[-_MOST_REPORTS:]):
        above = range(at - 1, max(-1, at - _MOST_LINES), -1)
        begin = next((index for index in above if _VERDICT.match(text.lines[index].text)), at)
        if at < upper and begin < at:
            del lines[begin : at + 1]
            upper = begin
    return Text(lines) if len(lines) < len(text.lines) else text


def _matches(verdict: str, causes: Sequence[str], line: Line) -> tuple[Match, ...]:
    """Return what a report names as if messages had named it; unknown slugs are left out."""
    severity = "warning" if verdict == "warning" else "error"
    known = [slug for slug in causes if slug in all_rules()]
    return tuple(own_match(slug, severity, line, at) for at, slug in enumerate(known))


def _without_json(text: Text) -> tuple[Text, OwnReport | None]:
    """Return the text without reports in JSON, and what they found."""
    reports: list[OwnReport] = []
    while len(reports) < _MOST_REPORTS and (found := text.find(*_SCHEMA, most=1)):
        text, report = _take_out_json(text, found[0])
        reports.append(report)
    return text, _joined(reports)


def as_line(report: Report, line: Line) -> Line:
    """Return a report as the line that stands for it in a text, from which it is taken again."""
    content = {"verdict": report.verdict, "root_causes": report.root_causes[:_MOST_CAUSES]}
    text = msgspec.json.encode({"schema": REPORT_SCHEMA, **content}, enc_hook=plain).decode()
    return Line(line.number, text, file=line.file)


def _take_out_json(text: Text, begin: int) -> tuple[Text, OwnReport]:
    """Take the causes of a saved report; its facts are lost because its lines were cut."""
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
    word = verdict[1] if verdict is not None else "unknown"
    slugs = re.findall(r'"([a-z][a-z0-9-]{3,50})"', causes[1]) if causes is not None else []
    rest = Text(text.lines[:begin] + text.lines[end:])
    return rest, OwnReport(word, first, _matches(word, slugs, first))


def words_about(slug: str) -> FindingMessages:
    """Return the messages of a finding, and what to do about it; some only gpucheck itself names.

    What it then advised stands in its report, and depends on facts that are not in the text.
    """
    return all_messages().get(slug) or FindingMessages(
        fixes=(MessageFix(text=_AS_SAID, commands=(f"gpucheck explain {slug}",)),), messages=()
    )


def own_match(slug: str, severity: str, line: Line, at: int = 0) -> Match:
    """Return what a report found as if a message had said it."""
    message = Message(
        name=f"{NAME}: {severity}",
        literal="gpucheck",
        pattern=_SLUG,
        strength=Strength.NAMES,
        tie_break=_TIE_BREAKS[min(at, len(_TIE_BREAKS) - 1)],
        says=_SAYS_SO,
        sample="",
        other="",
        severity=Severity(severity),
    )
    return Match(slug, message, line, {"slug": slug})
