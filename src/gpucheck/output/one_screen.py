"""What a report says on one screen: the cause, what shows it, the first fix, and the rest in lines.

Terminals scroll, and hardly anybody scrolls back. What does not fit is left out step by step
(:class:`Detail`), but never the cause, nor the commands that mend it.
"""

import enum
from collections.abc import Sequence

from gpucheck.engine import Report
from gpucheck.facts.claims import CommandClass, Fix, Severity
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Finding
from gpucheck.language import in_clauses, in_series, in_turn, say, say_many
from gpucheck.language.columns import WIDTH, width_of
from gpucheck.output import report_blocks
from gpucheck.output.blocks import Commands, Words
from gpucheck.output.gpu_table import STYLES, GpuTable
from gpucheck.output.layout import STATES, Page
from gpucheck.output.report_blocks import next_step, steps
from gpucheck.output.summary import (
    driver_release,
    gpu_names,
    headline,
    open_questions,
    recorded,
    torch_itself,
)
from gpucheck.output.words import LONGEST_WORDS, bracketed, clean, counted, listing

LINES = 24
"""Lines of a terminal of the usual size (that of a VT100, which windows still open with)."""
COLUMN = 9  # the longest verdict or severity (warning) and a gap
_LONGEST_NAMES = 120  # chosen: GPUs of several models fill two lines at most
_SEVERITIES = {"error": say("Error"), "warning": say("Warning")}
_REACH: dict[CommandClass, str] = {
    "environment": say("This changes your environment."),
    "machine": say("This changes the machine."),
    "interrupts": say("This interrupts others."),
}


class Detail(enum.IntEnum):
    """What is shown; each level leaves out more than the one before it."""

    ALL = 0
    """Every fix in full, and the areas of the machine."""
    NO_AREAS = 1
    """The machine in one sentence."""
    NO_NOTES = 2
    """No note of what is no fault, and no empty lines."""
    FEWER_FIXES = 3
    """Of the cause as many fixes as fit, each in full: half of a fix would mislead. The others are
    counted. None of other findings."""
    NO_MACHINE = 4
    """Only the first fix, and nothing about the machine."""
    TABLE = 5
    """Of a node: its table stands for what shows the cause and what this explains; and not which
    Python was asked."""


def write(
    page: Page, report: Report, detail: Detail, gpus: GpuTable | None = None, *, most_fixes: int
) -> None:
    """Write what stands between the verdict and the last lines.

    Args:
        page: where to.
        report: what to show.
        detail: how much of it.
        gpus: the table of a node.
        most_fixes: how many fixes of the cause at most.
    """
    if elsewhere := recorded(report):
        page.labelled(say("Machine"), elsewhere, column=COLUMN)
    others = list(report.standing)
    cause = next((finding for finding in others if finding.slug in report.root_causes[:1]), None)
    if cause is not None:
        others.remove(cause)
        if detail < Detail.TABLE:
            _about_cause(page, report, cause)
        _gap(page, detail)
        _fixes(page, cause.fixes, most_fixes)
        _gap(page, detail)
    _open(page, report)
    for finding in others:
        if finding.severity is not Severity.INFO or detail < Detail.NO_NOTES:
            _finding(page, finding, detail)
    if gpus is not None:
        _gap(page, detail)
        page.labelled(say("GPUs"), gpus.title, column=COLUMN, style="bold")
        write_gpus(page, gpus)
        _gap(page, detail)
    machine = _machine(report, gpus) if report.about == "machine" else ""
    if Detail.ALL < detail < Detail.NO_MACHINE and machine:
        page.labelled(say("Setup"), machine, column=COLUMN)
    examined = report_blocks.examined(report)
    for name, sentence in examined if detail < Detail.TABLE else examined[-1:]:
        page.labelled(name, sentence, column=COLUMN, whole="gpucheck --python ")
    page.labelled(say("More"), _more(report, detail, most_fixes), column=COLUMN)


