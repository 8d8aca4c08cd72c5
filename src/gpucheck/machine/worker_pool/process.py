"""One worker: its messages, its deadline, how and why it was ended, what its end means."""

import json
import re
import time
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from gpucheck.facts.numbers import refuse_long_numbers
from gpucheck.language import say
from gpucheck.machine.process_end import exit_status, signal_name
from gpucheck.machine.supervised import CONTINUE, KILL, TERMINATE
from gpucheck.machine.worker_pool.look import APART, Looks

# The messages of workers: JSON between random marks on stdout (``worker/channel.py``).
#
# Anything else that a broken environment prints on stdout is skipped.

Message = dict[str, Any]
_LARGEST = 4 * 1024 * 1024
"""The most bytes between two marks; more is not a message of a worker."""


_MOST = 2**31  # chosen: above every number of a rank or code that is read here
_HALF = re.compile("[\ud800-\udfff]")
"""Half of a UTF-16 pair: Python's form of a byte in a file name that is not UTF-8."""


def count_in(message: Message, field: str) -> int:
    """Return a number of things, an identifier or a port; 0 for what is none of these.

    Any code in the target interpreter may have written the message.
    """
    value = message.get(field)
    return value if type(value) is int and 0 <= value < _MOST else 0


class MessageStream:
    """Extracts messages from the output of a program."""

    def __init__(self, mark: str) -> None:
        self._mark = mark.encode()
        self._rest = b""

    def messages(self, data: bytes) -> list[Message]:
        """Return the messages that have become complete."""
        parts = (self._rest + data).split(self._mark)
        # Noise and messages alternate; an even number of parts ends with half a message.
        half = len(parts) % 2 == 0
        rest = parts.pop()
        self._rest = (self._mark if half else b"") + rest[-_LARGEST:]
        return [read_message(part) for part in parts[1::2]]


def read_message(text: bytes) -> Message:
    """Parse one message; any other text becomes the message ``bad-answer``."""
    try:
        refuse_long_numbers(text)
        message = json.loads(text.decode("utf-8", "replace"))
        if b"\\ud" in text.lower():
            message = _encodable(message)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        return {"event": "bad-answer", "text": text[:200].decode("utf-8", "replace")}
    return message


def _encodable(message: Any) -> Any:  # noqa: ANN401  # JSON-like data
    """Return the message without halves of UTF-16 pairs, which no file or connection takes."""
    return json.loads(_HALF.sub("\ufffd", json.dumps(message, ensure_ascii=False)))


# What the end of a worker's process means, and which part of its output to keep.

_PRINTED, _BEFORE = 3000, 600
"""Characters of the last output, and of what came before a stack: the error that led to it."""
_KILLED = 9  # SIGKILL, which the kernel sends where memory runs out
# NCCL has no other mark for its own errors; the rest of a line is its sentence.
_NCCL_WARN = re.compile(r"NCCL WARN ([^\n]{1,300})")
_STACK = "Current thread"
_PEER_LOST = (
    "Watchdog caught collective operation timeout",
    "remote process exited",
    "NCCL communicator was aborted",
    "Connection closed by remote peer",
    "Connection closed by peer",
    "Connection reset by peer",
)
"""Messages of NCCL, gloo and torch's watchdog if another rank is gone or does not answer."""
_OWN_FAULT = ("CUDA error", "Cuda failure", "CUDA out of memory")
"""Messages with which the watchdog ends a process because of its own GPU."""


class WorkerExit(msgspec.Struct, frozen=True, kw_only=True):
    """How a process ended before it had finished its work.

    ``kind`` is ``timed-out``, ``signal``, ``exit-status`` or ``no-answer``.
    """

    status: Literal["timed-out", "crashed"]
    kind: str
    detail: str
    data: dict[str, Any]


