"""A report for a person at a terminal: the verdict first, then its cause, evidence and fix."""

from collections.abc import Iterator
from typing import TextIO

from gpucheck.engine import Report
from gpucheck.engine.trailer import trailer
from gpucheck.facts import Facts, builtins
from gpucheck.facts.claims import Severity
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Origin, Snapshot
from gpucheck.findings.form import Check, Finding, Outcome
from gpucheck.language import in_series, say, say_many, spoken
from gpucheck.output.areas import areas
from gpucheck.output.fix_text import show_fixes
from gpucheck.output.layout import Page, encodable
from gpucheck.output.selftest_lines import left_out, lines_of, loaded_otherwise, measured
from gpucheck.output.summary import headline, open_questions, other_targets, reach, target, verdict
from gpucheck.output.terms import VERDICTS, term
from gpucheck.output.words import bracketed, clean, headed, in_parts, shown

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
_ORIGINS: dict[Origin, str] = {
    "sysroot": say("sysroot machine"),
    "recorded": say("recorded machine"),
    "pasted": say("pasted machine"),
    "described": say("described machine"),
}
_VERDICT_COLUMN = 9
_AREA_COLUMNS = 15, 8


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
            page.labelled(term(finding.severity.value), finding.slug, column=_VERDICT_COLUMN)
        return _ended(page, report)
    _target(page, report, has_checks=verbose > 0)
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
    last = trailer(report.verdict, report.root_causes, spoken(VERDICTS[report.verdict]))
    page.verbatim(last, style="dim")
    return page.text()


def _verdict(page: Page, report: Report) -> None:
    style = _STYLES[report.verdict]
    page.labelled(VERDICTS[report.verdict], verdict(report), column=_VERDICT_COLUMN, style=style)


def _target(page: Page, report: Report, *, has_checks: bool) -> None:
    page.labelled("Python", target(report.snapshot), column=_VERDICT_COLUMN)
    for note in other_targets(report.snapshot):
        page.labelled(say("Note"), note, column=_VERDICT_COLUMN, whole="gpucheck --python ")
    page.labelled(say("Tested"), reach(report, has_checks=has_checks), column=_VERDICT_COLUMN)


def _finding(page: Page, report: Report, finding: Finding) -> None:
    from gpucheck.output.evidence import evidence_lines  # noqa: PLC0415  # most machines are healthy

    severity = finding.severity.value
    page.heading(headed(term(severity), finding.slug), style=_STYLES[severity])
    if finding.slug not in report.root_causes[:1]:  # the verdict already has this one
        page.words(headline(finding), indent=2)
    if finding.evidence:
        page.words("", lead=say("Evidence"), indent=2)
    for fact, value, source in evidence_lines(finding):
        page.words(bracketed(headed(fact, value), source), indent=4, hang=6)
    show_fixes(page, finding)
    # A note, such as that of an old driver branch, is no symptom: it only waits its turn.
    explained = [
        one.slug
        for one in report.findings
        if one.silenced_by == finding.slug and one.severity is not Severity.INFO
    ]
    if explained:
        page.words(
            say("This also explains: {explained}", explained=in_series(explained)),
            indent=2,
            hang=4,
        )
    page.words(say("More: gpucheck explain {slug}", slug=finding.slug), indent=2)


def _in_short(page: Page, finding: Finding) -> None:
    severity = finding.severity.value
    page.heading(headed(term(severity), finding.slug), style=_STYLES[severity])
    page.words(headline(finding), indent=2)
    if finding.fixes:
        page.words(say("Fix: {text}", text=clean(finding.fixes[0].text)), indent=2, hang=4)
    page.words(say("More: gpucheck -v, or gpucheck explain {slug}", slug=finding.slug), indent=2)


def _questions(page: Page, report: Report) -> None:
    if report.verdict != "unknown":
        return
    page.heading(say("Open questions"))
    for question in open_questions(report):
        page.words(question, indent=2, hang=4)


def _areas(page: Page, report: Report) -> None:
    page.heading(say("This machine"))
    name_column, status_column = _AREA_COLUMNS
    for area in areas(report):
        words = area.words
        if not words and area.status == "unknown":
            words = say("no information was given")
        slugs = say("see {slugs}", slugs=in_series(area.slugs)) if area.slugs else ""
        cells = [
            (term(area.name), name_column, ""),
            (term(area.status), status_column, _STYLES.get(area.status, "")),
        ]
        page.columns(cells, in_parts([words, slugs]), indent=2)


def _selftests(page: Page, report: Report, verbose: int) -> None:
    tests = report.snapshot.get(SelfTests)
    if not tests.results:
        return
    page.heading(say("Self-tests"))
    name_column, status_column = _TEST_COLUMNS
    for line in lines_of(tests):
        cells = [
            (line.name, name_column, ""),
            (term(line.status), status_column, _TEST_STYLES.get(line.status, "red")),
        ]
        page.columns(cells, line.words, indent=2)
    if verbose or report.about == "self-tests":
        for words in left_out(tests):
            page.words(words, indent=2, hang=4)
    if verbose:
        for words in measured(tests):
            page.words(words, indent=4, hang=6)
        for words in loaded_otherwise(tests):
            page.words(say("not as predicted: {words}", words=words), indent=4, hang=6)


def _checks(page: Page, report: Report) -> None:
    counts = [
        say("{count} {outcome}", count=count, outcome=term(outcome.value))
        for outcome in Outcome
        if (count := sum(check.outcome is outcome for check in report.checks))
    ]
    page.heading(say("Checks: {counts}", counts=in_series(counts)))
    order = list(Outcome)
    for check in sorted(report.checks, key=lambda check: (order.index(check.outcome), check.slug)):
        page.labelled(term(check.outcome.value), _check(check), indent=2, column=16)


def _check(check: Check) -> str:
    return headed(check.slug, clean(check.reason))


def _probes(page: Page, snapshot: Snapshot) -> None:
    runs = snapshot.runs.runs
    if not runs:
        return
    page.heading(say_many(len(runs), "Probes: {count} probe", "Probes: {count} probes"))
    for run in runs:
        took = say("{status}, {seconds:.3f} s", status=term(run.status), seconds=run.seconds)
        page.labelled(run.name, headed(took, clean(run.problem or "")), indent=2, column=16)


def _facts(page: Page, snapshot: Snapshot) -> None:
    page.heading(say("Facts"))
    for section in snapshot.sections.values():
        for path, value, source in _flat(section, section.name):
            page.words(bracketed(headed(path, value), source), indent=2, hang=4)


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
        words = shown(builtins(value), field)
        yield f"{path}.{field}", words, clean(said)


def show_footer(page: Page, report: Report) -> None:
    """Write the version of gpucheck and of its tables, and the time."""
    snapshot = report.snapshot
    versions = snapshot.versions
    footer = say(
        "gpucheck {version}, tables {tables}, {taken}",
        version=clean(versions.version),
        tables=clean(versions.tables),
        taken=clean(snapshot.taken),
    )
    page.blank()
    origin = _ORIGINS.get(snapshot.origin)
    if origin:
        footer = say("{versions}, {origin}", versions=footer, origin=origin)
    page.words(footer, style="dim")
