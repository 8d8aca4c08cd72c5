"""One worker: how long it may take, and how and why it was ended."""

import time
from typing import Literal

from gpucheck.machine.worker_pool.ladder import Ladder, Send

StopReason = Literal["deadline", "peer-failed", "run-limit"]
"""Why a worker is ended: it, or its group, took too long; another process that it works with has
failed; the whole run is out of time."""


class WorkerProcess:
    """A worker that runs, has run, or could not be started.

    Args:
        key: its name in the pool; "" is the zygote.
        seconds: how long it may take from now on.
        end: when the whole run must be over, a time of ``time.monotonic()``.
        grace: seconds from SIGTERM to SIGKILL, and from there to giving up.

    Attributes:
        problem: why it could not be started; "" when it was.
        pid: the process, 0 as long as it is unknown.
        allowed: the seconds that it was given last.
        stopped_for: why it was ended, or is being ended; None when it is not.
        ran_over: whether it was ended because its own time was over.
        waited: how long it had been where it was when the first signal was sent.
        is_gone: whether it has ended, or was given up.
        is_unkillable: whether it was given up: SIGKILL did not end it.
    """

    def __init__(self, key: str, seconds: float, end: float, grace: float) -> None:
        self.key = key
        self.problem = ""
        self.pid = 0
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
        """How long it has been in its current stage."""
        return time.monotonic() - self._since

    @property
    def seconds_left(self) -> float:
        """How much time it has left."""
        return min(self._deadline, self._end) - time.monotonic()

    @property
    def is_signalled(self) -> bool:
        """Whether the first signal has been sent."""
        return self._ladder.is_begun

    def allow(self, seconds: float) -> None:
        """Give it this many seconds from now; one that is being ended gets no more time."""
        if self._ladder.is_begun:
            return
        self._since = time.monotonic()
        if self.stopped_for is None:
            self.allowed = seconds
            self._deadline = self._since + seconds

    def stop(self, reason: StopReason, within: float = 0.0) -> None:
        """End it, at the latest after this many seconds."""
        if self.stopped_for is None and not self.is_gone:
            self.stopped_for = reason
            self._deadline = min(self._deadline, time.monotonic() + within)

    def push(self, send: Send) -> bool:
        """Take the next step to end it if its time is over; True if every step was in vain."""
        if self.is_gone:
            return False
        if not self._ladder.is_begun:
            now = time.monotonic()
            if now < min(self._deadline, self._end):
                return False
            if self.stopped_for is None:
                self.stopped_for = "run-limit" if now >= self._end else "deadline"
                self.ran_over = self.stopped_for == "deadline"
            self.waited = self.seconds
        return self._ladder.climb(send)