def worker_exit(message: Message, stage: str, *, killed: str = "") -> WorkerExit:
    """Return the meaning of the message ``ended``.

    Args:
        message: the message of the process, or of the zygote about the process.
        stage: its next dangerous step; "" if unknown.
        killed: why gpucheck ended it; "" if it ended by itself.
    """
    printed = str(message.get("printed", ""))
    data = last_words(printed)
    if killed:
        return WorkerExit(status="timed-out", kind="timed-out", detail=killed, data=data)
    number, status = message.get("signal"), message.get("status")
    if number:
        name = signal_name(number)
        detail = _killed_by(name, stage)
        if number == _KILLED:
            detail = say(
                "{killed} (the kernel does this when the memory of the host runs out)",
                killed=detail,
            )
        return _crashed("signal", detail, {**data, "signal": name})
    if status:
        last = next((line for line in reversed(printed.splitlines()) if line.strip()), "")
        detail = _ended_with(status, stage)
        if last:
            detail = say("{source}: {why}", source=detail, why=last.strip()[:300])
        return _crashed("exit-status", detail, {**data, "exit_status": status})
    if stage:
        detail = say("its process ended without an answer in: {stage}", stage=stage)
        return _crashed("no-answer", detail, data)
    return _crashed("no-answer", say("its process ended without an answer"), data)


def _killed_by(name: str, stage: str) -> str:
    if stage:
        return say("killed by {signal} in: {stage}", signal=name, stage=stage)
    return say("killed by {signal}", signal=name)


def _ended_with(status: int, stage: str) -> str:
    shown = exit_status(status)
    if stage:
        return say(
            "its process ended with exit status {status} in: {stage}", status=shown, stage=stage
        )
    return say("its process ended with exit status {status}", status=shown)


def last_words(printed: str) -> dict[str, Any]:
    """Return the useful output of a process: NCCL's warnings and the last lines."""
    data: dict[str, Any] = {}
    if warnings := _NCCL_WARN.findall(printed):
        data["nccl_warnings"] = warnings[-5:]
    if lost := _lost_peer(printed):
        data["lost_peer"] = lost
    if printed.strip():
        # A stack that was dumped at the end is read from its top: the innermost call comes first.
        at = printed.rfind(_STACK)
        data["printed"] = printed[at : at + _PRINTED] if at >= 0 else printed[-_PRINTED:]
        if at >= 0 and (before := printed[:at].strip()):
            data["before"] = before[-_BEFORE:]
    return data


def _crashed(kind: str, detail: str, data: dict[str, Any]) -> WorkerExit:
    return WorkerExit(status="crashed", kind=kind, detail=detail, data=data)


def _lost_peer(printed: str) -> str:
    """Return the line in which a process says that another rank is gone; "" if there is none."""
    if any(words in printed for words in _OWN_FAULT):
        return ""
    lines = printed.splitlines()
    found = (line.strip() for line in lines if any(words in line for words in _PEER_LOST))
    return next(found, "")[:300]


# One worker: its deadline, and how and why it was ended.

StopReason = Literal["deadline", "peer-failed", "run-limit"]
"""Why a worker is ended: it, or its group, took too long; another process that it works with has
failed; the whole run is out of time."""

STOPPED = "T"
"""The letter of a process that a signal has stopped."""
_LATE = 0.25
"""The share of its time after which a worker is late. Healthy collectives take a thousandth, and of
those that hang one rank may be ended, and close its connections, long before the others."""

Send = Callable[[int], None]
"""Sends a signal to the process."""


