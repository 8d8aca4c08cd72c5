"""Task 0 tells the others early where they meet if it is lost, and the deputies who is there."""

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from gpucheck.cluster.model import Roster
from gpucheck.cluster.spans import pack
from gpucheck.cluster.store import messages
from gpucheck.cluster.store.messages import Deputies, Deputy, Message, Registration, Roll

DEPUTIES = 3
"""How many there are: one after another may be lost, too."""
_BY_NUMBER, _AMONG = 3, 256
"""The first tasks that listen, and the number from which on no task does, in case task 0 is lost.
"""
_PAUSE = 1.0
"""Seconds between two rolls."""


class Board(Protocol):
    """What it writes to."""

    def put(self, key: str, value: Message) -> None:
        """Put a message under a key."""


def may_be_deputy(task: int, local: int) -> bool:
    """Whether a task listens in case task 0 is lost: the first ones, and the first of each node."""
    return 0 < task < _AMONG and (local == 0 or task <= _BY_NUMBER)


class Announcer:
    """Says who takes over, as the tasks come."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._came: dict[int, Registration] = {}
        self._hosts: Counter[str] = Counter()
        self._times = self._rolls = 0
        self._roll = Roll(tasks=0, hosts=0, beside=0)
        self._told = self._roll
        self._next = 0.0

    def welcome(self, said: Registration) -> None:
        """Note a task that has come. The first that can be a deputy is announced at once."""
        self._came[said.facts.task] = said
        self._hosts[said.facts.host] += 1
        first = self._came.get(0)
        if first is None:
            return
        self._roll = Roll(
            tasks=len(self._came), hosts=len(self._hosts), beside=self._hosts[first.facts.host]
        )
        if not self._times and (deputies := choose(self._came)):
            self._announce(first, deputies)

    def all_came(self) -> None:
        """Announce the deputies for good: nobody is waited for any longer."""
        first, deputies = self._came.get(0), choose(self._came)
        if first is not None and deputies:
            self._announce(first, deputies)
            self.go_on(self._next)

    def assigned(self, roster: Roster) -> None:
        """Note the ranks of task 0."""
        ranks = pack(one.rank for one in roster.ranks if one.task == 0)
        old = self._roll
        self._roll = Roll(
            tasks=old.tasks, hosts=old.hosts, beside=old.beside, ranks=ranks,
            world_size=len(roster.ranks),
        )  # fmt: skip

    def go_on(self, now: float) -> None:
        """Tell the deputies who is there, if that has changed."""
        if self._times and now >= self._next and self._roll != self._told:
            self._next = now + _PAUSE
            self._told = self._roll
            self._board.put(messages.ROLL.key(self._rolls), self._roll)
            self._rolls += 1

    def _announce(self, first: Registration, deputies: tuple[Deputy, ...]) -> None:
        told = Deputies(deputies=deputies, host=first.facts.host, process=first.process)
        self._board.put(messages.DEPUTIES.key(self._times), told)
        self._times += 1


def choose(came: Mapping[int, Registration]) -> tuple[Deputy, ...]:
    """Return the deputies among the tasks that have come.

    Those on other hosts than task 0 come first, each on a host of its own if possible, then the
    lowest.
    """
    first = came.get(0)
    used = {first.facts.host} if first is not None else set()
    able = [came[task] for task in sorted(came) if task and came[task].deputy_port]
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
