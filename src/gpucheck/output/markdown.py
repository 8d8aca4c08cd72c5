"""A report to paste into an issue: redacted, and nothing in it acts as markup or as a mention."""

import re

from gpucheck.engine import Report
from gpucheck.engine.trailer import trailer
from gpucheck.facts.claims import Severity
from gpucheck.facts.selftests import SelfTests
from gpucheck.findings.form import Finding
from gpucheck.output.areas import areas
from gpucheck.output.evidence import Line, evidence_lines
from gpucheck.output.fix_words import caution, label
from gpucheck.output.public import public
from gpucheck.output.selftest_lines import lines_of
from gpucheck.output.summary import headline, open_questions, reach, target, verdict
from gpucheck.output.words import clean

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&])")
_REFERS = re.compile(r"@(?=\w)|#(?=[0-9])|(?<=GH)-(?=[0-9])", re.IGNORECASE)
_LINKS = re.compile(r"(?<=[a-z]):(?=//)|(?<=www)\.", re.IGNORECASE)
_NO_WIDTH = "&#8203;"
"""Trackers look for mentions and issue numbers after entities have become characters: an entity for
the sign itself changes nothing, a space of no width behind it does."""
_FENCE = re.compile(r"`{3,}")
_LONGEST_COMMAND, _LONGEST_WORDS = 10_000, 1000


def render(report: Report) -> str:
    """Return the report as GitHub's Markdown."""
    report = public(report)
    parts = [
        f"**{report.verdict.upper()}**: {escaped(verdict(report))}",
        f"Python: {escaped(target(report.snapshot))}",
        escaped(reach(report)),
        *(_finding(finding) for finding in report.standing),
        _questions(report),
        _selftests(report),
        _table(report),
        _footer(report),
        code(trailer(report.verdict, report.root_causes, report.verdict.upper())),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(text: str, limit: int = _LONGEST_WORDS) -> str:
    """Return untrusted text, escaped so that it is shown literally.

    Markup, tables, HTML, mentions, issue numbers and bare links lose their meaning.
    """
    harmless = _SPECIAL.sub(_literal, clean(text, limit))
    harmless = _REFERS.sub(lambda found: found[0] + _NO_WIDTH, harmless)
    return _LINKS.sub(lambda found: f"&#{ord(found[0])};", harmless)


def code(text: str, limit: int = _LONGEST_WORDS) -> str:
    """Return untrusted text as inline code."""
    inner = clean(text, limit).replace("`", "'")
    return f"`{inner}`" if inner else "(nothing)"


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
        f"### {finding.severity.value}: {finding.slug}",
        escaped(headline(finding)),
    ]
    evidence = [_evidence(line) for line in evidence_lines(finding)]
    lines += ["\n".join(evidence)] if evidence else []
    fixes = finding.fixes if finding.severity is not Severity.INFO else finding.fixes[:1]
    for number, fix in enumerate(fixes, start=1):
        lines.append(f"**{label(fix, number, len(fixes))}.** {escaped(fix.text)}")
        if fix.cautions:
            lines.append(f"**Caution.** {escaped(caution(fix))}")
        if fix.commands:
            lines.append(block(fix.commands))
        if fix.verify:
            lines.append(f"Verify: {code(fix.verify)}")
    return "\n\n".join(lines)


def _evidence(line: Line) -> str:
    source = f" from {code(line.source)}" if line.source else ""
    return f"- {code(f'{line.fact} = {line.value}')}{source}"


def _questions(report: Report) -> str:
    if report.verdict != "unknown":
        return ""
    lines = [f"- {escaped(question)}" for question in open_questions(report)]
    return "\n".join(("### Open questions", "", *lines))


def _selftests(report: Report) -> str:
    tests = report.snapshot.get(SelfTests)
    if not tests.results:
        return ""
    rows = [
        f"| {escaped(line.name)} | {line.status} | {escaped(line.words)} |"
        for line in lines_of(tests)
    ]
    return "\n".join(("| Self-test | | |", "|---|---|---|", *rows))


def _table(report: Report) -> str:
    rows = [
        f"| {area.name} | {area.status} | {escaped(area.words)} | {', '.join(area.slugs)} |"
        for area in areas(report)
    ]
    return "\n".join(("| Area | State | Facts | Findings |", "|---|---|---|---|", *rows))


def _footer(report: Report) -> str:
    versions = report.snapshot.versions
    return (
        f"gpucheck {escaped(versions.version)}, tables {escaped(versions.tables)}, "
        f"{escaped(report.snapshot.taken)}. Names, paths, addresses and UUIDs are stand-ins."
    )
