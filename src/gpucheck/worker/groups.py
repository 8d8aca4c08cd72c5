"""The ranks of a test: how they meet, how long they wait, and who is to blame for a hang.

Each rank keeps a small file in the folder of the step, which says how far the rank has come. So a
rank that waits in vain can say for which rank it waits, whatever the collective library does.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import time
from typing import Any, Callable, Iterator, Sequence

from .bench import Bench, Failed, Skipped
from .words import say

Start = Callable[[], Any]
"""Starts a collective and returns its work, several, or None when it is done."""

_MEETING, _FIRST, _NEXT, _PARTING = 60.0, 40.0, 20.0, 5.0
"""Seconds: to come together; for the first collective, in which NCCL sets itself up; for a later
one; to learn the results of the others."""
_KEPT_BACK = 5.0
"""Seconds of the test's time that are kept for saying what was seen."""
_NEVER = 3600.0
"""NCCL's watchdog ends the process: it must not be the first to lose patience."""
_SURELY, _TIMES_LONGER = 3.0, 3.0
"""A test that has taken more seconds goes on while so many times as many are left."""
_TICK = 0.0005  # seconds; chosen: little beside a collective, and it leaves the processor to others
_CALLING, _WAITING, _LEFT, _RIGHT, _WRONG = range(5)
_LOST = (
    "Connection closed by peer",
    "Connection reset by peer",
    "Broken pipe",
    "Connection refused",
    "remote process exited",
    "Socket closed",
    "pair closure",
)
_UNSUPPORTED = ("does not support", "no support for", "not supported", "not implemented")


