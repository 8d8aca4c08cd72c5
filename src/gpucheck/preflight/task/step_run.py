"""One step as one task goes through it: its workers, the stores they meet at, their outcomes."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from gpucheck.facts import builtins
from gpucheck.host.worker_pool.messages import Message
from gpucheck.host.worker_pool.process import StopReason
from gpucheck.preflight.model import Backend, Kind, RankResult
from gpucheck.preflight.spans import unpack
from gpucheck.preflight.task.rank_run import Deadlines, RankRun
from gpucheck.preflight.task.rank_workers import RankWorkers

_LONG = 600.0
"""Seconds that the store is asked to wait for a key, before it is asked again."""
_RESULTS = 16
"""Results in one line of the store, which has a limit; each may have kilobytes of last words."""
_WAIT_FOR_STORE = 5.0
"""Seconds that are added for the others, whose worker opens the store."""


class Talk(Protocol):
    """The store as a task uses it (``store_client``)."""

    peer_address: str
    """Where the store is reached from here."""

    def set(self, key: str, value: object) -> None:
        """Put a value under a key."""

    def add(self, key: str, *, then: Callable[[int], None]) -> None:
        """Count a key up by one and hear the new value."""

    def get(self, key: str, wait: float, *, then: Callable[[Any], None]) -> None:
        """Hear the value of a key when it has one; None when it has none after so many seconds."""


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """A group of ranks in a step, as a task is told of it; ``mine`` are its own."""

    number: int
    ranks: str
    """As ``spans`` writes them; the first opens the store."""
    mine: tuple[int, ...]


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """What a task does in a step."""

    step: int
    kind: Kind
    backend: Backend
    groups: tuple[Group, ...]
    seconds: float
    connect_seconds: float
    env: dict[str, str] = {}
    tests: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    level: str = "quick"
    seed: int = 0
    alone_seconds: float = 30.0
    start_seconds: float = 30.0
    device_seconds: float = 60.0


class GroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """A rank's place in its group."""

    rank: int
    party: int
    index: int
    group: tuple[int, ...]


