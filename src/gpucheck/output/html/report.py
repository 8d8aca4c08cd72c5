"""The report of a machine, of its self-tests or of a text as a page: redacted, the fix first."""

from collections.abc import Sequence

from gpucheck.engine import Report
from gpucheck.engine.trailer import trailer
from gpucheck.facts.claims import Severity
from gpucheck.facts.selftests import SelfTests
from gpucheck.findings.form import Finding, Outcome
from gpucheck.language import in_series, say, say_many, spoken
from gpucheck.output.areas import areas
from gpucheck.output.html import ticket
from gpucheck.output.html.builder import Element, Node, el
from gpucheck.output.html.charts import of_selftests
from gpucheck.output.html.charts.svg import figure
from gpucheck.output.html.page import First, page
from gpucheck.output.html.parts import (
    article,
    evidence,
    fixes,
    folded,
    footer,
    items,
    more,
    pairs,
    paragraphs,
    section,
    state,
    table,
    words,
)
from gpucheck.output.public import public, whose_names
from gpucheck.output.selftest_lines import left_out, lines_of, measured
from gpucheck.output.summary import headline, open_questions, other_targets, reach, target, verdict
from gpucheck.output.terms import VERDICTS, term
from gpucheck.output.words import in_parts

_MEASURED = 500


def render(report: Report, note: str = "", *, redacted: bool = True) -> str:
    """Return the page; ``note`` is a sentence about the whole report."""
    report = public(report) if redacted else report
    if report.snapshot.origin == "pasted":
        return ticket.render(report)
    last = trailer(report.verdict, report.root_causes, spoken(VERDICTS[report.verdict]))
    main: list[Node] = [
        *paragraphs([note]),
        *(_finding(report, one) for one in report.standing),
        _questions(report),
        _tested(report),
        _machine(report),
        _selftests(report.snapshot.get(SelfTests)),
        _checks(report),
    ]
    return page(
        first_line(report), main, footer(report.snapshot, whose_names(report.snapshot), last)
    )


def first_line(report: Report) -> First:
    """Return the first line of the page of a report that is redacted."""
    if report.snapshot.origin == "pasted":
        return ticket.first_line(report)
    return First(report.verdict, VERDICTS[report.verdict], verdict(report))


def _finding(report: Report, finding: Finding) -> Element:
    is_note = finding.severity is Severity.INFO
    is_first = finding.slug in report.root_causes[:1]  # the first line already has this one
    explained = [
        one.slug
        for one in report.findings
        if one.silenced_by == finding.slug and one.severity is not Severity.INFO
    ]
    return article(
        finding.severity.value,
        finding.slug,
        None if is_first else el("p", words(headline(finding))),
        *fixes(finding.fixes[:1] if is_note else finding.fixes),
        evidence(finding),
        el("p", say("This also explains: {explained}", explained=in_series(explained)))
        if explained
        else None,
        more(finding.slug),
    )


def _questions(report: Report) -> Element | None:
    if report.verdict != "unknown":
        return None
    return section("questions", say("Open questions"), items(open_questions(report)))


def _tested(report: Report) -> Element:
    notes: list[tuple[str, Node]] = [
        (say("Note"), words(note)) for note in other_targets(report.snapshot)
    ]
    python = ("Python", words(target(report.snapshot)))
    return section(
        "tested", say("What was examined"),
        pairs([python, *notes, (say("Tested"), words(reach(report)))]),
    )  # fmt: skip


def _machine(report: Report) -> Element:
    rows = [
        (term(one.name), state(one.status), words(one.words), in_series(one.slugs))
        for one in areas(report)
    ]
    heads = (say("Area"), say("State"), say("Facts"), say("Findings"))
    return section("machine", say("This machine"), table(heads, rows))


def _selftests(tests: SelfTests) -> Element | None:
    if not tests.results:
        return None
    rows = [(line.name, state(line.status), words(line.words)) for line in lines_of(tests)]
    drawn = [figure(chart) for chart in of_selftests.charts(tests)]
    figures = list(measured(tests))
    shown = figures[:_MEASURED]
    if len(figures) > _MEASURED:
        shown.append(say("and {count:,} more", count=len(figures) - _MEASURED))
    return section(
        "self-tests", say("Self-tests"),
        table((say("Self-test"), say("State"), say("Result")), rows),
        items(left_out(tests)),
        el("div", *drawn, class_="charts") if drawn else None,
        folded(say("Every measured value"), items(shown)) if shown else None,
    )  # fmt: skip


def _checks(report: Report) -> Element | None:
    if not report.checks:
        return None
    counts = [
        say("{count} {outcome}", count=count, outcome=term(outcome.value))
        for outcome in Outcome
        if (count := sum(check.outcome is outcome for check in report.checks))
    ]
    order = list(Outcome)
    checks = sorted(report.checks, key=lambda one: (order.index(one.outcome), one.slug))
    rows = [(one.slug, term(one.outcome.value), words(one.reason)) for one in checks]
    heads = (say("Check"), say("Outcome"), say("Reason"))
    return section(
        "evidence", say("Everything that was looked at"),
        folded(say("Checks: {counts}", counts=in_series(counts)), table(heads, rows)),
        _probes(report),
    )  # fmt: skip


def _probes(report: Report) -> Element | None:
    runs = report.snapshot.runs.runs
    if not runs:
        return None
    rows: list[Sequence[Node]] = []
    for run in runs:
        took = say("{status}, {seconds:.3f} s", status=term(run.status), seconds=run.seconds)
        rows.append((run.name, in_parts([took, words(run.problem or "")])))
    heading = say_many(len(runs), "Probes: {count} probe", "Probes: {count} probes")
    return folded(heading, table((say("Probe"), say("Result")), rows))
