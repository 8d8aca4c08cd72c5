"""A report for a person at a terminal: one screen of it, or everything; the verdict comes last.

:mod:`gpucheck.output.one_screen` is the short page. The last line repeats the verdict, because the
first one may have scrolled away.
"""

from collections.abc import Iterator
from itertools import product
from typing import TextIO

from gpucheck.engine import Report
from gpucheck.facts import Facts, builtins
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Origin, Snapshot
from gpucheck.language import in_series, say
from gpucheck.language.visible import encodable
from gpucheck.output import one_screen, report_blocks
from gpucheck.output.blocks import Items
from gpucheck.output.gpu_table import GpuTable, gpu_table, of_node
from gpucheck.output.layout import STATES, Page
from gpucheck.output.machine_summary import areas
from gpucheck.output.one_screen import COLUMN, Detail
from gpucheck.output.selftest_lines import left_out, lines_of, loaded_otherwise, measured
from gpucheck.output.summary import recorded, trailer_of, verdict
from gpucheck.output.words import VERDICTS, bracketed, clean, headed, in_parts, shown, term

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
        one_screen.write_gpus(page, table)
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
        one_screen.write(page, report, detail, table, most_fixes=most_fixes)
        of_selftests = report.about == "self-tests"
        if detail < Detail.FEWER_FIXES or of_selftests:
            _selftests(page, report, in_full=of_selftests)
        if detail < Detail.NO_AREAS and not (of_selftests and report.verdict == "healthy"):
            _areas(page, report)
        show_footer(page, report, is_tight=detail == Detail.TABLE)
        text = _ended(page, report)
        if one_screen.rows(text, width) <= one_screen.LINES:
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