class WorkerProcess:
    """A worker that runs, has run, or could not be started.

    Args:
        key: its name in the pool; "" is the zygote.
        seconds: the time it may take from now on.
        end: when the whole run must be over, a time of ``time.monotonic()``.
        grace: seconds from SIGTERM to SIGKILL, and from there to giving up.
        looks: whether to look at it twice before it is ended (``look``).

    Attributes:
        problem: why it could not be started; "" if it was.
        pid: its process id, 0 while it is unknown.
        zygote_pid: the id of the process that forked it, 0 if none did.
        looks: the looks at it before it was ended; None if they were not requested.
        allowed: the seconds that it was given last.
        stopped_for: why it was ended or is being ended; None if it is not.
        ran_over: whether it was ended because its own time was over.
        waited: for how many seconds it had been in its stage when the first signal was sent.
        is_gone: whether it has ended, or was given up.
        is_unkillable: whether it was given up: SIGKILL did not end it.
    """

    def __init__(
        self, key: str, seconds: float, end: float, grace: float, *, looks: bool = False
    ) -> None:
        self.key = key
        self.problem = ""
        self.pid = 0
        self.zygote_pid = 0
        self.looks = Looks() if looks else None
        self.stopped_for: StopReason | None = None
        self.ran_over = False
        self.waited: float | None = None
        self.is_gone = False
        self.is_unkillable = False
        self._end = end
        self._ladder = Ladder(grace)
        self.allow(seconds)

    @property
    def seconds(self) -> float:
        """The seconds that it has spent in its current stage."""
        return time.monotonic() - self._since

    @property
    def seconds_left(self) -> float:
        """The seconds until its deadline."""
        return min(self._deadline, self._end) - time.monotonic()

    @property
    def is_signalled(self) -> bool:
        """Whether the first signal has been sent."""
        return self._ladder.is_begun

    @property
    def is_killed(self) -> bool:
        """Whether it had to be killed because it did not end at the first signal."""
        return self._ladder.is_kill_sent

    def allow(self, seconds: float) -> None:
        """Give it this many seconds from now; one that is being ended gets no more time."""
        if self._ladder.is_begun:
            return
        self._since = time.monotonic()
        if self.stopped_for is None:
            self.allowed = seconds
            self._deadline = self._since + seconds
            if self.looks is not None:
                self.looks.restart(self.pid)

    def stop(self, reason: StopReason, within: float = 0.0) -> None:
        """End it, at the latest after this many seconds."""
        if self.stopped_for is None and not self.is_gone:
            self.stopped_for = reason
            self._deadline = min(self._deadline, time.monotonic() + within)

    def push(self, send: Send) -> bool:
        """If its time is over, take the next step to end it; True if every step has failed."""
        if self.is_gone:
            return False
        if not self._ladder.is_begun:
            now = time.monotonic()
            due = min(self._deadline, self._end)
            if not self._has_looked(now, due):
                return False
            if self.stopped_for is None:
                self.stopped_for = "run-limit" if now >= self._end else "deadline"
                self.ran_over = self.stopped_for == "deadline"
            self.waited = self.seconds
            return self._ladder.climb(lambda number: self._send_first(send, number))
        return self._ladder.climb(send)

    def _has_looked(self, now: float, due: float) -> bool:
        """Look at it twice, a second before its deadline and at it; True once it may be ended.

        Its connections are looked at before, when a quarter of its time is over.
        """
        looks = self.looks
        if looks is None:
            return now >= due
        if not looks.has_counted and now >= self._since + (due - self._since) * _LATE:
            looks.count(self.pid)
        if not looks.is_begun and now >= due - APART:
            looks.begin(self.pid, self.zygote_pid)
        if now < due or not looks.is_due:
            return False
        looks.finish(self.pid, self.zygote_pid)
        return True

    def _send_first(self, send: Send, number: int) -> None:
        """Send the first signal; a stopped process is continued so that it prints its stack.

        It runs no further, because the signal is pending.
        """
        send(number)
        last = self.looks.worker[1] if self.looks is not None else None
        if last is not None and last.state == STOPPED:
            send(CONTINUE)


# At SIGTERM a worker prints its stack. A process that SIGKILL does not end is stuck in a driver,
# where no signal reaches it.
class Ladder:
    """Ends one process.

    Args:
        grace: seconds between one step and the next.
    """

    def __init__(self, grace: float) -> None:
        self._grace = grace
        self._sent = 0
        self._next_step = 0.0

    @property
    def is_begun(self) -> bool:
        """Whether a signal has been sent."""
        return self._sent != 0

    @property
    def is_kill_sent(self) -> bool:
        """Whether the first signal was not enough."""
        return self._sent == KILL

    def climb(self, send: Send) -> bool:
        """Take the next step if it is due; True if every step was in vain."""
        now = time.monotonic()
        if self._sent and now < self._next_step:
            return False
        if not self._sent:
            self._sent = TERMINATE
        elif self._sent != KILL:
            self._sent = KILL
        else:
            return True
        send(self._sent)
        self._next_step = now + self._grace
        return False
