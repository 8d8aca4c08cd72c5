"""How a task leaves with the verdict: together with the others, and never late."""

import time
from typing import Protocol

from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.client import StoreClient
from gpucheck.cluster.store.task_messages import Dismissal, Leaving

TICK = 0.02
_LONG = 600.0
_TOGETHER = 5.0
"""How long the task that has the store waits for the others to leave with the verdict."""
_GOODBYE = 1.0


class Leader(Protocol):
    """What looks after the others in the task that has the store."""

    def tick(self) -> None:
        """Go on with what can be done now."""

    @property
    def all_have_left(self) -> bool:
        """Whether every task that lives has taken the verdict."""


def leave(store: StoreClient, task: int, end: float, leader: Leader | None = None) -> None:
    """Report that the verdict was taken and everything is written; leave with the others.

    A launcher may end the other tasks as soon as one leaves with a status that is not 0. So the
    task with the store, which has the most to write, says when all have taken the verdict. The
    others wait for that, but never beyond ``end``, a time of ``time.monotonic()``.
    """
    store.set(messages.LEAVING.key(task), Leaving())
    over: list[object] = []
    store.get(messages.DISMISSAL.name, _LONG, then=over.append)
    begun = time.monotonic()
    end = begun + _TOGETHER if leader is not None else min(begun + 2 * _TOGETHER, end)
    dismissed = False
    while not over and not store.lost:
        store.pump()
        if leader is not None and not dismissed:
            leader.tick()
            dismissed = leader.all_have_left or time.monotonic() > end
            if dismissed:
                store.set(messages.DISMISSAL.name, Dismissal())
                end = time.monotonic() + _GOODBYE
        elif time.monotonic() > end:
            return
        time.sleep(TICK)
