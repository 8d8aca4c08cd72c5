"""A report for a person at a terminal: one screen of it, or everything; the verdict comes last.

:mod:`gpucheck.output.terminal` is the short page. The last line repeats the verdict, because the
first one may have scrolled away.
"""

import enum
from collections.abc import Iterator, Sequence
from itertools import product
from typing import TextIO

from gpucheck.engine import Report
from gpucheck.facts import Facts, builtins
from gpucheck.facts.claims import CommandClass, Fix, Severity
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Origin, Snapshot
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Finding
from gpucheck.language import in_clauses, in_series, in_turn, say, say_many
from gpucheck.language.columns import WIDTH, width_of
from gpucheck.language.visible import encodable
from gpucheck.output import report_blocks
from gpucheck.output.blocks import Commands, Items, Words
from gpucheck.output.gpu_table import STYLES, GpuTable, gpu_table, of_node
from gpucheck.output.layout import STATES, Page
from gpucheck.output.machine_summary import areas, driver_release, gpu_names
from gpucheck.output.report_blocks import next_step, steps
from gpucheck.output.selftest_lines import left_out, lines_of, loaded_otherwise, measured
from gpucheck.output.summary import (
    headline,
    open_questions,
    recorded,
    torch_itself,
    trailer_of,
    verdict,
)
from gpucheck.output.words import (
    LONGEST_WORDS,
    VERDICTS,
    bracketed,
    clean,
    counted,
    headed,
    in_parts,
    listing,
    shown,
    term,
)

# What a report says on one screen: the cause, what shows it, the first fix, and the rest in lines.
#
# Terminals scroll, and hardly anybody scrolls back. What does not fit is left out step by step
# (:class:`Detail`), but never the cause, nor the commands that mend it.

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
    """Only the first fix, nothing about the machine, and no gap before the last lines."""
    NO_PYTHON = 5
    """Not which Python was asked."""
    TABLE = 6
    """Of a node: its table stands for what shows the cause and what this explains."""


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
    for name, sentence in examined if detail < Detail.NO_PYTHON else examined[-1:]:
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
    for question in open_questions(report, with_facts=False)[1:]:
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


_TEST_STYLES = {"passed": "green", "skipped": "dim"}
# The longest name of a self-test (17), the longest status (timed-out), and gaps.
_TEST_COLUMNS = 20, 10
_ORIGINS: dict[Origin, str] = {
    "sysroot": say("sysroot machine"),
    "recorded": say("recorded machine"),
    "pasted": say("pasted machine"),
    "described": say("described machine"),
}
_AREA_COLUMNS = 15, 8  # the longest name of an area, the longest state, and gaps


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
    if not verbose and not quiet:
        return _one_screen(report, width, color=color)
    page = Page(width, color=color)
    _verdict(page, report)
    if quiet:
        for finding in report.standing:
            page.labelled(term(finding.severity.value), finding.slug, column=COLUMN)
        page.verbatim(trailer_of(report), style="dim")
        return page.text()
    if elsewhere := recorded(report):
        page.labelled(say("Machine"), elsewhere, column=COLUMN)
    for name, sentence in report_blocks.examined(report, has_checks=True):
        page.labelled(name, sentence, column=COLUMN, whole="gpucheck --python ")
    page.write([report_blocks.box(report, finding) for finding in report.standing])
    page.write(report_blocks.questions(report))
    _selftests(page, report, in_full=True)
    if table := gpu_table(report):
        page.heading(headed(say("GPUs"), table.title))
        write_gpus(page, table)
        whys = [headed(row.cells[0], row.why) for row in table.rows if row.why]
        page.write([Items(tuple(say("GPU {why}", why=why) for why in whys))])
    _areas(page, report)
    _checks(page, report)
    _probes(page, report.snapshot)
    if verbose > 1:
        _facts(page, report.snapshot)
    show_footer(page, report)
    return _ended(page, report)


def _one_screen(report: Report, width: int | None, *, color: bool) -> str:
    """Return the page with as much as fits a screen; its last level if nothing does."""
    text = ""
    for table, detail, most_fixes in _levels(report):
        page = Page(width, color=color)
        _verdict(page, report)
        write(page, report, detail, table, most_fixes=most_fixes)
        of_selftests = report.about == "self-tests"
        if detail < Detail.FEWER_FIXES or of_selftests:
            _selftests(page, report, in_full=of_selftests)
        if detail < Detail.NO_AREAS and not (of_selftests and report.verdict == "healthy"):
            _areas(page, report)
        show_footer(page, report, is_tight=detail >= Detail.NO_MACHINE)
        text = _ended(page, report)
        if rows(text, width) <= LINES:
            break
    return text


