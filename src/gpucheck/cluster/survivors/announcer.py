"""Task 0 tells the others early where they meet if it is lost, and the deputies who is there."""

from collections.abc import Mapping

from gpucheck.cluster.launchers.variables import is_host
from gpucheck.cluster.model import Roster
from gpucheck.cluster.spans import pack
from gpucheck.cluster.store import messages
from gpucheck.cluster.store.messages import (
    Deputies,
    Deputy,
    Registration,
    Roll,
    Seat,
)
from gpucheck.cluster.store.server import Store

DEPUTIES = 3
"""How many there are: one after another may be lost, too."""
_BY_NUMBER, _AMONG = 3, 256
"""The first tasks that listen, and the number from which on no task does, in case task 0 is lost.
"""
_PAUSE, _PAUSE_OF_TASK = 1.0, 5e-4
"""Seconds between two rolls, and how many more for each task: a roll has a seat for each."""
_MOST_SEATS = 25_000
"""As many as fit into a message."""


def may_be_deputy(task: int, local: int) -> bool:
    """Whether a task listens in case task 0 is lost: the first ones, and the first of each node."""
    return 0 < task < _AMONG and (local == 0 or task <= _BY_NUMBER)


class Announcer:
    """Says who takes over, as the tasks come."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._came: dict[int, Registration] = {}
        self._times = self._rolls = self._world_size = 0
        self._ranks = ""
        self._has_changed = False
        self._next = 0.0

    def welcome(self, said: Registration) -> None:
        """Note a task that has come. The first that can be a deputy is announced at once."""
        self._came[said.facts.task] = said
        self._has_changed = True
        first = self._came.get(0)
        if first is not None and not self._times and (deputies := choose(self._came)):
            self._announce(first, deputies)

    def all_came(self) -> None:
        """Announce the deputies for good: nobody is waited for any longer."""
        first, deputies = self._came.get(0), choose(self._came)
        if first is not None and deputies:
            self._announce(first, deputies)
            self.go_on(self._next)

    def assigned(self, roster: Roster) -> None:
        """Note the ranks of task 0."""
        self._ranks = pack(one.rank for one in roster.ranks if one.task == 0)
        self._world_size = len(roster.ranks)
        self._has_changed = True
        self._next = 0.0  # a task 0 that dies in the first step is named with its ranks

    def go_on(self, now: float) -> None:
        """Tell the deputies who is there, if that has changed."""
        if self._times and now >= self._next and self._has_changed:
            self._next = now + _PAUSE + _PAUSE_OF_TASK * len(self._came)
            self._has_changed = False
            self._store.put(messages.ROLL.key(self._rolls), self._roll())
            self._rolls += 1

    def _roll(self) -> Roll:
        numbers = {self._came[0].facts.host: 0}
        hosts = {
            task: numbers.setdefault(one.facts.host, len(numbers))
            for task, one in self._came.items()
        }
        seats = {task: Seat(hosts[task], one.mark) for task, one in self._came.items() if task}
        return Roll(
            tasks=len(hosts), hosts=len(numbers), beside=sum(not host for host in hosts.values()),
            ranks=self._ranks, world_size=self._world_size,
            seats=seats if len(seats) <= _MOST_SEATS else {},
        )  # fmt: skip

    def _announce(self, first: Registration, deputies: tuple[Deputy, ...]) -> None:
        told = Deputies(deputies=deputies, host=first.facts.host, process=first.process)
        self._store.put(messages.DEPUTIES.key(self._times), told)
        self._times += 1


def choose(came: Mapping[int, Registration]) -> tuple[Deputy, ...]:
    """Return the deputies among the tasks that have come.

    Those on other hosts than task 0 come first, each on a host of its own if possible, then the
    lowest.
    """
    first = came.get(0)
    used = {first.facts.host} if first is not None else set()
    able = [came[task] for task in sorted(came) if task and _is_able(came[task])]
    apart = []
    for one in able:
        if one.facts.host not in used:
            used.add(one.facts.host)
            apart.append(one)
    here = first.facts.host if first is not None else ""
    rest = sorted((one for one in able if one not in apart), key=lambda one: one.facts.host == here)
    return tuple(
        Deputy(task=one.facts.task, host=one.facts.address, port=one.deputy_port)
        for one in [*apart, *rest][:DEPUTIES]
    )


def _is_able(one: Registration) -> bool:
    """Whether a task has a port, and an address that can be one."""
    address = one.facts.address
    return bool(one.deputy_port) and (not address or is_host(address))
