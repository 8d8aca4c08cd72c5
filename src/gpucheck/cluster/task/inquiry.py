"""A program beside the supervisor whose output is an answer, of limited time and length."""

import time

from gpucheck.machine.supervised import TERMINATE, Supervised

_FAREWELL = 1.0
"""Seconds for a program that is told to end, so that it can end what it has started."""
_TICK = 0.02


class Inquiry:
    """A program that was started for its answer.

    Args:
        child: the program; it gets no input.
        end: when it is given up, a time of ``time.monotonic()``.
        longest: the bytes that an answer may have.

    Attributes:
        status: its exit status; None while it runs, and if it did not end in its time.
    """

    def __init__(self, child: Supervised, end: float, longest: int) -> None:
        self._child = child
        self._end = end
        self._longest = longest
        self._said = b""
        self._late = False
        self.status: int | None = None
        child.hang_up()

    @property
    def said(self) -> bytes | None:
        """Its answer so far; None if it is too long."""
        return self._said if len(self._said) <= self._longest else None

    def tick(self) -> bool:
        """Read on. True if it has ended, or its time is over."""
        self._child.read_now()
        status = self._child.status()
        self._said = (self._said + self._child.said())[: self._longest + 1]
        now = time.monotonic()
        if status is None and now >= self._end and not self._late:
            self._child.signal(TERMINATE)
            self._late, self._end = True, now + _FAREWELL
        if status is None and now < self._end:
            return False
        if status is None:
            self._child.abandon()
        self.status = None if self._late else status
        return True

    def close(self) -> None:
        """End it."""
        self._end = min(self._end, time.monotonic())
        while not self.tick():
            time.sleep(_TICK)
