"""Many tickets at once: files, folders and JSON lines, each answered by one line of JSON."""

import gc
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from gpucheck.engine import Report
from gpucheck.facts.streams import Rejoined
from gpucheck.language import in_series, say, say_many
from gpucheck.log_patterns.text import Decoder, Transcoded, utf_16
from gpucheck.tables import Tables
from gpucheck.ticket.batch_summary import Counting, Tally
from gpucheck.ticket.failure import owner_of
from gpucheck.ticket.given import Given, IntakeError, opened
from gpucheck.ticket.intake import HEAD, Intake
from gpucheck.ticket.judge import judge_given
from gpucheck.ticket.processes import LostItem, in_processes

_LINES = (".jsonl", ".ndjson")
# Bytes; chosen: a ticket of a tracker as JSON has some KB, with long logs some MB.
_LONGEST_LINE = 16 * 1024 * 1024
# Chosen: notes on stderr; every ticket has its own line of JSON.
_MOST_NOTES, _LONGEST_NAME = 20, 100
_WORTH_A_PROCESS = 64
"""With fewer tickets than this a second process costs more than it saves."""
_WINDOWS = os.name == "nt"
_MOST_ON_WINDOWS = 60
"""Processes: Python waits for 63 handles at most there, and a pool needs some for itself."""


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
    """The line for a ticket, and a sentence for each part not looked at."""

    line: dict[str, Any]
    notes: tuple[str, ...] = ()


