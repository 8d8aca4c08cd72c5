"""Where everything to be judged comes in: a saved file, a text, or a text with one in it."""

from gpucheck.engine import Report
from gpucheck.log_patterns.text import Text
from gpucheck.tables import Tables
from gpucheck.ticket.given import Given
from gpucheck.ticket.intake import Intake
from gpucheck.ticket.judge import judge, judge_saved
from gpucheck.ticket.own_report import as_line


def judge_given(given: Given, intake: Intake, tables: Tables) -> Report:
    """Judge an input: a file that gpucheck saved, or a text.

    Raises:
        IntakeError: it is not text, or empty.
    """
    snapshot = given.saved()
    if snapshot is not None:
        return judge_saved(snapshot, tables)
    intake.add(given)
    return judge_taken(intake, tables)


def judge_taken(intake: Intake, tables: Tables) -> Report:
    """Judge what was taken in: the text, and the snapshots that stand in it.

    What stands around a snapshot counts, too. Only where it adds nothing is the answer that of the
    snapshot alone, whose facts and fixes are those of the machine.

    Raises:
        IntakeError: it is empty.
    """
    intake.refuse_nothing()
    if not intake.held:
        return judge(intake.text(), tables)
    saved = [judge_saved(held.snapshot, tables) for held in intake.held]
    report = judge(_with_reports(intake, saved), tables)
    adds_nothing = (
        len(saved) == 1
        and report.verdict == saved[0].verdict
        and {finding.slug for finding in report.findings}
        <= {finding.slug for finding in saved[0].findings}
    )
    return saved[0] if adds_nothing else report


def _with_reports(intake: Intake, saved: list[Report]) -> Text:
    """Return the text with a line for each report, where its JSON stood."""
    lines = intake.text().lines
    for held, report in zip(intake.held, saved, strict=True):
        at = max(
            at
            for at, line in enumerate([held.line, *lines])
            if line.file == held.line.file and line.number <= held.line.number
        )
        lines.insert(at, as_line(report, held.line))
    return Text(lines)
