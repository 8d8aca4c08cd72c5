"""Work on many items in several processes, in order; a process that is killed costs one item.

The pools of Python do not fit: ``multiprocessing.Pool`` waits for ever for a process that was
killed, and ``ProcessPoolExecutor`` loses what all its processes work on, and cannot end them early.
"""

import contextlib
import enum
import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Generator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Generic, TypeVar, cast

import msgspec

from gpucheck.facts.streams import ENDING, held, let_through

_AT_ONCE = 16
"""The number of items that a process gets at a time."""
_AHEAD = 4096
"""The number of items whose answers may wait for that of an earlier one."""
_MOST_KILLED = 20
"""Items that may cost a process each. With more, the fault is the machine's."""
_FAREWELL = 1.0
"""Seconds for a process that was killed to be gone."""

Item = TypeVar("Item")
Found = TypeVar("Found")


class LostItem(enum.Enum):
    """Why an item has no answer."""

    KILLED = enum.auto()
    """The process that worked on it was killed twice; the second time it worked on nothing else."""
    NOT_TRIED = enum.auto()
    """Too many processes had been killed before."""


class _Part(msgspec.Struct, frozen=True):
    """The items from one to another, which a process gets at a time."""

    start: int
    end: int
    again: bool = False


def in_processes(
    work: Callable[[Item], Found], items: Sequence[Item], jobs: int, prepare: Callable[[], None]
) -> Generator[tuple[Item, Found | LostItem], None, None]:
    """Yield each item with its answer, in order.

    Args:
        work: what a process does with an item.
        items: the items.
        jobs: the most processes at a time.
        prepare: what each process does first.
    """
    crew = _Crew(work, items, jobs, prepare)
    try:
        for at, item in enumerate(items):
            yield item, crew.answer(at)
    finally:
        crew.end()


class _Crew(Generic[Item, Found]):
    """The processes, what they work on, and the answers that wait for an earlier one."""

    def __init__(
        self,
        work: Callable[[Item], Found],
        items: Sequence[Item],
        jobs: int,
        prepare: Callable[[], None],
    ) -> None:
        self._work = work
        self._items = items
        self._jobs = jobs
        self._prepare = prepare
        self._idle: list[_Worker] = []
        self._busy: dict[Connection, tuple[_Worker, _Part]] = {}
        self._answers: dict[int, Found | LostItem] = {}
        self._again: deque[_Part] = deque()
        self._given = 0
        self._killed = 0

    def answer(self, at: int) -> Found | LostItem:
        """Wait for the answer to an item; to be called for one after the other."""
        while at not in self._answers:
            self._hand_out(min(at + _AHEAD, len(self._items)))
            if self._busy:
                self._hear()
        return self._answers.pop(at)

    def end(self) -> None:
        """Kill all processes: none holds anything that is still wanted."""
        with held():
            for worker in (*self._idle, *(process for process, _part in self._busy.values())):
                worker.kill()
            self._idle.clear()
            self._busy.clear()

    def _hand_out(self, limit: int) -> None:
        while len(self._busy) < self._jobs and (self._again or self._given < limit):
            if self._again:
                part = self._again.popleft()
            else:
                part = _Part(self._given, min(self._given + _AT_ONCE, len(self._items)))
                self._given = part.end
            if self._killed >= _MOST_KILLED:
                self._answers.update(dict.fromkeys(range(part.start, part.end), LostItem.NOT_TRIED))
            else:
                self._give(part)

    def _give(self, part: _Part) -> None:
        with held():
            worker = self._idle.pop() if self._idle else _Worker(self._work, self._prepare)
            self._busy[worker.pipe] = worker, part
        with contextlib.suppress(OSError):  # it was killed, which its pipe tells as well
            worker.pipe.send(self._items[part.start : part.end])

    def _hear(self) -> None:
        for pipe in cast("list[Connection]", wait(list(self._busy))):
            try:
                found = pipe.recv()
            except (EOFError, OSError):
                self._lose(pipe)
                continue
            if isinstance(found, Exception):
                raise found
            worker, part = self._busy.pop(pipe)
            self._idle.append(worker)
            self._answers.update(zip(range(part.start, part.end), found, strict=True))

    def _lose(self, pipe: Connection) -> None:
        """Have the items of a process that was killed worked on again, each alone."""
        with held():
            worker, part = self._busy.pop(pipe)
            worker.kill()
        if part.again:
            self._killed += 1
            self._answers[part.start] = LostItem.KILLED
            return
        self._again.extend(_Part(at, at + 1, again=True) for at in range(part.start, part.end))


class _Worker:
    """One process."""

    def __init__(self, work: Callable[[Item], Found], prepare: Callable[[], None]) -> None:
        self.pipe, theirs = multiprocessing.Pipe()
        _own_ends.add(self.pipe)
        self._process = multiprocessing.Process(
            target=_be_worker, args=(theirs, work, prepare), daemon=True
        )
        self._process.start()
        theirs.close()

    def kill(self) -> None:
        _own_ends.discard(self.pipe)
        self.pipe.close()
        self._process.kill()
        self._process.join(_FAREWELL)


_own_ends: set[Connection] = set()
"""The parent's ends of the pipes. A forked process has copies of them, and closes those: as long as
one is open, the end of the parent is not the end of the pipe."""


def _be_worker(
    pipe: Connection, work: Callable[[Item], Found], prepare: Callable[[], None]
) -> None:
    """Run as the process. Ctrl-C is for the parent, which ends it; a signal of its own ends it."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN if number == signal.SIGINT else signal.SIG_DFL)
    let_through()
    for end in _own_ends:
        end.close()
    prepare()
    with contextlib.suppress(EOFError, OSError):  # the parent has ended
        while True:
            pipe.send(_answered(work, pipe.recv()))


def _answered(work: Callable[[Item], Found], items: list[Item]) -> list[Found] | Exception:
    try:
        return [work(item) for item in items]
    except Exception as error:  # noqa: BLE001  # it is the parent's, which says so
        return error
