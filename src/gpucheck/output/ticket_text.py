"""The result of triage for a person at a terminal: the cause, the lines that show it, the fix."""

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from gpucheck.engine import Report
from gpucheck.facts.claims import Fix
from gpucheck.facts.driver import CudaDriver
from gpucheck.facts.request import Pasted, Taken
from gpucheck.findings import all_rules
from gpucheck.findings.form import Evidence, Finding
from gpucheck.language import Sentence, in_series, in_turn, listed, say, say_many
from gpucheck.output.blocks import Box, Items, Quoted, Words, more_about
from gpucheck.output.layout import STATES, Page
from gpucheck.output.public import public
from gpucheck.output.report_blocks import fixes
from gpucheck.output.summary import headline, trailer_of
from gpucheck.output.words import VERDICTS, bracketed, clean, headed, in_parts, shown, term

_COLUMN = 9  # the longest verdict (warning) and a gap, as in terminal.py
_FEW = 3  # chosen: where the lines were not asked for, three show the form of the rest
_LONGEST_LINE = 200  # chosen: two or three lines of a terminal; docs/evidence.md tells what it cuts
_SETTLE = (
    "pasted.own_verdict", "pasted.cuda_available", "pasted.gpu_error", "pasted.complaint",
    "pasted.failure.text", "cuda_driver.init_code",
    "torch.version", "torch.built_for", "torch.cuda", "nvml.driver_release", "nvml.gpus.0.name",
    "pci.gpus.0.product",
)  # fmt: skip
"""The facts that decide whether a text without a cause is called healthy, or is left open."""
_NEWER = "newer-than-tables"
"""The one finding of no severity that a text is told: it says why the rest may be wrong."""


def render(
    report: Report, *, lines: bool = False, quiet: bool = False, color: bool = False,
    width: int | None = None,
) -> str:  # fmt: skip
    """Return the result of triage as text.

    Args:
        report: what to show.
        lines: every line and fact that decided, not only the first few.
        quiet: only the verdict and the slugs.
        color: with SGR codes; no meaning depends on them.
        width: columns; 80 if unknown.
    """
    report = public(report)
    page = Page(width, color=color)
    style = STATES[report.verdict]
    pasted = report.snapshot.get(Pasted)
    page.labelled(VERDICTS[report.verdict], first_line(report), column=_COLUMN, style=style)
    if _says_nothing(report):
        _resembled(page, report)
        return _ended(page, report)
    if quiet:
        for slug in report.root_causes:
            page.words(slug, indent=_COLUMN)
        return _ended(page, report)
    page.write([_box(report, finding, lines=lines) for finding in report.causes])
    for question in report.open_questions:
        page.heading(say("Not decided"))
        page.words(in_turn([question.question, clean(question.reason)]), indent=2)
    _resembled(page, report)
    for finding in report.standing:
        if finding.slug == _NEWER:
            page.heading(say("Note"))
            for words in (headline(finding), *(fix.text for fix in finding.fixes)):
                page.words(words, indent=2)
    if lines and not report.root_causes:
        for heading, found in settling(report):
            page.write([Box(heading=heading, evidence=(Quoted(tuple(map(where, found))),))])
    _read(page, pasted, lines=lines)
    return _ended(page, report)


def _resembled(page: Page, report: Report) -> None:
    if found := leads(report):
        page.heading(resembled(report))
        page.write([Items(tuple(found))])


def resembled(report: Report) -> Sentence:
    """Return the words above what the second reader found."""
    if report.root_causes:
        return say("No line shows it, but by its wording the text may also be about")
    return say("No line shows it, but by its wording the text may be about")


def leads(report: Report) -> list[str]:
    """Return what else the wording of a text without a sure cause resembles, with how often."""
    found = report.snapshot.get(Pasted).leads if report.verdict != "healthy" else None
    names = [
        (_named(lead.cause or ""), round(100 * (lead.share or 0)))
        for lead in found or ()
        if lead.cause not in report.root_causes
    ]
    return [
        say("{cause}: {percent} of 100 such texts", cause=name, percent=percent)
        for name, percent in names
        if name
    ]


def _named(cause: str) -> str:
    """Return the words for a cause; "" for a slug of a saved report that nobody knows."""
    rule = all_rules().get(cause)
    if rule is None:
        return say("nothing of the environment is wrong") if cause == "healthy" else ""
    return with_slug(rule.title, cause)


def first_line(report: Report) -> str:
    """Return the verdict, or why nothing at all is known."""
    return _nothing_known(report) if _says_nothing(report) else verdict(report)


def _says_nothing(report: Report) -> bool:
    pasted = report.snapshot.get(Pasted)
    return report.verdict == "unknown" and not (pasted.readers or pasted.signs)


def _ended(page: Page, report: Report) -> str:
    """Return the page with its last line."""
    page.verbatim(trailer_of(report), style="dim")
    return page.text()


def settling(report: Report) -> list[tuple[str, list[Evidence]]]:
    """Return the facts by which a text without a cause was judged, and the messages in it."""
    facts = [fact for fact in (_fact(report, path) for path in _SETTLE) if fact is not None]
    signs = range(len(report.snapshot.get(Pasted).signs or ()))
    texts = (_fact(report, f"pasted.signs.{at}.text") for at in signs)
    refuted = [text for text in texts if text is not None]
    both = (
        (say("Judged by"), facts),
        (say("Reported, but refuted by these facts"), refuted),
    )
    return [(heading, found) for heading, found in both if found]