class StepRun:
    """A step under way in a task.

    Args:
        orders: what the coordinator wants.
        devices: of this task's ranks.
        workers: which run it.
        talk: the store.
        address: where workers of other nodes reach those of this one; "" where the store is.
        drill: what a worker of a rank is told to do wrong, if anything.
    """

    def __init__(
        self,
        orders: Orders,
        devices: Mapping[int, str],
        workers: RankWorkers,
        talk: Talk,
        *,
        address: str,
        drill: Callable[[int], Message | None],
    ) -> None:
        self.orders = orders
        self.results: dict[int, RankResult] = {}
        self._devices = devices
        self._workers = workers
        self._talk = talk
        self._address = address
        self._drill = drill
        self._runs: dict[int, RankRun] = {}
        self._members = _members(orders)
        self._troubled: dict[int, StopReason] = {}
        self._numbered: dict[int, int] = {}
        self._posted = False
        self._deadlines = Deadlines(
            start=orders.start_seconds,
            set_device=orders.device_seconds,
            connect=orders.connect_seconds + _WAIT_FOR_STORE,
            collective=orders.seconds,
            alone=orders.alone_seconds,
        )

    def begin(self) -> None:
        """Start the workers that need nobody; the others when their group's store is open."""
        for party in {member.party for member in self._members.values() if len(member.group) > 1}:
            self._watch(party)
        for member in self._members.values():
            if member.index == 0:
                self._fork(member, None)
            else:
                self._ask_store(member.party)

    def heard(self, run: RankRun, message: Message) -> None:
        """Take in what a worker says beyond what its rank's run understands."""
        member = self._members.get(run.rank)
        if member is not None and message.get("event") == "store":
            store = {"host": self._address, "port": int(message.get("port") or 0)}
            self._talk.set(self._key("store", member.party), store)

    def phases(self) -> dict[str, list[object]]:
        """Return how far each rank is: phase, number of the collective, seconds in it."""
        return {
            str(rank): [run.phase, run.collective, round(run.seconds, 1)]
            for rank, run in self._runs.items()
            if run.result is None
        }

    def tick(self) -> bool:
        """Look after the workers; True when the outcome of every rank is on the store."""
        for rank, run in self._runs.items():
            if rank not in self.results and run.result is not None:
                self._note(self._members[rank], run.result)
        if len(self.results) < len(self._members):
            return False
        if len(self._numbered) < sum(not one.passed for one in self.results.values()):
            return False
        if not self._posted:
            self._posted = True
            self._post_results()
        return True

    def stop(self, because: StopReason = "run-limit") -> None:
        """End what is under way, and do not begin what is not."""
        for member in self._members.values():
            self._stop(member, because)

    def _fork(self, member: GroupMember, store: Message | None) -> None:
        if member.rank in self._runs or member.rank in self.results:
            return
        orders = self.orders
        order: Message = {
            "trial": "alone" if orders.kind == "alone" else "collective",
            "rank": member.rank,
            "index": member.index,
            "group": list(member.group),
            "size": len(member.group),
            "device": self._devices[member.rank],
            "backend": orders.backend,
            "store": store,
            "address": self._address or self._talk.peer_address,
            "env": orders.env,
            "connect_seconds": orders.connect_seconds,
            "seconds": orders.seconds,
            "sizes": list(orders.sizes),
            "tests": list(orders.tests),
            "level": orders.level,
            "seed": orders.seed,
            "drill": self._drill(member.rank),
        }
        key = f"{orders.step}.{member.rank}"
        self._runs[member.rank] = self._workers.start(member.rank, key, order, self._deadlines)

    def _ask_store(self, party: int) -> None:
        """Start the members of a group here that are not its first, once its store is open."""
        waiting = [one for one in self._members.values() if one.party == party and one.index]
        limit = self._deadlines.start + self._deadlines.set_device + self._deadlines.connect

        def then(store: Any) -> None:  # noqa: ANN401  # JSON-like data
            for member in waiting:
                if isinstance(store, dict):
                    host = store.get("host") or self._talk.peer_address
                    self._fork(member, {**store, "host": host})
                elif member.rank not in self.results:
                    detail = f"rank {member.group[0]} opened no store to meet at"
                    self._note(member, _never_began(member.rank, "timed-out", detail))

        self._talk.get(self._key("store", party), limit, then=then)

    def _watch(self, party: int) -> None:
        """Hear when a rank of the group, anywhere, has come to a bad end."""

        def then(because: Any) -> None:  # noqa: ANN401  # JSON-like data
            if because in ("deadline", "peer-failed"):
                self._troubled[party] = because
                for member in self._members.values():
                    if member.party == party:
                        self._stop(member, because)
            elif any(
                s.party == party and s.rank not in self.results for s in self._members.values()
            ):
                self._watch(party)

        self._talk.get(self._key("trouble", party), _LONG, then=then)

    def _stop(self, member: GroupMember, because: StopReason) -> None:
        run = self._runs.get(member.rank)
        if run is not None:
            run.stop(because)
        elif member.rank not in self.results:
            status = "stopped" if because == "peer-failed" else "not-run"
            detail = "it had not begun when its group came to an end"
            self._note(member, _never_began(member.rank, status, detail))

    def _note(self, member: GroupMember, result: RankResult) -> None:
        self.results[member.rank] = result
        if not result.passed:
            self._number(member.rank)
        if result.passed or len(member.group) == 1 or member.party in self._troubled:
            return
        why: StopReason | None = None
        if result.status == "timed-out":
            why = "deadline"
        elif result.status in ("failed", "crashed") and result.phase != "done":
            why = "peer-failed"
        if why is not None:
            self._troubled[member.party] = why
            self._talk.set(self._key("trouble", member.party), why)

    def _number(self, rank: int) -> None:
        """Learn the how-manieth bad end in the whole job this is."""

        def then(number: int) -> None:
            self._numbered[rank] = number

        self._talk.add("ends", then=then)

    def _post_results(self) -> None:
        found = [
            msgspec.structs.replace(one, order=self._numbered.get(rank, 0))
            for rank, one in sorted(self.results.items())
        ]
        for at in range(0, len(found), _RESULTS):
            some = found[at : at + _RESULTS]
            self._talk.set(f"done/{self.orders.step}/{some[0].rank}", builtins(some))

    def _key(self, what: str, party: int) -> str:
        return f"{what}/{self.orders.step}/{party}"


def _members(orders: Orders) -> dict[int, GroupMember]:
    """Return the places of a task's ranks.

    Raises:
        ValueError: a group is written down in no way that this version knows.
    """
    members = {}
    for party in orders.groups:
        group = unpack(party.ranks)
        index = {rank: at for at, rank in enumerate(group)}
        for rank in party.mine:
            members[rank] = GroupMember(
                rank=rank, party=party.number, index=index[rank], group=group
            )
    return members


def _never_began(rank: int, status: Any, detail: str) -> RankResult:  # noqa: ANN401  # a Status
    return RankResult(rank=rank, status=status, phase="start", kind="not-begun", detail=detail)