class Group:
    """The ranks of one test, as seen by one of them.

    Attributes:
        rank, size: this rank's number, and the number of ranks.
        backend: ``nccl`` or ``gloo``.
        dist: ``torch.distributed``.
    """

    def __init__(self, bench: Bench) -> None:
        self.rank, self.size = bench.rank, bench.world_size
        self.backend = "nccl" if bench.device.type == "cuda" else "gloo"
        self.dist = bench.torch.distributed
        self._bench = bench
        self._count = self._asked = 0
        self._begun = time.monotonic()
        self._file = -1
        self._failure: Failed | None = None

    def do(self, what: str, start: Start) -> None:
        """Start a collective and wait until this rank has left it.

        Raises:
            Failed: ``collective-timeout``, with the ranks that are to blame, or ``peer-lost``.
            Skipped: this torch has no such collective over gloo.
            Exception: whatever else torch raises.
        """
        self._bench.stage(what)
        self._count += 1
        self._mark(_CALLING)
        limit = self._patience(_FIRST if self._count == 1 else _NEXT)
        try:
            works = _several(start())
            self._mark(_WAITING)
            end = time.monotonic() + limit  # NCCL may have taken long to set itself up in the call
            for work in works:
                self._wait(work, end)
            self._synchronize(end)
        except Exception as error:
            raise self._meaning(what, limit, error) from error
        self._mark(_LEFT)

    def judge(self, check: Callable[[], None]) -> None:
        """Check a result; keep a failure until the end, because the other ranks wait for this one.

        The first failure is kept, but a later one that names the rank to blame replaces it.
        """
        try:
            check()
        except Failed as failure:
            kept = self._failure
            if kept is None or ("rank" in failure.data and "rank" not in kept.data):
                self._failure = failure

    def has_time(self) -> bool:
        """Whether there is time for more; rank 0 decides for all ranks."""
        self._asked += 1
        elapsed = time.monotonic() - self._begun
        own = elapsed < _SURELY or elapsed * _TIMES_LONGER < self._bench.seconds_left()
        if self.size == 1:
            return own
        path = os.path.join(self._bench.folder, f"time-{self._asked}-")
        if self.rank == 0:
            open(path + ("yes" if own else "no"), "wb").close()
            return own
        end = time.monotonic() + self._patience(_NEXT)
        while time.monotonic() < end:
            for answer in ("yes", "no"):
                if os.path.exists(path + answer):
                    return answer == "yes"
            time.sleep(_TICK)
        raise self._hang(say("decision whether there is time for more"), _NEXT)

    def _meet(self) -> None:
        """Wait until every rank is there.

        Raises:
            Failed: one does not come.
            Skipped: there is nowhere to meet.
        """
        bench = self._bench
        bench.stage(say("the ranks come together"))
        if not bench.folder:
            if self.size > 1:
                raise Skipped(say("no folder could be made for the ranks to meet in"))
            return
        way = os.O_CREAT | os.O_RDWR | getattr(os, "O_BINARY", 0)
        self._file = os.open(self._path(self.rank), way, 0o600)
        self._mark(_CALLING)
        limit = self._patience(_MEETING)
        end = time.monotonic() + limit
        while missing := [rank for rank in range(self.size) if self._read(rank) is None]:
            if time.monotonic() > end:
                names = ranks_in_words(missing)
                raise Failed(
                    "collective-timeout",
                    say(
                        "{ranks} did not reach the rendezvous of the ranks within {seconds:.0f} s",
                        ranks=names,
                        seconds=limit,
                    ),
                    {"ranks": missing, "seconds": limit},
                )
            time.sleep(_TICK)

    def join(self) -> None:
        """Meet the other ranks and become a process group of torch."""
        self._meet()
        folder = self._bench.folder
        if folder:
            store = self.dist.FileStore(os.path.join(folder, "store"), self.size)
        else:
            store = self.dist.HashStore()
        seconds = _NEVER if self.backend == "nccl" else self._patience(_FIRST)
        limit = self._patience(_MEETING)
        self._bench.stage(say("the ranks connect over {backend}", backend=self.backend))
        try:
            self.dist.init_process_group(
                self.backend,
                store=store,
                rank=self.rank,
                world_size=self.size,
                timeout=dt.timedelta(seconds=seconds),
            )
        except Exception as error:
            raise self._meaning(
                say("connection over {backend}", backend=self.backend), limit, error
            ) from error

    def part(self) -> None:
        """Learn the results of the others, then raise this rank's failure.

        Raises:
            Failed: the first failure of this rank, with who else has seen one.
        """
        self._mark(_WRONG if self._failure else _RIGHT)
        others = [rank for rank in range(self.size) if rank != self.rank]
        end = time.monotonic() + min(_PARTING, max(0.0, self._bench.seconds_left()))
        while time.monotonic() < end and any(self._state(rank) < _RIGHT for rank in others):
            time.sleep(_TICK)
        if self._failure is None:
            return
        wrong = [rank for rank in others if self._state(rank) == _WRONG]
        if others and len(wrong) == len(others):
            detail = self._failure.detail
            self._failure.detail = say("{said}; every rank sees something wrong", said=detail)
        elif others and all(self._state(rank) == _RIGHT for rank in others):
            detail = self._failure.detail
            self._failure.detail = say("{said}; every other rank is right", said=detail)
        raise self._failure

    def _wait(self, work: Any, end: float) -> None:  # noqa: ANN401  # torch.distributed.Work
        left = max(0.01, end - time.monotonic())
        if self.backend == "gloo":
            work.wait(dt.timedelta(seconds=left))
            return
        while not work.is_completed():
            _sleep_until(end)
        work.wait()

    def _synchronize(self, end: float) -> None:
        """Wait for the GPU by polling, without a call that might never return."""
        if self._bench.device.type == "cuda":
            event = self._bench.torch.cuda.Event()
            event.record()
            while not event.query():
                _sleep_until(end)

    def _patience(self, seconds: float) -> float:
        return max(1.0, min(seconds, self._bench.seconds_left() - _KEPT_BACK))

    def _meaning(self, what: str, limit: float, error: Exception) -> Exception:
        """Return the failure that an exception from a collective stands for."""
        words = str(error)
        if isinstance(error, TimeoutError) or "timed out" in words.lower():
            return self._hang(what, limit)
        if any(sign in words for sign in _LOST):
            first = words.strip().splitlines()[0][:300]
            return Failed(
                "peer-lost",
                say("another rank was lost in the {what}: {error}", what=what, error=first),
            )
        if self.backend == "gloo" and any(sign in words for sign in _UNSUPPORTED):
            return Skipped(
                say(
                    "{error} (torch {version})",
                    error=words.strip().splitlines()[0][:200],
                    version=self._version(),
                )
            )
        return error

    def _version(self) -> str:
        return str(getattr(self._bench.torch, "__version__", ""))

    def _hang(self, what: str, limit: float) -> Failed:
        """Name the ranks that did not begin the collective, or else those that did not leave it."""
        everyone = range(self.size)
        own = self._at(self.rank)
        late = [rank for rank in everyone if self._at(rank) < own]
        stuck = [rank for rank in everyone if self._at(rank) < (self._count, _LEFT)]
        if late:
            waiting = ranks_in_words([rank for rank in everyone if rank not in late])
            detail = say(
                "{ranks} did not enter the {what}; {others} waited {seconds:.0f} s",
                ranks=ranks_in_words(late),
                what=what,
                others=waiting,
                seconds=limit,
            )
        elif len(stuck) < self.size:
            detail = say(
                "{ranks} did not leave the {what} within {seconds:.0f} s",
                ranks=ranks_in_words(stuck),
                what=what,
                seconds=limit,
            )
        else:
            detail = say(
                "every process began the {what}, and none finished it within {seconds:.0f} s",
                what=what,
                seconds=limit,
            )
        guilty = late or (stuck if len(stuck) < self.size else [])
        data = {"what": what, "ranks": guilty, "seconds": limit}
        return Failed("collective-timeout", detail, data)

    def _path(self, rank: int) -> str:
        return os.path.join(self._bench.folder, f"rank-{rank}")

    def _mark(self, state: int) -> None:
        if self._file >= 0:
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, b"%08d %d" % (self._count, state))

    def _read(self, rank: int) -> tuple[int, int] | None:
        with contextlib.suppress(OSError, ValueError):
            with open(self._path(rank), "rb") as file:
                count, state = file.read(16).split()
            return int(count), int(state)
        return None

    def _at(self, rank: int) -> tuple[int, int]:
        return self._read(rank) or (0, _CALLING)

    def _state(self, rank: int) -> int:
        return self._at(rank)[1]


