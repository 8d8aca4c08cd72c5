"""The report of a machine, of its self-tests or of a text as a page: redacted, the fix first."""

from collections.abc import Iterator

import msgspec

from gpucheck.engine import Report
from gpucheck.facts.claims import Severity
from gpucheck.facts.request import Pasted
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import System
from gpucheck.findings.form import Finding, Outcome
from gpucheck.language import in_series, in_turn, say, say_many
from gpucheck.output import report_blocks, ticket_text
from gpucheck.output.blocks import Box, Words
from gpucheck.output.evidence import seen
from gpucheck.output.gpu_table import gpu_table
from gpucheck.output.html.charts import of_selftests
from gpucheck.output.html.charts.svg import figure
from gpucheck.output.html.elements import (
    Element,
    Node,
    el,
    ending,
    facts,
    folded,
    items,
    pairs,
    section,
    state,
    table,
    when,
    words,
    written,
)
from gpucheck.output.html.page import First, page
from gpucheck.output.machine_summary import areas
from gpucheck.output.public import public, whose_names
from gpucheck.output.selftest_lines import left_out, lines_of, measured
from gpucheck.output.summary import headline, recorded, trailer_of, verdict
from gpucheck.output.words import VERDICTS, bracketed, clean, headed, in_parts, term

_MEASURED = 500  # chosen: lines of a list; a saved report may have any number

# Chosen: a finding of a ticket quotes a few lines; folders of tickets may have any number.
_MOST_LINES = 200


def render(report: Report, note: str = "", *, redacted: bool = True) -> str:
    """Return the page; ``note`` is a sentence about the whole report."""
    report = public(report) if redacted else report
    if report.snapshot.origin == "pasted":
        return _ticket_page(report)
    examined = [
        (name, words(sentence))
        for name, sentence in report_blocks.examined(report, has_checks=bool(report.checks))
    ]
    elsewhere = recorded(report)
    main: list[Node] = [
        *written([Words(elsewhere, lead=say("Machine"))] if elsewhere else []),
        *written([Words(note)] if note else []),
        *written(_machine_box(report, finding) for finding in report.standing if _counts(finding)),
        *(_note(report, finding) for finding in report.standing if not _counts(finding)),
        *written(report_blocks.questions(report)),
        section("tested", say("What was examined"), pairs(examined)),
        _gpus(report),
        _machine(report),
        _selftests(report.snapshot.get(SelfTests)),
        _checks(report),
    ]
    end = ending(report.snapshot, whose_names(report.snapshot), trailer_of(report))
    return page(first_line(report), main, end, [facts(_facts(report))])


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    """Yield which machine it was, when, and how much is in order."""
    snapshot = report.snapshot
    yield say("Host"), clean(snapshot.get(System).hostname or "")
    yield say("Time"), when(snapshot.taken)
    fine = sum(check.outcome is Outcome.FINE for check in report.checks)
    results = snapshot.get(SelfTests).results
    passed = sum(result.status == "passed" for result in results or ())
    counts = [say_many(fine, "{count} check", "{count} checks")] if report.checks else []
    counts.append(
        say("no self-test was run")
        if results is None
        else say_many(passed, "{count} self-test", "{count} self-tests")
    )
    yield say("Passed"), in_series(counts)


def _counts(finding: Finding) -> bool:
    return finding.severity is not Severity.INFO


def _machine_box(report: Report, finding: Finding) -> Box:
    """Return a finding that counts, with what shows it in words."""
    box = report_blocks.box(report, finding)
    shown = seen(finding)
    evidence = (Words(shown, lead=say("Evidence")),) if shown else ()
    return msgspec.structs.replace(
        box,
        intro=(*box.intro, *evidence),
        evidence=(*box.evidence, *report_blocks.sources(finding)),
    )


def _note(report: Report, finding: Finding) -> Element:
    """Return a note, of which one line is enough until somebody wants more."""
    box = report_blocks.box(report, finding, every_fix=False)
    summary = headed(say("Note"), bracketed(headline(finding), finding.slug))
    parts = (*box.fixes, *box.evidence, *report_blocks.sources(finding), *box.more)
    return folded(summary, *written(parts))


def first_line(report: Report) -> First:
    """Return the first line of the page of a report that is redacted."""
    if report.snapshot.origin == "pasted":
        return _ticket_first_line(report)
    return First(report.verdict, VERDICTS[report.verdict], verdict(report))


def _machine(report: Report) -> Element:
    rows = [
        (term(area.name), state(area.status), words(area.words), in_series(area.slugs))
        for area in areas(report)
    ]
    heads = (say("Area"), say("State"), say("Facts"), say("Findings"))
    return section("machine", report_blocks.machine_named(report), table(heads, rows))


def _gpus(report: Report) -> Element | None:
    """Return the table of several GPUs, with why a GPU is not kept."""
    found = gpu_table(report)
    if found is None:
        return None
    rows = [(*map(words, row.cells), words(row.why)) for row in found.rows]
    return section(
        "gpus", say("GPUs"), el("p", words(found.title)), table((*found.heads, say("Why")), rows)
    )


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
    rows = [
        (check.slug, term(check.outcome.value), words(check.reason))
        for check in report_blocks.sorted_checks(report)
    ]
    heads = (say("Check"), say("Outcome"), say("Reason"))
    return section(
        "evidence", say("Everything that was looked at"),
        folded(report_blocks.counted_checks(report), table(heads, rows)),
        _probes(report.snapshot),
    )  # fmt: skip


def _probes(snapshot: Snapshot) -> Element | None:
    rows = [
        (run.name, in_parts([report_blocks.took(run), words(run.problem or "")]))
        for run in snapshot.runs.runs
    ]
    heads = say("Probe"), say("Result")
    return folded(report_blocks.counted_probes(snapshot), table(heads, rows)) if rows else None


def _ticket_page(report: Report) -> str:
    """Return the page of a report that is redacted."""
    main: list[Node] = [
        *written(_box(report, finding) for finding in report.causes),
        _questions(report),
        _leads(report),
        _settling(report),
        section(
            "read", say("What was read"), items(ticket_text.read_lines(report.snapshot.get(Pasted)))
        ),
    ]
    end = ending(report.snapshot, whose_names(report.snapshot), trailer_of(report))
    return page(_ticket_first_line(report), main, end)


def _ticket_first_line(report: Report) -> First:
    """Return the first line of the page."""
    return First(report.verdict, VERDICTS[report.verdict], ticket_text.first_line(report))


def _box(report: Report, finding: Finding) -> Box:
    lines = [
        ticket_text.with_role(evidence, report) for evidence in finding.evidence if evidence.source
    ]
    box = ticket_text.box(report, finding, list(dict.fromkeys(lines))[:_MOST_LINES], finding.fixes)
    return msgspec.structs.replace(
        box,
        severity=finding.severity.value,
        evidence=(*box.evidence, *report_blocks.sources(finding)),
    )


def _questions(report: Report) -> Element | None:
    asked = [
        in_turn([question.question, clean(question.reason)]) for question in report.open_questions
    ]
    return section("questions", say("Not decided"), items(asked)) if asked else None


def _leads(report: Report) -> Element | None:
    found = ticket_text.leads(report)
    return section("leads", ticket_text.resembled(report), items(found)) if found else None


def _settling(report: Report) -> Element | None:
    """Return by which facts a text without a cause was judged, and what they refute."""
    if report.root_causes:
        return None
    lists = [
        part
        for heading, found in ticket_text.settling(report)
        for part in (el("h3", heading), items(map(ticket_text.where, found)))
    ]
    return section("settled", say("Why"), *lists) if lists else None
