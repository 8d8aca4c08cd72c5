"""A report to paste into an issue: redacted, and nothing in it acts as markup or as a mention."""

import re
from collections.abc import Iterable, Sequence

from gpucheck.engine import Report
from gpucheck.engine.trailer import trailer
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.findings.form import Finding
from gpucheck.language import in_series, in_turn, say, spoken
from gpucheck.output.areas import areas
from gpucheck.output.evidence import Line, evidence_lines
from gpucheck.output.fix_words import THEN, blocks, caution, label
from gpucheck.output.public import public, whose_names
from gpucheck.output.selftest_lines import lines_of
from gpucheck.output.summary import headline, open_questions, reach, target, verdict
from gpucheck.output.terms import VERDICTS, term
from gpucheck.output.words import clean, headed

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&])")
_REFERS = re.compile(r"@(?=\w)|#(?=[0-9])|(?<=GH)-(?=[0-9])", re.IGNORECASE)
_LINKS = re.compile(r"(?<=[a-z]):(?=//)|(?<=www)\.", re.IGNORECASE)
_NO_WIDTH = "&#8203;"
"""Trackers look for mentions and issue numbers after entities have become characters: an entity for
the sign itself changes nothing, a space of no width behind it does."""
_FENCE = re.compile(r"`{3,}")
_LONGEST_COMMAND, _LONGEST_WORDS = 10_000, 1000


def render(report: Report, *, redacted: bool = True) -> str:
    """Return the report as GitHub's Markdown."""
    report = public(report) if redacted else report
    parts = [
        strong(VERDICTS[report.verdict], verdict(report)),
        escaped(headed("Python", target(report.snapshot))),
        escaped(reach(report)),
        *(_finding(finding) for finding in report.standing),
        _questions(report),
        _selftests(report),
        _table(report),
        _footer(report),
        code(trailer(report.verdict, report.root_causes, spoken(VERDICTS[report.verdict]))),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(text: str, limit: int = _LONGEST_WORDS) -> str:
    """Return untrusted text, escaped so that it is shown literally.

    Markup, tables, HTML, mentions, issue numbers and bare links lose their meaning.
    """
    harmless = _SPECIAL.sub(_literal, clean(spoken(text), limit))
    harmless = _REFERS.sub(lambda found: found[0] + _NO_WIDTH, harmless)
    return _LINKS.sub(lambda found: f"&#{ord(found[0])};", harmless)


def code(text: str, limit: int = _LONGEST_WORDS) -> str:
    """Return untrusted text as inline code."""
    inner = clean(spoken(text), limit).replace("`", "'")
    return f"`{inner}`" if inner else escaped(say("(nothing)"))


def strong(lead: str, text: str, limit: int = _LONGEST_WORDS) -> str:
    """Return ``lead: text``, untrusted, with the lead in bold."""
    bold = escaped(lead, limit)
    return f"**{bold}**{escaped(headed(lead, text), limit).removeprefix(bold)}"


def block(lines: tuple[str, ...]) -> str:
    """Return lines as a fenced block with a fence that no line can close."""
    cleaned = [clean(line, _LONGEST_COMMAND) for line in lines]
    longest = max((len(run) for line in cleaned for run in _FENCE.findall(line)), default=2)
    fence = "`" * (longest + 1)
    return "\n".join((f"{fence}sh", *cleaned, fence))


def _literal(found: re.Match[str]) -> str:
    return {"<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(found[0], f"\\{found[0]}")


def _finding(finding: Finding) -> str:
    lines = [
        f"### {escaped(headed(term(finding.severity.value), finding.slug))}",
        escaped(headline(finding)),
    ]
    evidence = [_evidence(line) for line in evidence_lines(finding)]
    lines += ["\n".join(evidence)] if evidence else []
    fixes = finding.fixes if finding.severity is not Severity.INFO else finding.fixes[:1]
    for number, fix in enumerate(fixes, start=1):
        lines += shown_fix(fix, number, len(fixes))
    return "\n\n".join(lines)


def shown_fix(fix: Fix, number: int, count: int) -> list[str]:
    """Return the paragraphs of a fix."""
    name = say("{name}.", name=label(fix, number, count))
    lines = [f"**{escaped(name)}** {escaped(fix.text)}"]
    if fix.cautions:
        lines.append(f"**{escaped(say('Caution.'))}** {escaped(caution(fix))}")
    for at, commands in enumerate(blocks(fix)):
        lines += [*([escaped(THEN)] if at else []), block(commands)]
    if fix.verify:
        lines.append(f"{escaped(say('Verify:'))} {code(fix.verify)}")
    return lines


def _evidence(line: Line) -> str:
    fact = code(say("{fact} = {value}", fact=line.fact, value=line.value))
    return f"- {fact} {escaped(say('from'))} {code(line.source)}" if line.source else f"- {fact}"


def _questions(report: Report) -> str:
    if report.verdict != "unknown":
        return ""
    lines = [f"- {escaped(question)}" for question in open_questions(report)]
    return "\n".join((f"### {escaped(say('Open questions'))}", "", *lines))


def _selftests(report: Report) -> str:
    tests = report.snapshot.get(SelfTests)
    if not tests.results:
        return ""
    rows = [(line.name, term(line.status), line.words) for line in lines_of(tests)]
    return table((say("Self-test"), "", ""), rows)


def _table(report: Report) -> str:
    rows = [
        (term(area.name), term(area.status), area.words, in_series(area.slugs))
        for area in areas(report)
    ]
    return table((say("Area"), say("State"), say("Facts"), say("Findings")), rows)


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of untrusted cells."""
    lines = [_row(heads), "|" + "---|" * len(heads), *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "|" + "".join(f" {escaped(cell)} |" if cell else " |" for cell in cells)


def _footer(report: Report) -> str:
    return footer(report.snapshot, whose_names(report.snapshot))


def footer(snapshot: Snapshot, names: str) -> str:
    """Return the versions and the time, and what the names in the report are."""
    versions = snapshot.versions
    read = say(
        "gpucheck {version}, tables {tables}, {taken}.",
        version=versions.version,
        tables=versions.tables,
        taken=snapshot.taken,
    )
    return escaped(in_turn([read, names]))
