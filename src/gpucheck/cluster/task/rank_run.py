"""One rank in one step: how far its worker is, what was seen of it, and its result."""

import math
import re
import time
from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

import msgspec

from gpucheck.cluster.diagnose.process_state import ADDRESS_SPACE
from gpucheck.cluster.model import Count, Flight, Pace, RankResult, ResultFacts
from gpucheck.cluster.store.task_messages import StepOrders
from gpucheck.facts import builtins
from gpucheck.facts.preflight import Look, Phase, ProcessState
from gpucheck.language import plain, say
from gpucheck.machine.control_groups import refused_processes
from gpucheck.machine.supervised import TERMINATE
from gpucheck.machine.worker_pool.look import Looks, ProcessLook
from gpucheck.machine.worker_pool.process import (
    Message,
    StopReason,
    WorkerProcess,
    count_in,
    worker_exit,
)
from gpucheck.selftests.outcome import sentence_in

_REFUSED = re.compile(
    r"\bMemoryError\b|Cannot allocate memory|std::bad_alloc|can't allocate memory"
    r"|failed to map segment from shared object|Memory allocation still failed"
)
"""What Python, the loader, C++, PyTorch and OpenBLAS say where memory is refused."""
_STATES: dict[str, ProcessState] = {
    "T": "stopped", "t": "traced", "D": "uninterruptible", "R": "running", "S": "sleeping",
    "I": "sleeping",
}  # fmt: skip
HELD: tuple[ProcessState, ...] = ("stopped", "traced", "frozen", "uninterruptible")
"""States that a process which works is in for a moment only."""
STOPPED: tuple[ProcessState, ...] = HELD[:3]
"""Those in which somebody has put it."""
_FREEZERS = ("do_freezer_trap", "__refrigerator")
"""Where a process sleeps that a control group has frozen: version 2, and version 1."""
_BUSY = 0.1
"""Seconds of processor time between two looks from which on a process counts as running."""
_CALL = re.compile(r"[A-Za-z0-9_.$]{1,64}")
_KERNEL = re.compile(r"^\[<[^>]*>\] ([A-Za-z0-9_.$]{1,64})", re.MULTILINE)
"""Lines of ``/proc/PID/stack``: ``[<0>] name+0x12/0x34``."""
_FRAME = re.compile(r'^  File "([^"\n]{1,4096})", line (\d{1,9}) in ([^\n]{1,200})', re.MULTILINE)
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x", re.MULTILINE)
_CURRENT = "Current thread 0x"
"""What Python's faulthandler prints: frames, and where the stack of each thread begins."""
_ERROR = re.compile(
    r"^(?:[A-Za-z_][\w.]{0,100}(?:Error|Exception|Interrupt|Exit)|terminate called)\b[^\n]{0,300}",
    re.MULTILINE,
)
"""The last line of a traceback, and what C++ prints of an exception that nobody caught."""
_FRAMES, _OWN_FRAMES, _CALLS = 8, 6, 8
"""Chosen: the innermost frames say where a rank waits, gpucheck's own what for; more makes the
message to task 0 large."""
_OWN = "worker/"
"""Where the frames of gpucheck's own worker are: they tell what it was about to do."""
_LONGEST_LINE = 120
"""Characters of a frame. Chosen: the file, the line and the function, without a long path."""
_LONGEST_ERROR = 300
"""Characters. Chosen: the line of an exception; what follows is printed by the worker itself."""
_LAST_CALL, _MOST_FILES = 100_000, 2**31
"""Bounds of the number of a system call and of a count of files: what is larger is no such
number."""
_VICTIM_SECONDS = 2.0
"""How long a rank may still report what it saw when another one of its group has failed."""
_LEAVE = 15.0
"""Seconds for a worker that has its answer to end."""
_WAIT_FOR_RENDEZVOUS = 5.0
"""Seconds added for the other ranks, whose first worker opens the group's store."""
_LONGEST = 1000
"""Characters of an error. Chosen: the whole sentence of a framework, without its log."""
_MOST_DATA = 64 * 1024
"""Bytes of the data of one result: several results go into one message to task 0."""
_MOST_CONNECTIONS = 64
"""Ways to other hosts of which is told what was lost."""
_PHASES: tuple[Phase, ...] = get_args(Phase)
Deadlines = Mapping[Phase, float]
"""Seconds that a worker may stay in a phase; in one that is not there as long as in ``start``."""


def explained(kind: str, detail: str, printed: Iterable[object] = ()) -> tuple[str, str]:
    """Return kind and detail of a failure, with the limit if that explains it.

    Without a limit the same words mean that the memory of the host ran out.
    """
    import resource  # noqa: PLC0415  # not on Windows, where programs import this, too

    soft, _hard = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return kind, detail
    if not any(isinstance(text, str) and _REFUSED.search(text) for text in (detail, *printed)):
        return kind, detail
    return ADDRESS_SPACE, say(
        "the limit on its address space (ulimit -v) is {size} MiB, and memory was refused: {why}",
        size=soft >> 20,
        why=detail,
    )


