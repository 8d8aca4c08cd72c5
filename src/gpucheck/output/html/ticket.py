"""The result of triage as a page: the cause, what to do, and the lines of the text that show it."""

import msgspec

from gpucheck.engine import Report
from gpucheck.facts.pasted import Pasted
from gpucheck.findings.form import Finding
from gpucheck.language import in_turn, say
from gpucheck.output import ticket_text
from gpucheck.output.blocks import Box
from gpucheck.output.html.builder import Element, Node, el
from gpucheck.output.html.page import First, page
from gpucheck.output.html.parts import ending, items, section, written
from gpucheck.output.public import whose_names
from gpucheck.output.summary import trailer_of
from gpucheck.output.terms import VERDICTS
from gpucheck.output.words import clean

_LINES = 200


def render(report: Report) -> str:
    """Return the page of a report that is redacted."""
    main: list[Node] = [
        *written(_box(report, finding) for finding in report.causes),
        _questions(report),
        _settling(report),
        section(
            "read", say("What was read"), items(ticket_text.read_lines(report.snapshot.get(Pasted)))
        ),
    ]
    end = ending(report.snapshot, whose_names(report.snapshot), trailer_of(report))
    return page(first_line(report), main, end)


def first_line(report: Report) -> First:
    """Return the first line of the page."""
    return First(report.verdict, VERDICTS[report.verdict], ticket_text.first_line(report))


def _box(report: Report, finding: Finding) -> Box:
    lines = [
        ticket_text.with_role(evidence, report) for evidence in finding.evidence if evidence.source
    ]
    return msgspec.structs.replace(
        ticket_text.box(report, finding, list(dict.fromkeys(lines))[:_LINES], finding.fixes),
        severity=finding.severity.value,
    )


def _questions(report: Report) -> Element | None:
    asked = [
        in_turn([question.question, clean(question.reason)]) for question in report.open_questions
    ]
    return section("questions", say("Not decided"), items(asked)) if asked else None


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
