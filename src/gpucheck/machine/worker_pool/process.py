"""One worker: its deadline, and how and why it was ended."""

import time
from collections.abc import Callable
from typing import Literal

from gpucheck.machine.supervised import CONTINUE, KILL, TERMINATE
from gpucheck.machine.worker_pool.look import APART, Looks

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
