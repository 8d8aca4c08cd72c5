"""One rank of a group in a pre-flight: it meets the others, connects, and adds up numbers.

Nothing here has a time limit: the supervisor ends a collective that does not end by itself. The
rank reports each step that may hang before it begins.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import socket
import time
from typing import Any, Callable, Dict, NamedTuple

from .bench import Failed
from .collectives import ROUNDS, Blame, Code, agreed, in_bytes
from .errors import explain
from .groups import _LOST as LOST
from .pace import Busy, PaceWatch
from .words import say

Message = Dict[str, Any]
Torch = Any  # the module, of any version
Tensor = Any
Send = Callable[[Message], None]

SIZES = {"gloo": (4, 1 << 16, 1 << 20), "nccl": (4, 1 << 16, 1 << 24, 1 << 27)}
"""Bytes of an all-reduce; over NCCL at least one for each of its protocols."""
_PATIENCE = dt.timedelta(seconds=3600)
"""Longer than any deadline of the supervisor."""
# Chosen: whoever is not done by then is late, and its own supervisor sees to it.
_PARTING = dt.timedelta(seconds=5)
_FAST, _SLOW = {"gloo": (3, 1), "nccl": (5, 5)}, (2, 1)
"""How often a speed is measured, and the calls of each time; the best one counts. The second pair
is used where one call takes ``_LONG`` seconds."""
_LONG = 0.2  # seconds; chosen: repeating such a call as often would take most of the step's time
_TICK = 0.0005  # seconds; chosen: little beside a collective
_GRACE = 2.0
"""Seconds for a GPU to finish what NCCL reports as finished."""
_REFUSED, _PAUSE = 5.0, 0.25
"""Seconds for which a refused connection is tried again, and between two tries."""
_SILENT, _FEW = 10.0, 64
"""After so many seconds of silence there is no route to an open port, in a group of at most so many
ranks: the system itself answers, and has been asked four times by then. Larger groups may wait
longer."""
_VALUE = 4
"""Bytes of an fp32 value."""
_REMOTE = "ncclRemoteError"


class StepProgress:
    """How far this rank has come; it reports each dangerous step in advance."""

    def __init__(self, send: Send) -> None:
        self.phase = "start"
        self.collective = 0
        self._send = send

    def at(self, phase: str) -> None:
        """Report that this phase begins."""
        self.phase = phase
        self._send({"event": "phase", "phase": phase, "collective": self.collective})

    def enter(self) -> None:
        """Report that the next collective begins."""
        self.collective += 1
        self.at("enter")


class Wrong(NamedTuple):
    """The wrong sums of one size."""

    size: int
    detail: str
    rounds: list[list[Blame | None]]


class Together:
    """The group of ranks that an order names.

    Args:
        torch: the module.
        order: see ``trial.py``.
        send: to the supervisor.
        progress: notes how far it has come.
    """

    def __init__(self, torch: Torch, order: Message, send: Send, progress: StepProgress) -> None:
        self._torch = torch
        self._order = order
        self._send = send
        self._progress = progress
        self._device = torch.device(order.get("device") or "cpu")
        self._size, self._index = int(order["size"]), int(order["index"])
        self.backend = str(order["backend"])
        self._sizes = sorted(order.get("sizes") or SIZES[self.backend])
        self._buffer = torch.zeros(self._sizes[-1] // _VALUE, device=self._device)
        self._store: Any = None
        self._pace = PaceWatch()
        self._busy: float | None = None

    @property
    def pace(self) -> Message:
        """How long the rank kept each collective waiting, and how busy its machine was.

        ``busy`` is the share of the best measurement in which it had no processor.
        """
        timings = self._pace.timings()
        return timings if self._busy is None else {**timings, "busy": round(self._busy, 3)}

    def connect(self) -> None:
        """Meet at the store of the group's first rank and become a process group.

        Raises:
            Failed: this torch cannot do it at all.
            Exception: whatever torch raises.
        """
        self._require_backend()
        self._progress.at("store")
        self._store = self._open_store() if self._index == 0 else self._find_store()
        self._store.set_timeout(_PATIENCE)
        self._progress.at("connect")
        self._torch.distributed.init_process_group(
            self.backend,
            store=self._store,
            rank=self._index,
            world_size=self._size,
            timeout=_PATIENCE,
        )

    def check(self) -> dict[str, float]:
        """Add up coded numbers of every size; return how long the largest took.

        Raises:
            Failed: ``wrong-value``. It is raised only after the last collective, because the other
                ranks wait in it.
        """
        self._stamp()
        wrong = [found for found in map(self._add_up, self._sizes) if found is not None]
        measured = self._time()
        self._stamp()
        self._progress.at("done")
        if wrong:
            raise self._verdict(wrong)
        return measured

    def part(self) -> None:
        """Wait, for a limited time, until the others have left their last collective.

        The first rank keeps the store, so it leaves last.
        """
        with contextlib.suppress(Exception):
            self._await_all("out", self._size, comes=True)
            self._await_all("away", self._size - 1, comes=self._index > 0)

    def _await_all(self, what: str, count: int, *, comes: bool) -> None:
        """Count this rank if it ``comes``, and wait until ``count`` ranks have been counted."""
        if comes and self._store.add(what, 1) == count:
            self._store.set("all " + what, "yes")
        if count and (self._index == 0 or what == "out"):
            self._store.wait(["all " + what], _PARTING)

    def _require_backend(self) -> None:
        dist, backend = self._torch.distributed, self.backend
        exists: Any = getattr(dist, f"is_{backend}_available", None)
        if not dist.is_available() or (exists is not None and not exists()):
            lacks = backend if dist.is_available() else "torch.distributed"
            raise Failed(
                "backend-missing", say("this torch was built without {library}", library=lacks)
            )

    def _open_store(self) -> Any:  # noqa: ANN401  # torch.distributed.TCPStore
        store = self._torch.distributed.TCPStore(
            host_name=self._order.get("address") or "127.0.0.1",
            port=0,
            world_size=self._size,
            is_master=True,
            timeout=_PATIENCE,
            wait_for_workers=False,
        )
        self._send({"event": "store", "port": store.port})
        return store

    def _find_store(self) -> Any:  # noqa: ANN401  # torch.distributed.TCPStore
        place = self._order["store"]
        seconds = float(self._order.get("connect_seconds") or 60.0)
        patience = min(seconds, _SILENT) if self._size <= _FEW else seconds
        _reach(place["host"], int(place["port"]), patience)
        return self._torch.distributed.TCPStore(
            host_name=place["host"],
            port=int(place["port"]),
            world_size=self._size,
            is_master=False,
            timeout=dt.timedelta(seconds=seconds),
            wait_for_workers=False,
        )

    def _stamp(self) -> None:
        """Make sure that all ranks are here, by a sum whose value does not matter."""
        self._do(lambda: self._all_reduce(self._buffer[:1].zero_()))

    def _add_up(self, size: int) -> Wrong | None:
        """Add up coded numbers; return what is wrong with the sums."""
        code, values = Code(self._size), self._buffer[: size // _VALUE]
        rounds: list[list[Blame | None]] = []
        detail = ""
        for turn in range(ROUNDS):
            blamed: list[Blame | None] = []
            for sending in code.sendings(len(values)):
                values.zero_()
                own = code.contribution(self._index, sending, turn)
                if own is not None:
                    values[own[0].begin : own[0].end].fill_(own[1])
                self._do(lambda: self._all_reduce(values))
                for part in sending:
                    got = values[part.begin : part.end]
                    lowest, highest = float(got.min()), float(got.max())
                    total = code.total(part.segment)
                    if (lowest, highest) != (total, total):
                        blamed.append(code.blame(part.segment, lowest, highest, turn))
                        detail = detail or _in_words(size, got, total, part.begin)
            rounds.append(blamed)
        return Wrong(size, detail, rounds) if detail else None

    def _verdict(self, wrong: list[Wrong]) -> Failed:
        """Return the failure, with the rank whose contribution is wrong, if that is certain."""
        detail = wrong[0].detail
        data: Message = {"sizes": [wrong_size.size for wrong_size in wrong]}
        blame = agreed([found_round for each in wrong for found_round in each.rounds])
        if blame is not None:
            rank = self._order["group"][blame.place]
            data.update(rank=rank, fault=blame.fault, segment=blame.segment)
            if blame.fault == "missing":
                detail = say("{said}: what rank {rank} sent is missing", said=detail, rank=rank)
            else:
                detail = say("{said}: what rank {rank} sent is there twice", said=detail, rank=rank)
        return Failed("wrong-value", detail, data)

    def _time(self) -> dict[str, float]:
        """Return the best time of an all-reduce of the largest size, in seconds.

        The first rank decides the number of repetitions for all ranks.
        """
        self._buffer.zero_()
        if self._index == 0:
            once = self._seconds(1)
            self._store.set("timing", "slow" if once > _LONG else "fast")
        else:
            self._seconds(1)
        speed = self._store.get("timing")
        times, calls = _SLOW if speed == b"slow" else _FAST[self.backend]
        best = float("inf")
        for _ in range(times):
            watch = Busy()
            seconds = self._seconds(calls) / calls
            if seconds < best:
                best, self._busy = seconds, watch.share()
        return {f"all-reduce {self._sizes[-1]} B s": best}

    def _seconds(self, calls: int) -> float:
        """Return how many seconds this many calls take; over NCCL, by the clock of the GPU."""
        self._progress.enter()
        start = time.perf_counter()
        if self.backend == "nccl":
            begin = self._torch.cuda.Event(enable_timing=True)
            begin.record()
            end = self._complete(lambda: [self._all_reduce(self._buffer) for _ in range(calls)])
            seconds = float(begin.elapsed_time(end)) / 1e3
        else:
            for _ in range(calls):
                self._complete(lambda: [self._all_reduce(self._buffer)])
            seconds = time.perf_counter() - start
        self._progress.at("leave")
        return seconds

    def _do(self, start: Callable[[], Any]) -> None:
        """Complete a collective, up to its end on the device."""
        self._progress.enter()
        self._complete(lambda: [start()])
        self._progress.at("leave")

    def _complete(self, start: Callable[[], list[Any]]) -> Any:  # noqa: ANN401  # as _finish
        """Begin works and wait for their end, and note how long each of the two took."""
        works = start()
        self._pace.began()
        end = self._finish(works)
        self._pace.ended()
        return end

    def _all_reduce(self, values: Tensor) -> Any:  # noqa: ANN401  # torch.distributed.Work
        return self._torch.distributed.all_reduce(values, async_op=True)

    def _finish(self, works: list[Any]) -> Any:  # noqa: ANN401  # the event at their end
        """Wait for collectives that complete in order; on a GPU, notice that NCCL has given up."""
        for work in works:
            work.wait()
        if self._device.type != "cuda":
            return None
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        given_up = None
        while not event.query():
            if given_up is None and works[-1].is_completed():
                given_up = time.monotonic() + _GRACE
            if given_up is not None and time.monotonic() > given_up:
                raise Failed("peer-lost", say("NCCL has given up the all-reduce: a rank was lost"))
            time.sleep(_TICK)
        return event


def _reach(host: str, port: int, seconds: float) -> None:
    """Check whether the store can be reached: torch's own client does not say why it cannot.

    Raises:
        Failed: ``store-unreachable``, with the reason.
    """
    end = time.monotonic() + seconds
    surely = time.monotonic() + _REFUSED
    while True:
        try:
            socket.create_connection((host, port), max(0.1, end - time.monotonic())).close()
        except OSError as error:
            if time.monotonic() > min(end, surely):
                data = {"address": host, "port": port, "error": str(error)}
                detail = say(
                    "{address} port {port}, where the first rank of the group waits: {error}",
                    address=host, port=port, error=error,
                )  # fmt: skip
                raise Failed("store-unreachable", detail, data) from error
            time.sleep(_PAUSE)
        else:
            return


def mind_no_clock() -> None:
    """Keep NCCL's watchdog from ending the process: the supervisor keeps the deadlines."""
    for name in ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING"):
        os.environ[name] = "0"
    for name in ("TORCH_NCCL_BLOCKING_WAIT", "NCCL_BLOCKING_WAIT"):
        os.environ.pop(name, None)


def meaning(error: Exception, phase: str) -> Message:
    """Return kind, detail and data of an exception in the collectives."""
    failure = explain(error)
    words = str(error)
    if phase == "store" and isinstance(error, (RuntimeError, OSError)):
        failure["kind"] = "store-unreachable"
    elif any(sign in words for sign in LOST) or failure["data"].get("nccl_result") == _REMOTE:
        failure["kind"] = "peer-lost"
    return failure


def _in_words(size: int, got: Tensor, total: float, begin: int) -> str:
    """Describe the wrong values of a part."""
    wrong = (got != total).nonzero()
    first = int(wrong[0])
    return say(
        "all-reduce of {size}: {wrong} of {all} sums are wrong, the first at {at}: {got:g} instead "
        "of {right:g}",
        size=in_bytes(size), wrong=len(wrong), all=len(got), at=begin + first,
        got=float(got[first]), right=total,
    )  # fmt: skip
