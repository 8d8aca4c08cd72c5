"""A program beside the supervisor whose output is an answer, of limited time and length."""

import time

from gpucheck.machine.supervised import Supervised


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
        self.status: int | None = None
        child.hang_up()

    @property
    def said(self) -> bytes | None:
        """Its answer so far; None if it is too long."""
        return self._said if len(self._said) <= self._longest else None

    def tick(self) -> bool:
        """Read on. True if it has ended, or its time is over."""
        self._child.read_now()
        self.status = self._child.status()
        self._said = (self._said + self._child.said())[: self._longest + 1]
        if self.status is None and time.monotonic() < self._end:
            return False
        if self.status is None:
            self._child.abandon()
        return True

    def close(self) -> None:
        """End it."""
        self._child.abandon()
