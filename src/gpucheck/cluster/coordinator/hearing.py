"""Before a silent task is called dead, others are asked what they see of it.

A task that task 0 does not hear may be dead. The link between the two may be cut as well, or half
of the network, or task 0 itself may be cut off. Only others can tell these apart.
"""

from collections.abc import Iterable, Mapping

from gpucheck.cluster.launchers.variables import is_host
from gpucheck.cluster.store import messages
from gpucheck.cluster.store.messages import Place, Question, Registration, Seen, Witnessed
from gpucheck.cluster.store.server import Store

_WITNESSES = 8
"""How many hosts are asked about a silent one: with more, one that errs changes nothing."""
_MOST = 64
"""Places in one question; whoever is not asked about is not called dead."""
_PATIENCE = 8.0
"""Seconds for the answers: a look takes half as long, and hosts may be busy."""


class Hearing:
    """The questions, and what was answered.

    Args:
        store: where the questions are put.

    Attributes:
        seen: what was seen of each task that was asked about, by the witnesses.
    """

    def __init__(self, store: Store) -> None:
        self.seen: dict[int, dict[int, Seen]] = {}
        self._store = store
        self._asked: dict[int, set[int]] = {}
        self._numbers: dict[int, int] = {}
        self._until = 0.0

    def about_silent(
        self, silent: Iterable[int], came: Mapping[int, Registration], heard: set[int], now: float
    ) -> None:
        """Ask about tasks that have come and fallen silent.

        Where other tasks of their host are heard, the lowest of these sees their processes.
        Otherwise hosts are asked about a task that listens, if there is one.
        """
        lowest = _lowest(came, heard)
        places: dict[int, list[Place]] = {}
        whole: dict[str, Place] = {}
        for task in sorted(silent):
            said = came[task]
            place = Place(
                task=task, host=_address(said), port=said.deputy_port, process=said.process
            )
            host = said.facts.host
            if host in lowest:
                places.setdefault(lowest[host], []).append(place)
            elif host not in whole or (place.port and not whole[host].port):
                whole[host] = place
        for witness in _spread(lowest):
            places.setdefault(witness, []).extend(whole.values())
        self._ask(places, now)

    def about_absent(
        self, hosts: Mapping[int, str], came: Mapping[int, Registration], now: float
    ) -> None:
        """Ask about tasks that have not come, by the names that the launcher has for their hosts.

        Nobody is known to listen there. But it shows whether the hosts can be reached at all.
        """
        lowest = _lowest(came, set(came))
        first: dict[str, Place] = {}
        for task, host in sorted(hosts.items()):
            if host not in lowest and is_host(host):
                first.setdefault(host, Place(task=task, host=host))
        self._ask({witness: list(first.values()) for witness in _spread(lowest)}, now)

    def take(self, witness: int, said: Witnessed) -> None:
        """Note what a witness says about those for whom it was asked."""
        for task in self._asked.get(witness, set()) & said.seen.keys():
            self.seen.setdefault(task, {})[witness] = said.seen[task]

    def is_over(self, now: float, heard: set[int]) -> bool:
        """Whether all who can still answer have done so, or their time is over."""
        open_ones = (
            task
            for witness, tasks in self._asked.items()
            if witness in heard
            for task in tasks
            if witness not in self.seen.get(task, {})
        )
        return now > self._until or not any(True for _ in open_ones)

    def _ask(self, places: Mapping[int, list[Place]], now: float) -> None:
        for witness, all_of_them in places.items():
            asked = self._asked.setdefault(witness, set())
            new = [one for one in all_of_them if one.task not in asked][:_MOST]
            if not new:
                continue
            number = self._numbers.get(witness, 0)
            self._numbers[witness] = number + 1
            asked.update(one.task for one in new)
            self._store.put(messages.QUESTIONS.key(witness, number), Question(places=tuple(new)))
            self._until = now + _PATIENCE


def _lowest(came: Mapping[int, Registration], heard: set[int]) -> dict[str, int]:
    """Return the lowest task that is heard on each host, the host of task 0 first."""
    found: dict[str, int] = {}
    for task in sorted(heard & came.keys()):
        found.setdefault(came[task].facts.host, task)
    return found


def _spread(lowest: Mapping[str, int]) -> list[int]:
    """Return some of the witnesses, from all parts of the job; task 0 is always among them."""
    every = list(lowest.values())
    count = min(len(every), _WITNESSES)
    return [every[at * len(every) // count] for at in range(count)]


def _address(said: Registration) -> str:
    """Return the address of a task; "" if it is none, or where the store is."""
    return said.facts.address if is_host(said.facts.address) else ""