def _about_cause(page: Page, report: Report, cause: Finding) -> None:
    """Write what shows the cause, what it leaves in order, and what it explains."""
    from gpucheck.output.evidence import seen  # noqa: PLC0415  # most machines are healthy

    lines = (
        (say("Evidence"), seen(cause)),
        (say("But"), torch_itself(report)),
        (say("Explains"), in_series(report_blocks.explained(report, cause))),
    )
    for name, words in lines:
        if words:
            page.labelled(name, words, column=COLUMN)


def write_gpus(page: Page, gpus: GpuTable) -> None:
    """Write the table without its title."""
    if gpus.rows:
        page.table(gpus.heads, [(row.cells, STYLES[row.verdict]) for row in gpus.rows])


def _open(page: Page, report: Report) -> None:
    """Write what to do about the first open question, which the verdict has, and any others."""
    if report.verdict != "unknown":
        return
    for step in next_step(report):
        page.labelled(step.lead, step.text, column=COLUMN, style="bold")
        page.write(step.below, 0)
    for question in open_questions(report)[1:]:
        page.labelled(say("Also"), question, column=COLUMN)


def rows(text: str, width: int | None) -> int:
    """Return how many lines of a terminal a text takes, whose commands are not wrapped."""
    columns = width or WIDTH
    return sum(max(1, -(-width_of(line) // columns)) for line in text.splitlines())


def _gap(page: Page, detail: Detail) -> None:
    if detail < Detail.NO_NOTES:
        page.blank()


def _finding(page: Page, finding: Finding, detail: Detail) -> None:
    """Write a finding that is not the cause: a note in a line, another one with its fix."""
    words = bracketed(headline(finding), finding.slug)
    if finding.severity is Severity.INFO:
        page.labelled(say("Note"), words, column=COLUMN, style=STATES["note"])
        return
    severity = finding.severity.value
    page.labelled(_SEVERITIES[severity], words, column=COLUMN, style=STATES[severity])
    if detail < Detail.FEWER_FIXES:
        _fixes(page, finding.fixes, len(finding.fixes))


def _fixes(page: Page, fixes: Sequence[Fix], most: int) -> None:
    for number, fix in enumerate(fixes[:most], start=1):
        name = say("Fix {number}", number=number) if len(fixes) > 1 else say("Fix")
        words = in_turn([clean(fix.text, LONGEST_WORDS), _reach(fix)])
        page.labelled(name, words, column=COLUMN, style="bold")
        _steps(page, fix)


def _steps(page: Page, fix: Fix) -> None:
    """Write what to know before the commands, the commands, and how to verify the fix."""
    for step in steps(fix):
        match step:
            case Commands(lines=(command,), lead=lead) if lead:
                page.labelled(lead, command, column=COLUMN, whole=command)
            case Words(text=text, lead=lead) if lead:
                page.labelled(lead, text, column=COLUMN, style=STATES["warning"])
            case _:
                page.write([step], 0)


def _reach(fix: Fix) -> str:
    """Return what a fix changes; that it interrupts others is its caution."""
    return "" if fix.reach is None or fix.cautions else _REACH.get(fix.reach, "")


def _machine(report: Report, gpus: GpuTable | None) -> str:
    """Return the GPUs, the driver and PyTorch, in a sentence that a supporter reads first."""
    snapshot = report.snapshot
    names = gpu_names(snapshot) if gpus is None else []
    driver, torch = driver_release(snapshot), snapshot.get(TorchBuild)
    parts = [listing([counted(names)], _LONGEST_NAMES)] if names else []
    parts += [say("driver {release}", release=clean(driver))] if driver else []
    parts += [f"PyTorch {clean(torch.version)}"] if torch.version else []
    return in_clauses(parts)


def _more(report: Report, detail: Detail, most_fixes: int) -> str:
    """Return which commands show more, and how many fixes that is."""
    slugs = report.root_causes[:1]
    explained = [f"gpucheck explain {slug}" for slug in slugs]
    fixes = [fix for finding in report.causes for fix in finding.fixes]
    hidden = len(fixes) - most_fixes if detail >= Detail.FEWER_FIXES else 0
    count = say_many(hidden, "{count} more fix", "{count} more fixes") if hidden > 0 else ""
    return in_series([bracketed("gpucheck -v", count), *explained])
