"""One rank in one step: how far its worker is, how long it may take, and its result."""

import math
import time
from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec

from gpucheck.cluster.model import Count, Flight, Pace, RankResult, ResultFacts
from gpucheck.cluster.store.messages import StepOrders
from gpucheck.cluster.task import address_space, process_state
from gpucheck.facts import builtins
from gpucheck.facts.preflight import Phase
from gpucheck.language import plain, say
from gpucheck.machine.control_groups import refused_processes
from gpucheck.machine.supervised import TERMINATE
from gpucheck.machine.worker_pool.exits import worker_exit
from gpucheck.machine.worker_pool.messages import Message, count_in
from gpucheck.machine.worker_pool.process import StopReason, WorkerProcess
from gpucheck.selftests.worker_words import sentence_in

_VICTIM_SECONDS = 2.0
"""How long a rank may still report what it saw when another one of its group has failed."""
_LEAVE = 15.0
"""Seconds for a worker that has its answer to end."""
_WAIT_FOR_RENDEZVOUS = 5.0
"""Seconds added for the other ranks, whose first worker opens the group's store."""
_LONGEST = 1000
_MOST_DATA = 64 * 1024
"""Bytes of the data of one result: several results go into one message to task 0."""
_MOST_CONNECTIONS = 64
"""Ways to other hosts of which is told what was lost."""
_PHASES: tuple[Phase, ...] = get_args(Phase)


Deadlines = Mapping[Phase, float]
"""Seconds that a worker may stay in a phase; in one that is not there as long as in ``start``."""


def deadlines_of(orders: StepOrders) -> Deadlines:
    """Return the deadlines of a step; a rank whose group opens a store waits for that one, too."""
    connect = orders.connect_seconds + _WAIT_FOR_RENDEZVOUS
    return {
        "start": orders.start_seconds,
        "set-device": orders.device_seconds,
        "alone": orders.alone_seconds,
        "store": connect,
        "connect": connect,
        "enter": orders.seconds,
        "leave": orders.seconds,
        "done": _LEAVE,
    }


class RankRun:
    """A rank in a step, and what is known of it.

    Args:
        rank: of the job.
        process: its worker.
        deadlines: how long it may take.

    Attributes:
        phase: where it is.
        collective: the number of the collective that it has entered last, from 1.
        stage: what it is about to do, in words.
        result: what became of it; None while it runs.
    """

    def __init__(self, rank: int, process: WorkerProcess, deadlines: Deadlines) -> None:
        self.rank = rank
        self.phase: Phase = "start"
        self.collective = 0
        self.stage = ""
        self.result: RankResult | None = None
        self._process = process
        self._deadlines = deadlines
        self._begun = self._entered = time.monotonic()
        self._spent: dict[Phase, float] = {}
        self._refused = refused_processes()
        self._answer: Message | None = None
        self._flight: Flight | None = None

    @property
    def key(self) -> str:
        """The worker's name in the pool."""
        return self._process.key

    @property
    def seconds(self) -> float:
        """How long it has been in its phase."""
        return self._process.seconds

    def hear(self, message: Message) -> None:
        """Handle what the worker has said, or what the zygote has said about it."""
        event = message.get("event")
        if event == "phase" and message.get("phase") in _PHASES:
            self._enter(message["phase"])
            self.collective = count_in(message, "collective") or self.collective
            self._allow()
        elif event == "stage":
            self.stage = str(message.get("text"))[:300]
            self._allow()
        elif event == "flight":
            self._flight = read_flight(message)
        elif event == "result" and self._answer is None:
            self._answer = message
            self._enter("done")
            self._process.allow(_LEAVE)
        elif event == "ended":
            self._conclude(message)

    def _allow(self) -> None:
        """Give it the time of its phase."""
        deadlines = self._deadlines
        self._process.allow(deadlines.get(self.phase, deadlines["start"]))

    def stop(self, reason: StopReason) -> None:
        """End it: its group has come to an end, or the run."""
        patience = _VICTIM_SECONDS if reason == "peer-failed" else 0.0
        self._process.stop(reason, within=patience)

    def blame_zygote(self) -> None:
        """Note that the zygote stood still, and not the worker."""
        if self.result is not None:
            self.result = msgspec.structs.replace(
                self.result,
                kind="zygote-stopped",
                detail=say("the process that forks the workers did not respond"),
            )

    def _enter(self, phase: Phase) -> None:
        now = time.monotonic()
        self._spent[self.phase] = self._spent.get(self.phase, 0.0) + now - self._entered
        self.phase, self._entered = phase, now

    def _phase_seconds(self) -> dict[Phase, float]:
        self._enter(self.phase)
        timed = {phase: round(self._spent.get(phase, 0.0), 2) for phase in _PHASES}
        return {phase: seconds for phase, seconds in timed.items() if seconds}

    def _conclude(self, message: Message) -> None:
        answered = read_answer(self._answer) if self._answer is not None else None
        result = answered if answered is not None else self._from_end(message)
        seconds = round(time.monotonic() - self._begun, 3)
        if result.status in ("failed", "crashed"):
            said = (message.get("printed"), *result.data.values())
            kind, detail = address_space.explained(result.kind, result.detail, said)
            result = msgspec.structs.replace(result, kind=kind, detail=detail)
        result = self._with_look(result, str(message.get("printed", "")))
        result = msgspec.structs.replace(result, data={**result.data, **self._lost_packets()})
        flight = None if result.passed else self._flight
        self.result = msgspec.structs.replace(
            result, rank=self.rank, seconds=seconds, flight=flight,
            phase_seconds={} if result.passed else self._phase_seconds(),
        )  # fmt: skip

    def _with_look(self, result: RankResult, printed: str) -> RankResult:
        """Add what was seen of a worker before it was ended.

        Of one that did not run out of time itself only what held it counts, or its zygote. One that
        somebody stopped ran out of time even if it had its answer by then.
        """
        if not self._process.is_signalled:
            return result
        look = process_state.seen(self._process.looks, printed, killed=self._process.is_killed)
        if look is None:
            return result
        if look.state in process_state.STOPPED and self._process.stopped_for == "deadline":
            return msgspec.structs.replace(result, status="timed-out", look=look, phase=self.phase)
        if look.zygote in process_state.STOPPED:
            return msgspec.structs.replace(
                result, status="timed-out", kind="zygote-stopped", look=look, phase=self.phase,
                collective=self.collective,
            )  # fmt: skip
        is_told = result.status == "timed-out" or look.state in process_state.HELD
        return msgspec.structs.replace(result, look=look) if is_told else result

    def _from_end(self, message: Message) -> RankResult:
        """Return what it means that its process has ended, or was ended, without an answer."""
        reason = self._reason(message)
        killed = self._why(reason) if reason is not None else ""
        ended = worker_exit(message, self.stage, killed=killed)
        kind, detail = ended.kind, ended.detail
        if self._process.is_unkillable:
            kind = "unkillable"
            detail = say("{why}; it cannot be killed: it is stuck in the driver", why=killed)
        return RankResult(
            rank=self.rank,
            status=_STATUS_OF[reason],
            phase=self.phase,
            collective=self.collective,
            kind=kind,
            detail=detail,
            data={**ended.data, **self._patience(reason), **self._limits()},
        )

    def _reason(self, message: Message) -> StopReason | None:
        """Return why it was ended, or None if it ended by itself."""
        process = self._process
        if process.stopped_for == "peer-failed" and not process.is_signalled and _is_crash(message):
            return None  # what another rank saw first may have been this very end
        return process.stopped_for

    def _patience(self, reason: StopReason | None) -> dict[str, Any]:
        """Return how long it was in its phase at its end, and whether its own time was over."""
        if reason != "deadline" or self._process.waited is None:
            return {}
        waited = round(self._process.waited, 1)
        return {"in_phase": waited, "own_deadline": self._process.ran_over}

    def _limits(self) -> dict[str, Any]:
        """Return how often a control group refused processes or threads meanwhile."""
        refused = refused_processes() - self._refused
        return {"refused_processes": refused} if refused > 0 else {}

    def _lost_packets(self) -> dict[str, Any]:
        """Return what its connections had lost if a quarter of its time was over; worst first.

        The other end may have closed them since, so that it ended by itself.
        """
        seen = self._process.looks.lost_packets if self._process.looks is not None else []
        worst = sorted(seen, key=lambda one: -one.lost)[:_MOST_CONNECTIONS]
        return {"lost_packets": builtins(worst)} if worst else {}

    def _why(self, reason: StopReason) -> str:
        if reason == "peer-failed":
            return say(
                "stopped in {phase}: another rank of its group had failed", phase=self._where()
            )
        if reason == "run-limit":
            return say("stopped in {phase} at the time limit of the run", phase=self._where())
        return say(
            "{phase} did not end within {seconds:.0f} s", phase=self._where(), seconds=self.seconds
        )

    def _where(self) -> str:
        if self.phase == "enter":
            return say("collective {number}", number=self.collective)
        if self.phase == "alone":
            return self.stage or say("its own tests")
        return self.phase


