"""One worker under way, for one rank in one step: how far it is, and how it is ended.

A worker that takes too long in a phase gets SIGTERM (it dumps its stack), then SIGKILL, and is
then given up on: it is stuck in the driver, where no signal reaches it.
"""

import time
from typing import Any, Literal, get_args

import msgspec

from gpucheck.host.supervised import KILL, TERMINATE
from gpucheck.preflight.model import RankResult
from gpucheck.probes.preflight import Phase
from gpucheck.selftest import outcome
from gpucheck.selftest.crew import Crew, Message
from gpucheck.selftest.plan import Job

Because = Literal["deadline", "failure", "limit"]
"""Why a worker is ended: the time of its group is over, another rank of the group has failed, or
the time of the whole run is over."""

TERM_SECONDS = KILL_SECONDS = 5.0
_VICTIM_SECONDS = 2.0
"""So long a rank may still say what it saw when another one of its group has failed."""
_PHASES: tuple[Phase, ...] = get_args(Phase)


class Deadlines(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds that a worker may take, by what it is doing."""

    start: float = 30.0
    set_device: float = 60.0
    alone: float = 30.0
    """One test, without communication."""
    connect: float = 60.0
    collective: float = 60.0
    parting: float = 15.0

    def of(self, phase: Phase) -> float:
        """Return how long a worker may stay in a phase."""
        return {
            "set-device": self.set_device,
            "alone": self.alone,
            "store": self.connect,
            "connect": self.connect,
            "enter": self.collective,
            "leave": self.collective,
            "done": self.parting,
        }.get(phase, self.start)


class Post:
    """A worker and what is known of it.

    Args:
        rank: of the job.
        key: the worker's name in the crew.
        deadlines: how long it may take.
        end: when the run must be over, a time of ``time.monotonic()``.
    """

    def __init__(self, rank: int, key: str, deadlines: Deadlines, end: float) -> None:
        self.rank = rank
        self.key = key
        self.phase: Phase = "start"
        self.collective = 0
        self.stage = ""
        self.result: RankResult | None = None
        self.gone = False
        """Whether its process has ended, or was given up on."""
        self.unkillable = False
        self._deadlines = deadlines
        self._begun = time.monotonic()
        self._end = end
        self._answer: Message | None = None
        self._because: Because | None = None
        self._sent = 0
        self._in_phase: float | None = None
        self._is_own_deadline = False
        self._since = self._begun
        self._deadline = self._begun + deadlines.start

    @property
    def seconds(self) -> float:
        """How long it has been in its phase."""
        return time.monotonic() - self._since

    @property
    def is_over_time(self) -> bool:
        """Whether it was ended, or is being ended, since its own time was over."""
        return self._because == "deadline"

    def hear(self, message: Message) -> None:
        """Take in what the worker, or the zygote about it, has said."""
        event = message.get("event")
        if event == "phase" and message.get("phase") in _PHASES:
            self.phase = message["phase"]
            self.collective = int(message.get("collective") or self.collective)
            self._wait_for(self._deadlines.of(self.phase))
        elif event == "stage":
            self.stage = str(message.get("text"))[:300]
            self._wait_for(self._deadlines.of(self.phase))
        elif event == "result" and self._answer is None:
            self._answer = message
            self.phase = "done"
            self._wait_for(self._deadlines.parting)
        elif event == "ended":
            self._conclude(message)

    def stop(self, because: Because) -> None:
        """End it: its group has come to an end, or the run."""
        if self._because is not None or self.gone:
            return
        if because == "failure":
            self._deadline = min(self._deadline, time.monotonic() + _VICTIM_SECONDS)
        else:
            self._deadline = time.monotonic()
        self._because = because

    def push(self, crew: Crew) -> None:
        """Take the next step to end it when its time has come."""
        now = time.monotonic()
        if self.gone or now < min(self._deadline, self._end):
            return
        if self._because is None:
            self._because = "limit" if now >= self._end else "deadline"
            self._is_own_deadline = self._because == "deadline"
        if not self._sent:
            self._in_phase = self.seconds
            self._signal(crew, TERMINATE, now + TERM_SECONDS)
        elif self._sent == TERMINATE != KILL:
            self._signal(crew, KILL, now + KILL_SECONDS)
        else:
            self.unkillable = True
            self._conclude({})

    def give_up(self, why: str) -> None:
        """Take it for ended: the process that forks the workers is no more."""
        if not self.gone:
            self._conclude({"printed": why})

    def _signal(self, crew: Crew, number: int, until: float) -> None:
        crew.signal(self.key, number)
        self._sent = number
        self._deadline = self._end = until

    def _wait_for(self, seconds: float) -> None:
        if self._sent:
            return  # what it says while it is being ended gives it no more time
        self._since = time.monotonic()
        if self._because != "failure":
            self._deadline = self._since + seconds

    def _conclude(self, message: Message) -> None:
        self.gone = True
        answer = self._answer
        answered = answered_well(answer) if answer is not None else None
        self.result = answered if answered is not None else self._from_end(message)
        seconds = round(time.monotonic() - self._begun, 3)
        self.result = msgspec.structs.replace(self.result, rank=self.rank, seconds=seconds)

    def _from_end(self, message: Message) -> RankResult:
        """Return what it means that its process has ended, or was ended, without an answer."""
        if self._because == "failure" and not self._sent and _is_crash(message):
            self._because = None  # what another rank saw first may have been this very end
        why = self._why() if self._because is not None else ""
        job = Job(tests=(self._where(),), device="", devices=("",))
        ended = outcome.ended(job, self._where(), self.stage, message, killed=why)
        kind, detail = ended.kind, ended.detail
        if self.unkillable:
            kind, detail = "unkillable", f"{why}; it cannot be killed: it is stuck in the driver"
        return RankResult(
            rank=self.rank,
            status=self._status(),
            phase=self.phase,
            collective=self.collective,
            kind=kind,
            detail=detail,
            data={**ended.data, **self._patience()},
        )

    def _patience(self) -> dict[str, Any]:
        """Say how long it was in its phase when it was ended, and whether its own time was over."""
        if self._because != "deadline" or self._in_phase is None:
            return {}
        return {"in_phase": round(self._in_phase, 1), "own_deadline": self._is_own_deadline}

    def _status(self) -> Literal["crashed", "stopped", "timed-out", "not-run"]:
        if self._because is None:
            return "crashed"
        if self._because == "failure":
            return "stopped"
        return "timed-out" if self._because == "deadline" else "not-run"

    def _why(self) -> str:
        if self._because == "failure":
            return f"stopped in {self._where()}: another rank of its group had failed"
        if self._because == "limit":
            return f"stopped in {self._where()} at the time limit of the run"
        return f"no end of {self._where()} after {self.seconds:.0f} s"

    def _where(self) -> str:
        if self.phase == "enter":
            return f"collective {self.collective}"
        return {"alone": self.stage or "its own tests"}.get(self.phase, str(self.phase))


def _is_crash(message: Message) -> bool:
    """Whether a process died of a signal that nobody sends to end it."""
    return message.get("signal") not in (None, 0, TERMINATE)


def answered_well(message: Message) -> RankResult | None:
    """Read the result of a worker; None when it is none.

    What a worker says goes over the board: a number that is not finite would not.
    """
    try:
        measured: dict[str, Any] = message.get("measurements") or {}
        return RankResult(
            rank=0,
            status=msgspec.convert(message["status"], Literal["passed", "failed"]),
            phase=msgspec.convert(message.get("phase", "done"), Phase),
            collective=int(message.get("collective") or 0),
            kind=str(message.get("kind", ""))[:100],
            detail=str(message.get("detail", ""))[:1000],
            measurements={
                str(name)[:80]: float(value)
                for name, value in list(measured.items())[:100]
                if isinstance(value, (int, float))
            },
            data=msgspec.convert(message.get("data") or {}, dict[str, Any]),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