def seen(looks: Looks | None, printed: str, *, killed: bool) -> Look | None:
    """Return what was seen of a worker, or None.

    Args:
        looks: at the worker and at the process that forked it.
        printed: the end of what it printed, with the stack of Python that it left.
        killed: whether only SIGKILL ended it.
    """
    last = looks.worker[1] if looks is not None else None
    python, error = stack(printed), last_error(printed)
    if looks is None or not (last or looks.zygote[1] or python or error):
        return None
    return Look(
        state=_state(*looks.worker),
        zygote=_state(*looks.zygote),
        cpu_seconds=looks.cpu,
        wait_seconds=looks.waited,
        wchan=_call(last.wchan) if last is not None else "",
        syscall=_number(last.syscall) if last is not None else None,
        kernel=tuple(_KERNEL.findall(last.kernel)[:_CALLS]) if last is not None else (),
        files=_bounded(last.files) if last is not None else None,
        file_limit=_bounded(last.file_limit) if last is not None else None,
        python=python,
        killed=killed,
        error=error,
    )


def zygote_is_held(look: Look | None) -> bool:
    """Whether somebody had put the process that forks the workers into a state that holds it."""
    return look is not None and look.zygote in STOPPED


def stack(printed: str) -> tuple[str, ...]:
    """Return the stack of the main thread that faulthandler printed, the innermost call first.

    Of a deep stack the innermost calls are kept, and those of gpucheck's own worker further out. Of
    a path its last two parts are kept: they name the module, and not the user's home.
    """
    begin = printed.rfind(_CURRENT)
    if begin < 0:
        return ()
    after = _THREAD.search(printed, begin + len(_CURRENT))
    text = printed[begin : after.start() if after is not None else len(printed)]
    frames = [_frame(*found) for found in _FRAME.findall(text)]
    own = [frame for frame in frames[_FRAMES:] if frame.startswith(_OWN)]
    return (*frames[:_FRAMES], *own[:_OWN_FRAMES])


def _frame(path: str, line: str, function: str) -> str:
    name = "/".join(path.replace("\\", "/").split("/")[-2:])
    return f"{name}:{line} {function}"[-_LONGEST_LINE:]


def last_error(printed: str) -> str:
    """Return the last exception that a worker printed, or ""."""
    found = _ERROR.findall(printed)
    return found[-1].strip()[:_LONGEST_ERROR] if found else ""


def _state(first: ProcessLook | None, last: ProcessLook | None) -> ProcessState | None:
    """Return the state of a process; one that holds it counts only if it was so both times."""
    if last is None:
        return None
    state = _of(last)
    if state in HELD:
        return state if first is not None and _of(first) == state else "sleeping"
    if first is None:
        return state
    is_busy = last.cpu - first.cpu >= _BUSY or _of(first) == state == "running"
    return "running" if is_busy else "sleeping"


def _of(look: ProcessLook) -> ProcessState | None:
    if any(name in look.wchan for name in _FREEZERS):
        return "frozen"
    return _STATES.get(look.state)


def _bounded(count: int | None) -> int | None:
    return None if count is None else min(count, _MOST_FILES)


def _call(name: str) -> str:
    return name if name != "0" and _CALL.fullmatch(name) else ""


def _number(text: str) -> int | None:
    """Return the number of the system call in ``/proc/PID/syscall``, or None if there is none."""
    first = text.split(" ", 1)[0]
    try:
        number = int(first)
    except ValueError:
        return None
    return number if -1 <= number <= _LAST_CALL else None


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
            texts = (message.get("printed"), *result.data.values())
            kind, detail = explained(result.kind, result.detail, texts)
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
        look = seen(self._process.looks, printed, killed=self._process.is_killed)
        if look is None:
            return result
        if look.state in STOPPED and self._process.stopped_for == "deadline":
            return msgspec.structs.replace(result, status="timed-out", look=look, phase=self.phase)
        if look.zygote in STOPPED:
            return msgspec.structs.replace(
                result, status="timed-out", kind="zygote-stopped", look=look, phase=self.phase,
                collective=self.collective,
            )  # fmt: skip
        is_told = result.status == "timed-out" or look.state in HELD
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
        worst = sorted(seen, key=lambda loss: -loss.lost)[:_MOST_CONNECTIONS]
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
    sentence = sentence_in(message, "detail")
    return sentence if len(sentence) <= _LONGEST else sentence[:_LONGEST]


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


def _checked(data_of_worker: object) -> dict[str, Any]:
    """Return the data of a result, as task 0 will take them.

    Raises:
        ValueError: they are malformed.
    """
    data = msgspec.convert(data_of_worker, dict[str, Any])
    msgspec.convert(data, ResultFacts)
    size = len(msgspec.json.encode(data, enc_hook=plain))
    return data if size <= _MOST_DATA else {"left_out": f"{size} bytes, too many for a message"}
