"""The result of triage as a page: the cause, what to do, and the lines of the text that show it."""

from gpucheck.engine import Report
from gpucheck.engine.trailer import trailer
from gpucheck.facts.pasted import Pasted
from gpucheck.findings.form import Finding
from gpucheck.language import in_turn, say, spoken
from gpucheck.output import ticket_text
from gpucheck.output.html.builder import Element, Node, el
from gpucheck.output.html.page import First, page
from gpucheck.output.html.parts import (
    article,
    fixes,
    folded,
    footer,
    items,
    more,
    section,
    words,
)
from gpucheck.output.summary import headline
from gpucheck.output.terms import VERDICTS, term
from gpucheck.output.words import bracketed, clean

_LINES = 200


def render(report: Report) -> str:
    """Return the page of a report that is redacted."""
    last = trailer(report.verdict, report.root_causes, spoken(VERDICTS[report.verdict]))
    main: list[Node] = [
        *(_finding(report, _of(report, slug)) for slug in report.root_causes),
        _questions(report),
        _settling(report),
        section(
            "read", say("What was read"), items(ticket_text.read_lines(report.snapshot.get(Pasted)))
        ),
    ]
    names = say("Names, paths, addresses and UUIDs are pseudonyms.")
    return page(first_line(report), main, footer(report.snapshot, names, last))


def first_line(report: Report) -> First:
    """Return the first line of the page."""
    return First(report.verdict, VERDICTS[report.verdict], ticket_text.first_line(report))


def _finding(report: Report, finding: Finding) -> Element:
    pasted = report.snapshot.get(Pasted)
    found = dict.fromkeys(
        ticket_text.with_role(one, pasted) for one in finding.evidence if one.source
    )
    is_first = finding.slug == report.root_causes[0]
    lines = list(found)[:_LINES]
    return article(
        finding.severity.value,
        bracketed(finding.slug, term(finding.confidence.value)),
        None if is_first else el("p", words(headline(finding))),
        *fixes(finding.fixes),
        folded(say("Lines that show it"), items(lines)) if lines else None,
        more(finding.slug),
    )


def _questions(report: Report) -> Element | None:
    asked = [in_turn([one.question, clean(one.reason)]) for one in report.open_questions]
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


def _of(report: Report, slug: str) -> Finding:
    return next(finding for finding in report.findings if finding.slug == slug)
