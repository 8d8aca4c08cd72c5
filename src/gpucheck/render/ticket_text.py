"""What triage found, for a person at a terminal: the cause, the lines that show it, the cure."""

from gpucheck.findings import Evidence, Finding
from gpucheck.probes.pasted import Pasted
from gpucheck.render.layout import Page
from gpucheck.render.public import public
from gpucheck.render.summary import headline
from gpucheck.render.words import clean, shown
from gpucheck.report import Report

_STYLES = {"broken": "red", "warning": "yellow", "unknown": "blue", "healthy": "green"}
_COLUMN = 9
_FEW = 3
_LONGEST_WORDS, _LONGEST_COMMAND = 1000, 10_000
_LONGEST_LINE = 200


def render(
    report: Report, *, lines: bool = False, quiet: bool = False, color: bool = False,
    width: int | None = None,
) -> str:  # fmt: skip
    """Return what triage found as text.

    Args:
        report: what to show.
        lines: every line and fact that decided, not only the first few.
        quiet: only the verdict and the slugs.
        color: with SGR codes; no meaning rests on them.
        width: columns; 80 when it is not known.
    """
    report = public(report)
    page = Page(width, color=color)
    style = _STYLES[report.verdict]
    pasted = report.snapshot.get(Pasted)
    if report.verdict == "unknown" and not (pasted.readers or pasted.signs):
        (question,) = report.open_questions
        page.labelled("UNKNOWN", _sentence(question.reason), column=_COLUMN, style=style)
        return page.text()
    page.labelled(report.verdict.upper(), verdict(report), column=_COLUMN, style=style)
    if quiet:
        for slug in report.root_causes:
            page.words(slug, indent=_COLUMN)
        return page.text()
    for slug in report.root_causes:
        _finding(page, report, _of(report, slug), lines=lines)
    for question in report.open_questions:
        page.heading("Not decided")
        page.words(f"{question.question} {clean(question.reason)}", indent=2)
    page.blank()
    read = ", ".join(pasted.readers or ()) or "messages only"
    page.labelled("Read", read, column=_COLUMN, style="dim")
    return page.text()


def verdict(report: Report) -> str:
    """Return the first line: the cause, or that there is none, or what is missing."""
    if report.root_causes:
        first = _of(report, report.root_causes[0])
        return f"{headline(first)} [{first.slug}]"
    if report.verdict == "unknown":
        return "The text does not tell the cause"
    return "Nothing wrong with PyTorch, CUDA or a GPU is seen in the text"


def where(evidence: Evidence) -> str:
    """Return a line of the text, or a fact read from it, with where it stands."""
    value = evidence.value
    text = value if isinstance(value, str) else shown(value, evidence.fact.rpartition(".")[2])
    name = "" if evidence.fact.startswith("pasted.signs") else f"{evidence.fact} = "
    return f"{clean(evidence.source)}: {name}{clean(text, _LONGEST_LINE)}"


def _sentence(reason: str) -> str:
    return f"Nothing is known of this text: {clean(reason)}."


def _of(report: Report, slug: str) -> Finding:
    return next(finding for finding in report.findings if finding.slug == slug)


def _finding(page: Page, report: Report, finding: Finding, *, lines: bool) -> None:
    page.heading(f"{finding.slug} ({finding.confidence.value})")
    if finding.slug != report.root_causes[0]:
        page.words(headline(finding), indent=2)
    found = list(dict.fromkeys(where(one) for one in finding.evidence if one.source))
    for one in found if lines else found[:_FEW]:
        page.words(one, indent=4, hang=6)
    if finding.slug == report.root_causes[0] or lines:
        for number, fix in enumerate(finding.fixes, start=1):
            label = f"Fix {number}" if len(finding.fixes) > 1 else "Fix"
            page.words(clean(fix.text, _LONGEST_WORDS), lead=f"{label}: ", indent=2, hang=4)
            for command in fix.commands:
                page.verbatim(clean(command, _LONGEST_COMMAND), indent=6)
    page.words(f"More: gpucheck explain {finding.slug}", indent=2)
