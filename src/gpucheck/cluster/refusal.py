"""A task whose command line was refused tells the others, which would call it missing otherwise."""

import time

from gpucheck.cluster.door import Door
from gpucheck.cluster.store import messages
from gpucheck.cluster.store.client import StoreClient
from gpucheck.cluster.store.messages import Refusal, Verdict
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.wire import StoreError
from gpucheck.cluster.task.shutdown import TICK, leave
from gpucheck.facts.numbers import whole_number
from gpucheck.language import say

_PATIENCE = 15.0
"""Seconds in which the store is looked for, and in which task 0 waits for the others."""


def tell(door: Door, refusal: Refusal, end: float) -> Verdict | None:
    """Tell the others; return the verdict of the job, None if there is none.

    ``end``: that of the run, a time of ``time.monotonic()``.
    """
    try:
        store = door.open_store() if door.place.task == 0 else None
        leader = None
        if store is not None:
            leader = _Leader(store, refusal, door.place.tasks, end)
        try:
            client = door.connect(store, min(_PATIENCE, max(0.0, end - time.monotonic())))
            return _tell(door.place.task, refusal, end, client, leader)
        finally:
            if store is not None:
                store.close()
    except (StoreError, OSError):
        return None


def _tell(
    task: int, refusal: Refusal, end: float, client: StoreClient, leader: "_Leader | None"
) -> Verdict | None:
    box: list[Verdict] = []

    def then(text: bytes | None) -> None:
        found = messages.VERDICT.read(text) if text is not None else None
        if isinstance(found, Verdict):
            box.append(found)

    client.set(messages.REFUSALS.key(task), refusal)
    client.get(messages.VERDICT.name, max(0.0, end - time.monotonic()), then)
    while not box and not client.lost and time.monotonic() < end:
        client.pump()
        if leader is not None:
            leader.tick()
        time.sleep(TICK)
    leave(client, task, end, leader)
    client.close()
    return box[0] if box else None


class _Leader:
    """What task 0 does if it is refused itself: it waits for the others, and lets them go."""

    def __init__(self, store: Store, refusal: Refusal, tasks: int, end: float) -> None:
        self._store = store
        self._refusal = refusal
        self._tasks = tasks
        self._end = min(time.monotonic() + _PATIENCE, end)
        self._came: set[int] = set()
        self._refused: set[int] = set()
        self._gone: set[int] = set()
        self._is_judged = False

    def tick(self) -> None:
        """Take what was said; judge when all have come, or the time is over."""
        self._came |= self._said(messages.REGISTRATIONS.name)
        self._refused |= self._said(messages.REFUSALS.name)
        self._gone |= self._said(messages.LEAVING.name)
        are_all = len(self._came | self._refused) >= self._tasks
        if self._is_judged or not (are_all or time.monotonic() > self._end):
            return
        self._is_judged = True
        why = say(
            "task 0 on host {host} cannot take part: {why}",
            host=self._refusal.host,
            why=self._refusal.why,
        )
        self._store.put(
            messages.VERDICT.name,
            Verdict(
                exit=4, exit_class="misconfiguration", why=why, refused=why,
                all_refused=len(self._refused) >= self._tasks,
            ),
        )  # fmt: skip

    @property
    def all_have_left(self) -> bool:
        """Whether all who came have taken the verdict."""
        return self._gone >= self._came | self._refused

    def _said(self, folder: str) -> set[int]:
        numbers = map(whole_number, self._store.news(folder))
        return {n for n in numbers if n is not None and n < self._tasks}
