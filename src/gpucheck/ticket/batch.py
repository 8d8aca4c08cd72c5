"""Many tickets at once: files, folders and JSON lines, each answered by one line of JSON."""

import gc
import json
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gpucheck.report import Report
from gpucheck.tables import Tables
from gpucheck.ticket import saved
from gpucheck.ticket.intake import Intake, IntakeError
from gpucheck.ticket.judge import judge, judge_saved

_LINES = (".jsonl", ".ndjson")
_LONGEST_LINE = 16 * 1024 * 1024
_REPORT_LIMIT = 8 * 1024 * 1024
_AT_ONCE = 16
"""Tickets that a process is given at a time."""
_WORTH_A_PROCESS = 64
"""With fewer tickets than this a second process costs more than it saves."""


class BatchError(ValueError):
    """A path of a batch cannot be read; the message is one sentence for the user."""


class Ticket(msgspec.Struct, frozen=True):
    """One ticket: a file, or a text that stood in a line of JSON; or why there is none."""

    name: Any
    path: str = ""
    text: str = ""
    error: str = ""


class Batch:
    """Answers tickets in the order in which they were given, in several processes."""

    def __init__(self, paths: Sequence[Path], tables: Path | str, jobs: int | None) -> None:
        self._tickets = [ticket for path in paths for ticket in _tickets(path)]
        self._tables = str(tables)
        self._jobs = jobs or os.cpu_count() or 1
        self._verdicts: Counter[str] = Counter()

    def answers(self) -> Iterator[dict[str, Any]]:
        """Yield a line for each ticket."""
        jobs = min(self._jobs, max(1, len(self._tickets) // _WORTH_A_PROCESS))
        if jobs == 1:
            _prepare(self._tables)
            found: Iterator[dict[str, Any]] = map(answer, self._tickets)
            yield from self._counted(found)
            return
        with multiprocessing.Pool(jobs, _prepare, (self._tables,)) as pool:
            yield from self._counted(pool.imap(answer, self._tickets, _AT_ONCE))

    def summary(self) -> str:
        """Return one line: how many tickets, and what was said."""
        parts = ", ".join(f"{count} {name}" for name, count in self._verdicts.most_common())
        total = self._verdicts.total()
        return f"{total} ticket{'' if total == 1 else 's'}: {parts or 'none'}"

    def _counted(self, answers: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for one in answers:
            self._verdicts[one["verdict"]] += 1
            yield one


_tables: list[Tables] = []


def _prepare(directory: str) -> None:
    """Open the tables of a process once; a long batch needs the collector that a run can spare."""
    gc.enable()
    _tables[:] = [Tables(Path(directory))]


def answer(ticket: Ticket) -> dict[str, Any]:
    """Return the line of one ticket; one that cannot be read stops no other."""
    if ticket.error:
        return _line(ticket.name, None, ticket.error)
    try:
        return _line(ticket.name, _judged(ticket))
    except IntakeError as error:
        return _line(ticket.name, None, str(error))


def _judged(ticket: Ticket) -> Report:
    tables = _tables[0]
    intake = Intake()
    if not ticket.path:
        intake.add_bytes(ticket.text.encode("utf-8", "replace"))
        return judge(intake.text(), tables)
    path = Path(ticket.path)
    try:
        size = path.stat().st_size
        snapshot = saved(path.read_bytes()) if size <= _REPORT_LIMIT else None
    except OSError as error:
        raise IntakeError(f"{path} cannot be read: {error.strerror or error}") from error
    if snapshot is not None:
        return judge_saved(snapshot, tables)
    intake.add_file(path)
    return judge(intake.text(), tables)


def _line(name: object, report: Report | None, error: str = "") -> dict[str, Any]:
    if report is None:
        nothing = {"id": name, "verdict": "unknown", "root_causes": [], "confidence": None}
        return {**nothing, "error": error}
    causes = report.root_causes
    first = next((f for f in report.standing if causes and f.slug == causes[0]), None)
    return {
        "id": name,
        "verdict": report.verdict,
        "root_causes": list(causes),
        "confidence": first.confidence.value if first is not None else None,
    }


def _tickets(path: Path) -> Iterator[Ticket]:
    if path.is_dir():
        files = sorted(one for one in path.iterdir() if one.is_file() and one.name[0] != ".")
        for file in files:
            yield from _tickets(file)
    elif not path.exists():
        raise BatchError(f"{path} is not there.")
    elif path.suffix in _LINES:
        yield from _of_lines(path)
    else:
        yield Ticket(path.stem, str(path))


def _of_lines(path: Path) -> Iterator[Ticket]:
    try:
        with path.open("rb") as opened:
            number = 0
            while line := opened.readline(_LONGEST_LINE + 1):
                number += 1
                if line.strip():
                    yield _of_line(line, number)
    except OSError as error:
        raise BatchError(f"{path} cannot be read: {error.strerror or error}") from error


def _of_line(line: bytes, number: int) -> Ticket:
    """Read one line; a bad one gets its own answer."""
    name: Any = None
    if len(line) > _LONGEST_LINE:
        return Ticket(name, error=f"line {number}: it is longer than {_LONGEST_LINE >> 20} MiB")
    try:
        item = json.loads(line)
    except (ValueError, RecursionError):
        return Ticket(name, error=f"line {number}: it is no JSON")
    if isinstance(item, dict):
        name = item.get("id") if isinstance(item.get("id"), (str, int)) else None
        if isinstance(item.get("text"), str):
            return Ticket(name, text=item["text"])
    return Ticket(name, error=f'line {number}: it is no object with "id" and "text"')
