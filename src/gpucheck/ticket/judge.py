"""From a text to a report: reads it, weighs its claims and has the engine combine them."""

from collections.abc import Sequence

import msgspec

from gpucheck.engine import Report, ask_each, combine, judge_machine, make_report
from gpucheck.facts.pasted import Pasted
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import System
from gpucheck.findings import all_rules
from gpucheck.log_patterns.matcher import Match
from gpucheck.log_patterns.text import Text
from gpucheck.tables import Tables
from gpucheck.ticket.as_snapshot import matches_of, snapshot_of
from gpucheck.ticket.claims import claims_of, weighed
from gpucheck.ticket.owner import owner_of
from gpucheck.ticket.questions import open_questions
from gpucheck.ticket.reading import Reading, read
from gpucheck.ticket.settled import settled_with, silent_rules
from gpucheck.ticket.unwrap import unwrapped


def judge(text: Text, tables: Tables) -> Report:
    """Name the cause; if none is found, look again with broken lines joined."""
    reading = read(text, tables)
    report = _judged(reading, tables)
    if not _is_settled(report, reading):
        joined = (read(joined_text, tables) for joined_text in unwrapped(text))
        again = (
            _judged(joined_reading, tables)
            for joined_reading in joined
            if not joined_reading.says_the_same(reading)
        )
        report = next(
            (joined_report for joined_report in again if _names_more(joined_report, report)), report
        )
    return report


def _is_settled(report: Report, reading: Reading) -> bool:
    """Whether a cause is named by more than the exception that the text is about."""
    return bool(report.root_causes) and (bool(reading.matches) or reading.failure is None)


def _names_more(report: Report, than: Report) -> bool:
    """Whether a report names a cause, and another one than the exception alone names."""
    return bool(report.root_causes) and report.root_causes != than.root_causes


def judge_saved(snapshot: Snapshot, tables: Tables) -> Report:
    """Judge a saved snapshot anew: of a machine, or of a text with the messages found in it."""
    if snapshot.origin != "pasted":
        return judge_machine(snapshot, tables)
    pasted = snapshot.get(Pasted)
    matches = matches_of(pasted)
    return _report(snapshot, matches, tables, recognised=bool(pasted.readers or matches))


def _judged(reading: Reading, tables: Tables) -> Report:
    snapshot = snapshot_of(reading, tables)
    return _report(snapshot, reading.matches, tables, recognised=reading.recognised)


def _report(
    snapshot: Snapshot, matches: Sequence[Match], tables: Tables, *, recognised: bool
) -> Report:
    rules, settled, silent = all_rules(), settled_with(tables), silent_rules(snapshot)
    results = ask_each(rules, snapshot, tables, settled.about(silent))
    settled.learn(silent, results)
    pasted = snapshot.get(Pasted)
    system = snapshot.get(System)
    on_windows = system.os == "windows" and system.wsl == 0
    claims = claims_of(matches, pasted, on_windows=on_windows)
    diagnosis = combine(rules, weighed(results, claims, pasted), claims, snapshot, tables)
    questions = open_questions(snapshot, diagnosis, recognised=recognised)
    report = make_report(diagnosis, snapshot, questions)
    return msgspec.structs.replace(report, owner=owner_of(report))