@contextlib.contextmanager
def group(bench: Bench) -> Iterator[Group]:
    """Meet the other ranks of the test; at the end, raise the failure that ``judge`` has kept.

    Raises:
        Failed: a rank does not come, or a check has failed.
        Skipped: this torch cannot do it at all.
    """
    torch = bench.torch
    if not torch.distributed.is_available():
        raise Skipped(say("this torch was built without torch.distributed"))
    name = "nccl" if bench.device.type == "cuda" else "gloo"
    exists: Any = getattr(torch.distributed, f"is_{name}_available", None)
    if exists is not None and not exists():
        raise Skipped(say("this torch was built without {library}", library=name))
    ranks = Group(bench)
    bench.data["backend"] = name
    if ranks.size == 1 and name == "nccl":
        bench.remark = say("one GPU, so NCCL ran with one rank: it refuses two on the same GPU")
    ranks.join()
    yield ranks
    # The process group is not destroyed: that can hang, and the process ends anyway.
    ranks.part()


def ranks_in_words(ranks: Sequence[int]) -> str:
    """Return ``rank 3`` or ``ranks 0, 2``."""
    if len(ranks) == 1:
        return say("rank {rank}", rank=ranks[0])
    return say("ranks {ranks}", ranks=", ".join(map(str, ranks)))


def _several(works: Any) -> list[Any]:  # noqa: ANN401  # what a Start returns
    if works is None:
        return []
    return list(works) if isinstance(works, (list, tuple)) else [works]


def _sleep_until(end: float) -> None:
    if time.monotonic() > end:
        raise TimeoutError
    time.sleep(_TICK)