def _levels(report: Report) -> Iterator[tuple[GpuTable | None, Detail, int]]:
    """Yield what to try, the fullest page first: table, detail, and how many fixes of the cause."""
    fixes = len(report.first.fixes) if report.first else 1
    for table, detail in _tables(report):
        least = fixes if detail < Detail.FEWER_FIXES else 1
        most = fixes if detail <= Detail.FEWER_FIXES else 1
        for most_fixes in range(most, least - 1, -1):
            yield table, detail, most_fixes


def _tables(report: Report) -> Iterator[tuple[GpuTable | None, Detail]]:
    """Yield which table of the GPUs to try with which detail, the fullest page first.

    Where GPUs differ, the table is worth more than all but the cause and its first fix. Where they
    do not, the cause is another one, and a line has to do that takes the room of no note.
    """
    details = [detail for detail in Detail if detail < Detail.TABLE]
    whole = of_node(report)
    if whole is not None:
        differ = len({row.verdict for row in whole.rows}) > 1
        if differ or not report.root_causes:
            yield from ((whole, detail) for detail in details)
        if differ:
            yield from product((whole.merged(), whole.named(), whole.counted()), Detail)
        else:
            yield from ((whole.merged(), detail) for detail in details[: Detail.NO_NOTES])
    yield from ((None, detail) for detail in details)


def _ended(page: Page, report: Report) -> str:
    """Return the page with its last lines: one for programs, then the verdict once more."""
    page.verbatim(trailer_of(report), style="dim")
    causes = ", ".join(report.root_causes)
    style = STATES[report.verdict]
    page.labelled(VERDICTS[report.verdict], causes, column=COLUMN, style=style)
    return page.text()


def _verdict(page: Page, report: Report) -> None:
    style = STATES[report.verdict]
    page.labelled(VERDICTS[report.verdict], verdict(report), column=COLUMN, style=style)


def _areas(page: Page, report: Report) -> None:
    page.heading(report_blocks.machine_named(report))
    name_column, status_column = _AREA_COLUMNS
    for area in areas(report):
        words = area.words
        if not words and area.status == "unknown":
            words = say("no information was given")
        slugs = say("see {slugs}", slugs=in_series(area.slugs)) if area.slugs else ""
        cells = [
            (term(area.name), name_column, ""),
            (term(area.status), status_column, STATES.get(area.status, "")),
        ]
        page.columns(cells, in_parts([words, slugs]), indent=2)


def _selftests(page: Page, report: Report, *, in_full: bool) -> None:
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
    if in_full:
        page.write([Items(tuple(left_out(tests)))])
        page.write([Items((*measured(tests), *loaded_otherwise(tests)))], 4)


def _checks(page: Page, report: Report) -> None:
    page.heading(report_blocks.counted_checks(report))
    for check in report_blocks.sorted_checks(report):
        reason = headed(check.slug, clean(check.reason))
        page.labelled(term(check.outcome.value), reason, indent=2, column=16)


def _probes(page: Page, snapshot: Snapshot) -> None:
    if snapshot.runs.runs:
        page.heading(report_blocks.counted_probes(snapshot))
    for run in snapshot.runs.runs:
        page.labelled(
            run.name, headed(report_blocks.took(run), clean(run.problem or "")), indent=2, column=16
        )


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
            for at, item in enumerate(value):
                yield from _flat(item, f"{path}.{field}.{at}")
            continue
        source = group.problem(field) if value is None else group.source(field)
        words = shown(builtins(value), field)
        yield f"{path}.{field}", words, clean(source)


def show_footer(page: Page, report: Report, *, is_tight: bool = False) -> None:
    """Write the version of gpucheck and of its tables, and the time; ``is_tight``: no gap."""
    snapshot = report.snapshot
    versions = snapshot.versions
    footer = say(
        "gpucheck {version}, tables {tables}, {taken}",
        version=clean(versions.version),
        tables=clean(versions.tables),
        taken=clean(snapshot.taken),
    )
    if not is_tight:
        page.blank()
    origin = _ORIGINS.get(snapshot.origin)
    if origin:
        footer = say("{versions}, {origin}", versions=footer, origin=origin)
    page.words(footer, style="dim")