_STATUS_OF: dict[StopReason | None, Literal["crashed", "stopped", "timed-out", "not-run"]] = {
    None: "crashed",
    "peer-failed": "stopped",
    "deadline": "timed-out",
    "run-limit": "not-run",
}


def _is_crash(message: Message) -> bool:
    """Whether a process died of a signal that nobody sends to end it."""
    return message.get("signal") not in (None, 0, TERMINATE)


def read_flight(message: Message) -> Flight | None:
    """Return what a worker has said of the flight recorder, or None if it is malformed."""
    try:
        known = {name: message[name] for name in Flight.__struct_fields__ if name in message}
        return msgspec.convert(known, Flight)
    except ValueError:
        return None


def _detail(message: Message) -> str:
    """Return what a worker says is wrong; a sentence of ours stays one, unless it is too long."""
    said = sentence_in(message, "detail")
    return said if len(said) <= _LONGEST else said[:_LONGEST]


def read_answer(message: Message) -> RankResult | None:
    """Return the result that a worker has sent, or None if it is malformed."""
    try:
        measured: dict[str, Any] = message.get("measurements") or {}
        return RankResult(
            rank=0,
            status=msgspec.convert(message["status"], Literal["passed", "failed"]),
            phase=msgspec.convert(message.get("phase", "done"), Phase),
            collective=msgspec.convert(message.get("collective") or 0, Count),
            kind=str(message.get("kind", ""))[:100],
            detail=_detail(message),
            measurements={
                str(name)[:80]: float(value)
                for name, value in list(measured.items())[:100]
                if isinstance(value, (int, float)) and math.isfinite(value)
            },
            pace=msgspec.convert(message.get("pace"), Pace | None),
            data=_checked(message.get("data") or {}),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _checked(said: object) -> dict[str, Any]:
    """Return the data of a result, as task 0 will take them.

    Raises:
        ValueError: they are malformed.
    """
    data = msgspec.convert(said, dict[str, Any])
    msgspec.convert(data, ResultFacts)
    size = len(msgspec.json.encode(data, enc_hook=plain))
    return data if size <= _MOST_DATA else {"left_out": f"{size} bytes, too many for a message"}
