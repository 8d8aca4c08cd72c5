"""The ladder of signals that ends a process: SIGTERM, then SIGKILL, then giving up.

At SIGTERM a worker prints its stack. A process that SIGKILL does not end is stuck in a driver,
where no signal reaches it.
"""

import time
from collections.abc import Callable

from gpucheck.machine.supervised import KILL, TERMINATE

Send = Callable[[int], None]
"""Sends a signal to the process."""


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
