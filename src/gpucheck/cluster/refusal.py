"""A task whose command line was refused tells the others, which would call it missing otherwise."""

import time

import msgspec

from gpucheck.cluster.door import Door
from gpucheck.cluster.launchers.entrance import TaskPlace
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.client import StoreClient
from gpucheck.cluster.store.server import Store
from gpucheck.cluster.store.task_messages import Refusal, Verdict
from gpucheck.cluster.store.wire import StoreError
from gpucheck.cluster.task.shutdown import TICK, leave
from gpucheck.facts.numbers import whole_number
from gpucheck.language import say

_PATIENCE = 15.0
"""Seconds in which the store is looked for, and in which task 0 waits for the others."""


class Refused(msgspec.Struct, frozen=True):
    """A task that cannot take part, and why, in a sentence."""

    entrance: TaskPlace
    host: str
    why: str
    end: float
    """The end of its run, a time of ``time.monotonic()``."""


def tell(one: Refused, door: Door) -> Verdict | None:
    """Tell the others; return the verdict of the job, None if there is none."""
    try:
        store = door.open_store() if one.entrance.task == 0 else None
        try:
            client = door.connect(store, min(_PATIENCE, max(0.0, one.end - time.monotonic())))
            return _tell(one, client, _Leader(one, store) if store is not None else None)
        finally:
            if store is not None:
                store.close()
    except (StoreError, OSError):
        return None


def _tell(one: Refused, client: StoreClient, leader: "_Leader | None") -> Verdict | None:
    box: list[Verdict] = []

    def then(text: bytes | None) -> None:
        found = messages.VERDICT.read(text) if text is not None else None
        if isinstance(found, Verdict):
            box.append(found)

    said = Refusal(host=one.host, why=one.why)
    client.set(messages.REFUSALS.key(one.entrance.task), said)
    client.get(messages.VERDICT.name, max(0.0, one.end - time.monotonic()), then)
    while not box and not client.lost and time.monotonic() < one.end:
        client.pump()
        if leader is not None:
            leader.tick()
        time.sleep(TICK)
    leave(client, one.entrance.task, one.end, leader)
    client.close()
    return box[0] if box else None


class _Leader:
    """What task 0 does if it is refused itself: it waits for the others, and lets them go."""

    def __init__(self, one: Refused, store: Store) -> None:
        self._one = one
        self._store = store
        self._end = min(time.monotonic() + _PATIENCE, one.end)
        self._came: set[int] = set()
        self._refused: set[int] = set()
        self._gone: set[int] = set()
        self._is_judged = False

    def tick(self) -> None:
        """Take what was said; judge when all have come, or the time is over."""
        self._came |= self._said(messages.REGISTRATIONS.name)
        self._refused |= self._said(messages.REFUSALS.name)
        self._gone |= self._said(messages.LEAVING.name)
        tasks = self._one.entrance.tasks
        are_all = len(self._came | self._refused) >= tasks
        if self._is_judged or not (are_all or time.monotonic() > self._end):
            return
        self._is_judged = True
        why = say(
            "task 0 on host {host} cannot take part: {why}", host=self._one.host, why=self._one.why
        )
        self._store.put(
            messages.VERDICT.name,
            Verdict(
                exit=4, exit_class="misconfiguration", why=why, refused=why,
                all_refused=len(self._refused) >= tasks,
            ),
        )  # fmt: skip

    @property
    def all_have_left(self) -> bool:
        """Whether all who came have taken the verdict."""
        return self._gone >= self._came | self._refused

    def _said(self, folder: str) -> set[int]:
        numbers = map(whole_number, self._store.news(folder))
        return {n for n in numbers if n is not None and n < self._one.entrance.tasks}
