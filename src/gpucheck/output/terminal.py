"""A report for a person at a terminal: the verdict first, then its cause, evidence and fix."""

from collections.abc import Iterator
from typing import TextIO

import msgspec

from gpucheck.engine import Report
from gpucheck.engine.trailer import trailer
from gpucheck.facts import Facts
from gpucheck.facts.claims import Severity
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.findings.form import Check, Finding, Outcome
from gpucheck.output.areas import areas
from gpucheck.output.evidence import evidence_lines
from gpucheck.output.fix_words import caution, label
from gpucheck.output.layout import Page, encodable
from gpucheck.output.selftest_lines import left_out, lines_of, loaded_otherwise, measured
from gpucheck.output.summary import headline, open_questions, other_targets, reach, target, verdict
from gpucheck.output.words import clean, plural, shown

_STYLES = {
    "broken": "red",
    "error": "red",
    "warning": "yellow",
    "unknown": "blue",
    "info": "blue",
    "note": "blue",
    "healthy": "green",
    "ok": "green",
    "none": "dim",
}
_TEST_STYLES = {"passed": "green", "skipped": "dim"}
_TEST_COLUMNS = 20, 10
_VERDICT_COLUMN = 9
_AREA_COLUMNS = 15, 8
_LONGEST_WORDS, _LONGEST_COMMAND = 1000, 10_000


def show(
    report: Report,
    *,
    verbose: int,
    quiet: bool,
    color: bool,
    width: int | None,
    out: TextIO,
) -> None:
    """Write the report to ``out``, whatever its encoding."""
    text = render(report, verbose=verbose, quiet=quiet, color=color, width=width)
    out.write(encodable(text, getattr(out, "encoding", None)))


def render(
    report: Report,
    *,
    verbose: int = 0,
    quiet: bool = False,
    color: bool = False,
    width: int | None = None,
) -> str:
    """Return the report as text.

    Args:
        report: what to show.
        verbose: 1 adds every check, every probe and all of each finding; 2 every fact.
        quiet: only the verdict and the slugs.
        color: with SGR codes; no meaning depends on them.
        width: columns; 80 if unknown.
    """
    page = Page(width, color=color)
    _verdict(page, report)
    if quiet:
        for finding in report.standing:
            page.labelled(finding.severity.value, finding.slug, column=_VERDICT_COLUMN)
        return _ended(page, report)
    _target(page, report)
    for finding in report.standing:
        is_cause = finding.slug in report.root_causes[:1]
        in_full = verbose or is_cause or finding.severity is Severity.ERROR
        if in_full:
            _finding(page, report, finding)
        else:
            _in_short(page, finding)
    _questions(page, report)
    _selftests(page, report, verbose)
    if verbose or report.about == "machine" or report.verdict != "healthy":
        _areas(page, report)
    if verbose:
        _checks(page, report)
        _probes(page, report.snapshot)
    if verbose > 1:
        _facts(page, report.snapshot)
    show_footer(page, report)
    return _ended(page, report)


def _ended(page: Page, report: Report) -> str:
    """Return the page with its last line."""
    last = trailer(report.verdict, report.root_causes, report.verdict.upper())
    page.verbatim(last, style="dim")
    return page.text()


def _verdict(page: Page, report: Report) -> None:
    style = _STYLES[report.verdict]
    label = report.verdict.upper()
    page.labelled(label, verdict(report), column=_VERDICT_COLUMN, style=style)


def _target(page: Page, report: Report) -> None:
    page.labelled("Python", target(report.snapshot), column=_VERDICT_COLUMN)
    for note in other_targets(report.snapshot):
        page.labelled("Note", note, column=_VERDICT_COLUMN)
    page.labelled("Tested", reach(report), column=_VERDICT_COLUMN)


def _finding(page: Page, report: Report, finding: Finding) -> None:
    severity = finding.severity.value
    page.heading(f"{severity}: {finding.slug}", style=_STYLES[severity])
    if finding.slug not in report.root_causes[:1]:  # the verdict already has this one
        page.words(headline(finding), indent=2)
    if finding.evidence:
        page.words("", lead="Evidence", indent=2)
    for fact, value, source in evidence_lines(finding):
        read = f" ({source})" if source else ""
        page.words(f"{fact}: {value}{read}", indent=4, hang=6)
    show_fixes(page, finding)
    # A note, such as that of an old driver branch, is no symptom: it only waits its turn.
    explained = [
        one.slug
        for one in report.findings
        if one.silenced_by == finding.slug and one.severity is not Severity.INFO
    ]
    if explained:
        page.words(f"This explains as well: {', '.join(explained)}", indent=2, hang=4)
    page.words(f"More: gpucheck explain {finding.slug}", indent=2)