def _fact(report: Report, path: str) -> Evidence | None:
    """Return a fact with its source, None if it is unknown."""
    try:
        owner, field, value = report.snapshot.look_up(path)
    except (LookupError, ValueError):
        return None
    source = owner.source(field)
    return Evidence(fact=path, value=value, source=source) if value is not None and source else None


def _read(page: Page, pasted: Pasted, *, lines: bool) -> None:
    """Write which formats were recognised; in full also the facts from each, and their lines."""
    page.blank()
    if not lines or not pasted.taken:
        page.labelled(say("Read"), _readers(pasted), column=_COLUMN, style="dim")
        return
    page.words(say("Read"), style="dim")
    page.write([Items(tuple(read_lines(pasted)))])


def read_lines(pasted: Pasted) -> list[str]:
    """Return the formats that were recognised, with the facts from each and their lines."""
    return [_given(given) for given in pasted.taken or ()] or [_readers(pasted)]


def _readers(pasted: Pasted) -> str:
    return in_series([clean(reader) for reader in pasted.readers or ()]) or _unread(pasted)


def _unread(pasted: Pasted) -> str:
    """Return what a text holds in which no format was recognised."""
    if pasted.failure is not None:
        return say("an exception")
    if pasted.tells:
        return say("prose; no error message, no report on an environment")
    return say("nothing")


def _given(taken: Taken) -> str:
    counts: list[str] = []
    if taken.facts:
        counts.append(say_many(taken.facts, "{count} fact", "{count} facts"))
    if taken.messages:
        counts.append(say_many(taken.messages, "{count} message", "{count} messages"))
    return say(
        "{format}: {lines}, {what}",
        format=taken.format,
        lines=_lines(taken),
        what=listed(counts) or say("nothing that shows a cause"),
    )


def _lines(taken: Taken) -> str:
    """Return where a format stands in the text."""
    file, first, last = clean(taken.file or ""), taken.first_line, taken.last_line
    if first == last:
        line = say("line {number}", number=first)
    else:
        line = say("lines {first} to {last}", first=first, last=last)
    return say("{file} {lines}", file=file, lines=line) if file else line


def verdict(report: Report) -> str:
    """Return the first line: the cause, or that there is none, or what is missing."""
    if report.causes:
        return with_slug(headline(report.causes[0]), report.root_causes[0])
    if report.verdict == "unknown":
        return say("The text does not show the cause")
    if worked(report):
        return say("The text shows nothing wrong with PyTorch, CUDA or a GPU")
    return say("The text shows no fault of the environment")


def with_slug(words: str, slug: str) -> str:
    """Return ``words [slug]``."""
    return say("{text} [{slug}]", text=words, slug=slug)


def worked(report: Report) -> bool:
    """Whether the text shows that CUDA worked, not only that nothing of it failed."""
    snapshot = report.snapshot
    pasted = snapshot.get(Pasted)
    return bool(
        pasted.cuda_available
        or pasted.own_verdict == "healthy"
        or snapshot.get(CudaDriver).init_code == 0
    )


def with_role(evidence: Evidence, report: Report) -> str:
    """Return a line of the text with its role, or a fact."""
    role = _role(evidence, report.snapshot.get(Pasted))
    return with_slug(where(evidence), role) if role else where(evidence)


def _role(evidence: Evidence, pasted: Pasted) -> str:
    step = evidence.fact.split(".")
    if evidence.fact == "pasted.failure.text":
        return say("exception")
    if step[:2] != ["pasted", "signs"]:
        return ""
    return (pasted.signs or [])[int(step[2])].role or ""


def where(evidence: Evidence) -> str:
    """Return a line of the text, or a fact read from it, with its position."""
    value = evidence.value
    text = value if isinstance(value, str) else shown(value, evidence.fact.rpartition(".")[2])
    is_line = evidence.fact.startswith("pasted.signs") or evidence.fact == "pasted.failure.text"
    text = clean(text, _LONGEST_LINE)
    if not is_line:
        name = evidence.fact.removeprefix("pasted.failure.")
        text = say("{fact} = {value}", fact=name, value=text)
    return headed(clean(evidence.source), text)


def _nothing_known(report: Report) -> str:
    """Say why; a saved report may have any number of open questions."""
    reasons = dict.fromkeys(clean(question.reason) for question in report.open_questions)
    if not reasons:
        return say("gpucheck recognises nothing in this text.")
    return say("gpucheck finds no cause in this text: {reasons}.", reasons=in_parts(list(reasons)))


def _box(report: Report, finding: Finding, *, lines: bool) -> Box:
    shown_as = partial(with_role, report=report) if lines else where
    quoted = list(
        dict.fromkeys(shown_as(evidence) for evidence in finding.evidence if evidence.source)
    )
    is_first = finding.slug == report.root_causes[0]
    offered = [replace(fix, verify="") for fix in finding.fixes] if is_first or lines else ()
    return box(report, finding, quoted if lines else quoted[:_FEW], offered)


def box(report: Report, finding: Finding, quoted: Sequence[str], offered: Sequence[Fix]) -> Box:
    """Return a finding with these lines of the text and these fixes."""
    is_first = finding.slug == report.root_causes[0]  # the verdict already has this one
    return Box(
        heading=bracketed(finding.slug, term(finding.confidence.value)),
        intro=() if is_first else (Words(headline(finding)),),
        evidence=(Quoted(tuple(quoted)),) if quoted else (),
        fixes=fixes(offered),
        more=(more_about(finding.slug),),
    )
