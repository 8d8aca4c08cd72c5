"""Whether this task itself stood still: a signal, a debugger or a moved machine had stopped it."""

import time

from gpucheck.cluster.store.client import StoreClient

_PAUSE = 2.0
"""Seconds between two turns of the loop from which on this task itself stood still."""
_LONG = 10.0
"""Seconds from which on the others may have given it up; nobody does so earlier."""
_COMES_ROUND = 1.0
"""Seconds after a long standstill in which what happened meanwhile is read, and nothing judged."""


class Standstill:
    """Notices the time in which this task did not run.

    Args:
        store: its connection.
    """

    def __init__(self, store: StoreClient) -> None:
        self._store = store
        self._turned = time.monotonic()
        self._awake_at = 0.0
        self.was_left = False
        """Whether the connection was closed meanwhile: nobody can tell then by whom, and why."""

    def turn(self) -> None:
        """Note a turn of the loop. The store was not silent while this task stood still."""
        now = time.monotonic()
        pause, self._turned = now - self._turned, now
        if pause > _PAUSE:
            self._store.last_heard = min(now, self._store.last_heard + pause)
        if pause > _LONG:
            self._awake_at = now + _COMES_ROUND

    def comes_round(self) -> bool:
        """Return whether it went on only just now, and does not know yet what it has missed."""
        if time.monotonic() >= self._awake_at:
            return False
        self.was_left = self.was_left or bool(self._store.lost)
        return True