class Batch:
    """Answers tickets in the order in which they were given, in several processes."""

    def __init__(
        self,
        paths: Sequence[Path],
        tables: Path | str,
        jobs: int | None,
        lifeline: Callable[[], None] | None = None,
    ) -> None:
        """Find the tickets; a path that is not there is a ticket that cannot be read.

        Args:
            paths: files and folders.
            tables: the folder of the tables.
            jobs: the most processes; None stands for one for each processor.
            lifeline: what a process calls first, so that it ends with this one.

        Raises:
            BatchError: none of the paths is there.
        """
        if not any(map(_is_there, paths)):
            raise BatchError(_not_there(paths[0]))
        self._tickets = [ticket for path in paths for ticket in _tickets(path)]
        self._tables = str(tables)
        self._lifeline = lifeline
        self._jobs = jobs or os.cpu_count() or 1
        if _WINDOWS:
            self._jobs = min(self._jobs, _MOST_ON_WINDOWS)
        self._counting = Counting()
        self._verdicts: Counter[str] = Counter()
        self._notes: list[str] = []

    def answers(self) -> Iterator[dict[str, Any]]:
        """Yield a line for each ticket."""
        jobs = min(self._jobs, max(1, len(self._tickets) // _WORTH_A_PROCESS))
        if jobs == 1:
            _prepare(self._tables)
            yield from self._noted(map(answer, self._tickets))
            return
        begin = partial(_begin, self._tables, self._lifeline)
        found = in_processes(answer, self._tickets, jobs, begin)
        yield from self._noted(starmap(_answered, found))

    def tally(self) -> Tally:
        """Return how many of the tickets answered so far have which verdict and cause."""
        return self._counting.tally()

    def summary(self) -> list[str]:
        """Return the number of tickets, the verdicts, and a line for each not read completely."""
        return [_counted(self._verdicts), *self.notes()]

    def notes(self) -> list[str]:
        """Return a line for each of the first tickets that were not read completely."""
        left = len(self._notes) - _MOST_NOTES
        more = say_many(
            left, "Note: one more note of this kind.", "Note: {count} more notes of this kind."
        )
        return [*self._notes[:_MOST_NOTES], *([more] if left > 0 else ())]

    def _noted(self, answers: Iterable[Answered]) -> Iterator[dict[str, Any]]:
        for answered in answers:
            self._counting.add(answered.line)
            self._verdicts[answered.line["verdict"]] += 1
            self._notes += answered.notes
            yield answered.line


def _counted(verdicts: Counter[str]) -> str:
    """Return how many tickets there are, and how many of them have which verdict."""
    each = in_series([_COUNTED[name](count) for name, count in verdicts.most_common()])
    if not each:
        return say("No tickets.")
    return say_many(
        verdicts.total(), "{count} ticket: {verdicts}", "{count} tickets: {verdicts}", verdicts=each
    )


_COUNTED: dict[str, Callable[[int], str]] = {
    "broken": lambda count: say("{count} broken", count=count),
    "warning": lambda count: say_many(count, "{count} with a warning", "{count} with warnings"),
    "unknown": lambda count: say("{count} unknown", count=count),
    "healthy": lambda count: say("{count} healthy", count=count),
}
"""How many tickets have a verdict, in words."""

_tables: list[Tables] = []


def _prepare(directory: str) -> None:
    """Open the tables once in a process; turn garbage collection on for a long batch."""
    gc.enable()
    _tables[:] = [Tables(Path(directory))]


def _begin(directory: str, lifeline: Callable[[], None] | None) -> None:
    if lifeline is not None:
        lifeline()
    _prepare(directory)


def answer(ticket: Ticket) -> Answered:
    """Return the line for one ticket; one that cannot be read does not stop the others."""
    if ticket.error:
        return _unread(ticket.name, ticket.error)
    intake = Intake()
    try:
        report = _judged(ticket, intake)
    except IntakeError as error:
        return _unread(ticket.name, error.about(str(ticket.name or "")[:_LONGEST_NAME]))
    notes = (
        say("Note: {name}: {what}.", name=ticket.name, what=part.what) for part in intake.not_read
    )
    line = {
        **report.as_line(ticket.name),
        "owner": owner_of(report),
    }  # a saved machine has one, too
    return Answered(line, tuple(notes))


def _answered(ticket: Ticket, found: Answered | LostItem) -> Answered:
    """Return the answer of a process, or the line of a ticket that has none."""
    name = str("" if ticket.name is None else ticket.name)[:_LONGEST_NAME] or say(
        "a ticket without a name"
    )
    if found is LostItem.KILLED:
        why = say(
            "{name} has no answer: the process that looked at it was killed twice, perhaps because "
            "memory ran out.",
            name=name,
        )
        return _unread(ticket.name, why)
    if found is LostItem.NOT_TRIED:
        why = say(
            "{name} was not looked at, because too many processes had been killed by then, perhaps "
            "because memory ran out.",
            name=name,
        )
        return _unread(ticket.name, why)
    return found


def _judged(ticket: Ticket, intake: Intake) -> Report:
    if ticket.path:
        with opened(Path(ticket.path)) as given:
            return judge_given(given, intake, _tables[0])
    held = ticket.held or ticket.text.encode("utf-8", "replace")
    return judge_given(Given(io.BytesIO(held), "", len(held)), intake, _tables[0])


def _unread(name: object, error: str) -> Answered:
    nothing = {"id": name, "verdict": "unknown", "root_causes": [], "confidence": None}
    return Answered({**nothing, "error": error}, notes=(say("Note: {note}", note=error),))


def _not_there(path: Path) -> str:
    return say("{file} does not exist.", file=path)


def _not_read(path: Path, error: OSError) -> str:
    return say("{file} cannot be read: {why}.", file=path, why=error.strerror or error)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # it may be there: whoever opens it says why it cannot be read
        return True


def _tickets(path: Path) -> Iterator[Ticket]:
    """Find the tickets of a path; one that cannot be looked at is a ticket with an error."""
    try:
        yield from _found(path)
    except OSError as error:
        yield Ticket(path.stem, error=_not_read(path, error))


def _found(path: Path) -> Iterator[Ticket]:
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file() and file.name[0] != ".")
        for file in files:
            yield from _tickets(file)
    elif not path.exists():
        yield Ticket(path.stem, error=_not_there(path))
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
        return Ticket(path.stem, error=error.about(""))


def _of_lines(path: Path) -> Iterator[Ticket]:
    decoder = Decoder()
    try:
        with opened(path) as given:
            whole, encoding = Rejoined(given.head, given.stream), utf_16(given.head)
            lines = io.BufferedReader(Transcoded(whole, encoding) if encoding else whole)
            number = 0
            while line := lines.readline(_LONGEST_LINE + 1):
                number += 1
                if len(line) > _LONGEST_LINE:
                    _skip(line, lines)
                    yield Ticket(None, error=_too_long(number))
                elif line.strip():
                    yield _of_line(line, number, decoder)
    except IntakeError as error:
        yield Ticket(path.stem, error=error.about(""))


def _skip(line: bytes, lines: BinaryIO) -> None:
    """Read the rest of a line that is too long."""
    while line and not line.endswith(b"\n"):
        line = lines.readline(_LONGEST_LINE)


def _of_line(line: bytes, number: int, decoder: Decoder) -> Ticket:
    """Read one line; a bad one gets its own answer."""
    name: Any = None
    try:
        item = json.loads(decoder.text(line).removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return Ticket(name, error=say("line {number}: it is not JSON", number=number))
    if isinstance(item, dict):
        name = item.get("id") if isinstance(item.get("id"), (str, int)) else None
        if isinstance(item.get("text"), str):
            return Ticket(name, text=item["text"])
    why = say('line {number}: it is not an object with "id" and "text"', number=number)
    return Ticket(name, error=why)


def _too_long(number: int) -> str:
    size = _LONGEST_LINE >> 20
    return say("line {number}: it is longer than {size} MiB", number=number, size=size)
