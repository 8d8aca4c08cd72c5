"""Many tickets at once: files, folders and JSON lines, each answered by one line of JSON."""

import gc
import io
import json
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gpucheck.engine import Report
from gpucheck.tables import Tables
from gpucheck.ticket.given import Given, IntakeError, Rejoined, opened
from gpucheck.ticket.intake import HEAD, Intake
from gpucheck.ticket.judge import judge, judge_saved

_LINES = (".jsonl", ".ndjson")
_LONGEST_LINE = 16 * 1024 * 1024
_MOST_NOTES = 20
_AT_ONCE = 16
"""The number of tickets that a process gets at a time."""
_WORTH_A_PROCESS = 64
"""With fewer tickets than this a second process costs more than it saves."""


class BatchError(ValueError):
    """A path of a batch cannot be read; the message is one sentence for the user."""


class Ticket(msgspec.Struct, frozen=True):
    """One ticket: a file, the content of a pipe, the text of a JSON line, or why there is none."""

    name: Any
    path: str = ""
    held: bytes = b""
    text: str = ""
    error: str = ""


class Answered(msgspec.Struct, frozen=True):
    """The line for a ticket, and one sentence for each part that was not looked at."""

    line: dict[str, Any]
    notes: tuple[str, ...] = ()


class Batch:
    """Answers tickets in the order in which they were given, in several processes."""

    def __init__(self, paths: Sequence[Path], tables: Path | str, jobs: int | None) -> None:
        self._tickets = [ticket for path in paths for ticket in _tickets(path)]
        self._tables = str(tables)
        self._jobs = jobs or os.cpu_count() or 1
        self._verdicts: Counter[str] = Counter()
        self._notes: list[str] = []

    def answers(self) -> Iterator[dict[str, Any]]:
        """Yield a line for each ticket."""
        jobs = min(self._jobs, max(1, len(self._tickets) // _WORTH_A_PROCESS))
        if jobs == 1:
            _prepare(self._tables)
            yield from self._counted(map(answer, self._tickets))
            return
        with multiprocessing.Pool(jobs, _prepare, (self._tables,)) as pool:
            yield from self._counted(pool.imap(answer, self._tickets, _AT_ONCE))

    def summary(self) -> str:
        """Return the number of tickets, the verdicts, and a line for each not read completely."""
        parts = ", ".join(f"{count} {name}" for name, count in self._verdicts.most_common())
        total = self._verdicts.total()
        counted = f"{total} ticket{'' if total == 1 else 's'}: {parts or 'none'}"
        left = len(self._notes) - _MOST_NOTES
        more = [f"Note: {left} more notes of this kind."] if left > 0 else []
        return "\n".join([counted, *self._notes[:_MOST_NOTES], *more])

    def _counted(self, answers: Iterable[Answered]) -> Iterator[dict[str, Any]]:
        for one in answers:
            self._verdicts[one.line["verdict"]] += 1
            self._notes += one.notes
            yield one.line


_tables: list[Tables] = []


def _prepare(directory: str) -> None:
    """Open the tables once in a process; turn garbage collection on for a long batch."""
    gc.enable()
    _tables[:] = [Tables(Path(directory))]


def answer(ticket: Ticket) -> Answered:
    """Return the line for one ticket; one that cannot be read does not stop the others."""
    if ticket.error:
        return Answered(_unread(ticket.name, ticket.error))
    intake = Intake()
    try:
        report = _judged(ticket, intake)
    except IntakeError as error:
        return Answered(_unread(ticket.name, str(error)))
    notes = (f"Note: {ticket.name}: {note.partition(': ')[2]}" for note in intake.notes)
    return Answered(report.as_line(ticket.name), tuple(notes))


def _judged(ticket: Ticket, intake: Intake) -> Report:
    tables = _tables[0]
    if ticket.path:
        with opened(Path(ticket.path)) as given:
            return _of_given(given, intake, tables)
    if ticket.held:
        return _of_given(Given(io.BytesIO(ticket.held), "", len(ticket.held)), intake, tables)
    intake.add_bytes(ticket.text.encode("utf-8", "replace"))
    return judge(intake.text(), tables)


def _of_given(given: Given, intake: Intake, tables: Tables) -> Report:
    snapshot = given.saved()
    if snapshot is not None:
        return judge_saved(snapshot, tables)
    intake.add(given)
    return judge(intake.text(), tables)


def _unread(name: object, error: str) -> dict[str, Any]:
    nothing = {"id": name, "verdict": "unknown", "root_causes": [], "confidence": None}
    return {**nothing, "error": error}


def _tickets(path: Path) -> Iterator[Ticket]:
    if path.is_dir():
        files = sorted(one for one in path.iterdir() if one.is_file() and one.name[0] != ".")
        for file in files:
            yield from _tickets(file)
    elif not path.exists():
        raise BatchError(f"{path} is not there.")
    elif path.suffix in _LINES:
        yield from _of_lines(path)
    elif path.is_file():
        yield Ticket(path.stem, str(path))
    else:
        yield _of_pipe(path)


def _of_pipe(path: Path) -> Ticket:
    """Read a pipe here: its name may mean nothing in another process."""
    try:
        with opened(path) as given:
            return Ticket(path.stem, held=given.all_up_to(HEAD + 1))
    except IntakeError as error:
        return Ticket(path.stem, error=str(error))


def _of_lines(path: Path) -> Iterator[Ticket]:
    try:
        with opened(path) as given:
            lines = io.BufferedReader(Rejoined(given.head, given.stream))
            number = 0
            while line := lines.readline(_LONGEST_LINE + 1):
                number += 1
                if line.strip():
                    yield _of_line(line, number)
    except IntakeError as error:
        raise BatchError(str(error)) from error


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