def show_fixes(page: Page, finding: Finding) -> None:
    """Write the fixes of a finding, with commands ready to copy."""
    for number, fix in enumerate(finding.fixes, start=1):
        lead = f"{label(fix, number, len(finding.fixes))}: "
        page.words(clean(fix.text, _LONGEST_WORDS), lead=lead, indent=2, hang=4)
        if fix.cautions:
            page.words(clean(caution(fix), _LONGEST_WORDS), lead="Caution: ", indent=4)
        for command in fix.commands:
            page.verbatim(clean(command, _LONGEST_COMMAND), indent=6)
        if fix.verify:
            page.words(f"Verify: {clean(fix.verify)}", indent=4)


def _in_short(page: Page, finding: Finding) -> None:
    severity = finding.severity.value
    page.heading(f"{severity}: {finding.slug}", style=_STYLES[severity])
    page.words(headline(finding), indent=2)
    if finding.fixes:
        page.words(f"Fix: {clean(finding.fixes[0].text)}", indent=2, hang=4)
    page.words(f"More: gpucheck -v, or gpucheck explain {finding.slug}", indent=2)


def _questions(page: Page, report: Report) -> None:
    if report.verdict != "unknown":
        return
    page.heading("Open questions")
    for question in open_questions(report):
        page.words(question, indent=2, hang=4)


def _areas(page: Page, report: Report) -> None:
    page.heading("This machine")
    name_column, status_column = _AREA_COLUMNS
    for area in areas(report):
        words = area.words or ("nothing was said about it" if area.status == "unknown" else "")
        slugs = f"; see {', '.join(area.slugs)}" if area.slugs else ""
        cells = [
            (area.name, name_column, ""),
            (area.status, status_column, _STYLES.get(area.status, "")),
        ]
        page.columns(cells, f"{words}{slugs}", indent=2)


def _selftests(page: Page, report: Report, verbose: int) -> None:
    tests = report.snapshot.get(SelfTests)
    if not tests.results:
        return
    page.heading("Self-tests")
    name_column, status_column = _TEST_COLUMNS
    for line in lines_of(tests):
        cells = [
            (line.name, name_column, ""),
            (line.status, status_column, _TEST_STYLES.get(line.status, "red")),
        ]
        page.columns(cells, line.words, indent=2)
    if verbose or report.about == "self-tests":
        for words in left_out(tests):
            page.words(words, lead="left out of ", indent=2, hang=4)
    if verbose:
        for words in measured(tests):
            page.words(words, indent=4, hang=6)
        for words in loaded_otherwise(tests):
            page.words(f"not as predicted: {words}", indent=4, hang=6)


def _checks(page: Page, report: Report) -> None:
    counts = [
        f"{count} {outcome.value}"
        for outcome in Outcome
        if (count := sum(check.outcome is outcome for check in report.checks))
    ]
    page.heading(f"Checks: {', '.join(counts)}")
    order = list(Outcome)
    for check in sorted(report.checks, key=lambda check: (order.index(check.outcome), check.slug)):
        page.labelled(check.outcome.value, _check(check), indent=2, column=16)


def _check(check: Check) -> str:
    return f"{check.slug}: {clean(check.reason)}" if check.reason else check.slug


def _probes(page: Page, snapshot: Snapshot) -> None:
    runs = snapshot.runs.runs
    if not runs:
        return
    page.heading(f"Probes: {plural(len(runs), 'probe')}")
    for run in runs:
        problem = f": {clean(run.problem)}" if run.problem else ""
        page.labelled(run.name, f"{run.status}, {run.seconds:.3f} s{problem}", indent=2, column=16)


def _facts(page: Page, snapshot: Snapshot) -> None:
    page.heading("Facts")
    for section in snapshot.sections.values():
        for path, value, source in _flat(section, section.name):
            page.words(f"{path}: {value}{source}", indent=2, hang=4)


def _flat(group: Facts, path: str) -> Iterator[tuple[str, str, str]]:
    """Return each fact below a group: its path, its value, and its source or problem."""
    for field in group.__struct_fields__:
        if field in ("sources", "problems"):
            continue
        value = getattr(group, field)
        if isinstance(value, list) and value and isinstance(value[0], Facts):
            for at, one in enumerate(value):
                yield from _flat(one, f"{path}.{field}.{at}")
            continue
        said = group.problem(field) if value is None else group.source(field)
        words = shown(msgspec.to_builtins(value), field)
        yield f"{path}.{field}", words, f" ({clean(said)})" if said else ""


def show_footer(page: Page, report: Report) -> None:
    """Write the version of gpucheck and of its tables, and the time."""
    snapshot = report.snapshot
    versions = snapshot.versions
    origin = "" if snapshot.origin == "live" else f", {snapshot.origin} machine"
    page.blank()
    page.words(
        f"gpucheck {clean(versions.version)}, tables {clean(versions.tables)}, "
        f"{clean(snapshot.taken)}{origin}",
        style="dim",
    )
