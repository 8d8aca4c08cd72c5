"""One step as one task runs it: its workers, the rendezvous of its groups, and its results."""

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from gpucheck.cluster.model import RankResult, Status, unpack
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.client import StoreClient
from gpucheck.cluster.store.task_messages import (
    GroupEnd,
    Malformed,
    RankProgress,
    Rendezvous,
    StepOrders,
    StepResults,
)
from gpucheck.cluster.store.wire import StoreError
from gpucheck.cluster.task import rank_run
from gpucheck.cluster.task.node_facts import PortCounters
from gpucheck.cluster.task.rank_run import Deadlines, RankRun, deadlines_of
from gpucheck.facts.preflight import Look, Phase
from gpucheck.language import say
from gpucheck.machine.supervised import is_running
from gpucheck.machine.worker_pool.pool import StartProgram, State, WorkerPool
from gpucheck.machine.worker_pool.process import (
    Message,
    StopReason,
    WorkerProcess,
    count_in,
    worker_exit,
)
from gpucheck.worker import BOOTSTRAP

_GRACE = 5.0
"""Seconds from SIGTERM to SIGKILL, and from there to giving up."""

_LONGEST = 1000
"""Characters of the reason why torch could not be imported."""

Hear = Callable[[RankRun, Message], None]
_LONG = 600.0
"""Seconds that the store is asked to wait for a key, before it is asked again."""
_RESULTS = 16
"""Results in one message: a line has a limit, and each result may have kilobytes of output."""
_BEFORE_THE_OTHERS: tuple[Phase, ...] = ("start", "set-device", "connect")
"""What the first worker of a group may take until the others begin."""


class ImportFailure(msgspec.Struct, frozen=True, kw_only=True):
    """Why there are no workers: torch cannot be imported, or its process hangs."""

    kind: str
    detail: str
    look: Look | None = None
    """What was seen of the process that did not end in time."""


class RankWorkers:
    """Runs the ranks of one task in workers.

    Args:
        start: starts a program (``LiveHost.supervise``).
        python: the target interpreter.
        hear: gets every message of a worker, after its ``RankRun`` has heard it.
        import_seconds: how long importing torch may take.
        end: when the whole run must be over, a time of ``time.monotonic()``.

    Attributes:
        failure: why torch could not be imported; None when it could.
    """

    def __init__(
        self, start: StartProgram, python: str, hear: Hear, import_seconds: float, end: float
    ) -> None:
        self._pool = WorkerPool(
            start, (python, BOOTSTRAP), self._take, end=end, grace=_GRACE,
            import_seconds=import_seconds, looks=True,
        )  # fmt: skip
        self._hear = hear
        self._import_limit = import_seconds
        self._stage = ""
        self._runs: dict[str, RankRun] = {}
        self.failure: ImportFailure | None = None

    @property
    def state(self) -> State:
        """Whether torch is still being imported, or was, or could not be."""
        return self._pool.state

    def open(self) -> None:
        """Have torch imported; ``state`` shows when that is done."""
        self._stage = "import torch"
        if problem := self._pool.open():
            self._fail("not-started", problem)

    def start(self, rank: int, key: str, order: Message, deadlines: Deadlines) -> RankRun:
        """Start a worker for a rank."""
        begin = deadlines["start"] + self._pool.own_import_seconds
        process = self._pool.start(key, order, begin)
        run = RankRun(rank, process, {**deadlines, "start": begin})
        if process.problem:
            run.hear({"event": "ended", "printed": process.problem})
        else:
            self._runs[key] = run
        return run

    def tick(self, seconds: float) -> None:
        """Wait at most this long for messages of workers. End those whose time is over."""
        self._pool.tick(seconds)

    def close(self) -> None:
        """Kill the processes that still run."""
        self._pool.close()

    def _take(self, process: WorkerProcess, message: Message) -> None:
        """Handle what a worker has said, or the zygote while it imports torch."""
        if process is self._pool.zygote:
            self._take_from_zygote(process, message)
            return
        run = self._runs[process.key]
        run.hear(message)
        self._hear(run, message)
        if process.is_gone:
            del self._runs[process.key]
            if process.is_unkillable and self._pool.forks:
                self._renew_zygote(run, process.pid)

    def _renew_zygote(self, run: RankRun, pid: int) -> None:
        """Find out whether the worker hangs, or the zygote, which did not pass the signal on."""
        problem = self._pool.renew(say("the process that forks the workers had to be ended"))
        if not (pid and is_running(pid)):
            run.blame_zygote()
        if problem:
            self._fail("not-started", problem)

    def _take_from_zygote(self, zygote: WorkerProcess, message: Message) -> None:
        event = message.get("event")
        if event == "stage":
            self._stage = str(message.get("text"))[:200]
        elif "too_old" in message:
            version = str(message["too_old"])[:20]
            sentence = say("it is Python {version}; gpucheck needs 3.8 or newer", version=version)
            self._fail("too-old", sentence)
        elif event == "import-failed":
            self._fail("import-failed", str(message.get("detail")))
        elif zygote.is_unkillable:
            sentence = say("import torch cannot be killed: it is stuck in the driver or on a disk")
            self._fail("unkillable", sentence, _look(zygote, ""))
        elif event == "ended":
            late = say(
                "import torch did not end within {seconds:.0f} s", seconds=self._import_limit
            )
            ended = worker_exit(message, self._stage, killed=late if zygote.is_signalled else "")
            printed = str(message.get("printed", ""))
            self._fail(ended.kind, ended.detail, _look(zygote, printed), printed)

    def _fail(self, kind: str, detail: str, look: Look | None = None, printed: str = "") -> None:
        kind, detail = rank_run.explained(kind, detail[:_LONGEST], (printed,))
        self.failure = ImportFailure(kind=kind, detail=detail, look=look)


def _look(zygote: WorkerProcess, printed: str) -> Look | None:
    """Return what was seen of the zygote before it was ended, or None if it ended by itself."""
    if not zygote.is_signalled:
        return None
    return rank_run.seen(zygote.looks, printed, killed=zygote.is_killed)


class GroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """A rank's place in its group."""

    rank: int
    group: int
    """The number of the group."""
    index: int
    ranks: tuple[int, ...]
    """Of the group."""


class StepRun:
    """A step under way in a task.

    Args:
        orders: what the coordinator wants.
        devices: of this task's ranks.
        workers: which run it.
        store: the connection to the store.
        address: where workers of other nodes reach those of this one; "" where the store is.
        drill: what a worker of a rank is told to do wrong, if anything.
        counters: are looked at when all ranks are done; None to look at nothing.
    """

    def __init__(
        self,
        orders: StepOrders,
        devices: Mapping[int, str],
        workers: RankWorkers,
        store: StoreClient,
        *,
        address: str,
        drill: Callable[[int], Message | None],
        counters: PortCounters | None = None,
    ) -> None:
        self.orders = orders
        self.results: dict[int, RankResult] = {}
        self._devices = devices
        self._workers = workers
        self._store = store
        self._address = address
        self._drill = drill
        self._counters = counters
        self._looks = False
        self._runs: dict[int, RankRun] = {}
        self._members = _members(orders)
        self._ended: dict[int, StopReason] = {}
        self._numbered: dict[int, int] = {}
        self._has_sent = False
        self._deadlines = deadlines_of(orders)

    def begin(self) -> None:
        """Start each group's first worker, and the others once that one has opened a store."""
        for group in {member.group for member in self._members.values() if len(member.ranks) > 1}:
            self._watch(group)
        for member in self._members.values():
            if member.index == 0:
                self._start(member, None)
            else:
                self._await_rendezvous(member.group)

    def heard(self, run: RankRun, message: Message) -> None:
        """Handle messages of a worker that its ``RankRun`` does not handle."""
        member = self._members.get(run.rank)
        if member is not None and message.get("event") == "store":
            here = Rendezvous(host=self._address, port=count_in(message, "port"))
            self._store.set(messages.RENDEZVOUS.key(self.orders.step, member.group), here)

    def progress(self) -> dict[int, RankProgress]:
        """Return how far each rank is."""
        return {
            rank: RankProgress(run.phase, run.collective, round(run.seconds, 1))
            for rank, run in self._runs.items()
            if run.result is None
        }

    def tick(self) -> bool:
        """Supervise the workers. True if the outcome of every rank is in the store."""
        for rank, run in self._runs.items():
            if rank not in self.results and run.result is not None:
                self._note(self._members[rank], run.result)
        if len(self.results) < len(self._members):
            return False
        if len(self._numbered) < sum(not result.passed for result in self.results.values()):
            return False
        if not self._have_counted():
            return False
        if not self._has_sent:
            self._has_sent = True
            self._send_results()
        return True

    def _have_counted(self) -> bool:
        """Look at the counters before the results are sent: the run may end with these."""
        if self._counters is None:
            return True
        if not self._looks:
            self._looks = True
            self._counters.begin()
        return self._counters.tick()

    def _start(self, member: GroupMember, rendezvous: Rendezvous | None) -> None:
        if member.rank in self._runs or member.rank in self.results:
            return
        orders = self.orders
        place = None
        if rendezvous is not None:
            host = rendezvous.host or self._store.peer_address
            place = {"host": host, "port": rendezvous.port}
        order: Message = {
            "trial": "alone" if orders.kind == "alone" else "collective",
            "rank": member.rank,
            "index": member.index,
            "group": list(member.ranks),
            "size": len(member.ranks),
            "device": self._devices[member.rank],
            "backend": orders.backend,
            "store": place,
            "address": self._address or self._store.peer_address,
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

    def _await_rendezvous(self, group: int) -> None:
        """Start the members of a group here that are not its first, once its store is open."""
        waiting = [
            member for member in self._members.values() if member.group == group and member.index
        ]
        limit = sum(self._deadlines[phase] for phase in _BEFORE_THE_OTHERS)

        def then(text: bytes | None) -> None:
            found = messages.RENDEZVOUS.read(text) if text is not None else None
            for member in waiting:
                if isinstance(found, Rendezvous):
                    self._start(member, found)
                elif member.rank not in self.results:
                    detail = _no_store(member.ranks[0], found)
                    self._note(member, _never_began(member.rank, "timed-out", detail))

        self._store.get(messages.RENDEZVOUS.key(self.orders.step, group), limit, then=then)

    def _watch(self, group: int) -> None:
        """Listen for a rank of the group that fails or runs out of time, on any node."""

        def then(text: bytes | None) -> None:
            if text is None:
                if any(m.group == group and m.rank not in self.results for m in self._all()):
                    self._watch(group)
                return
            end = messages.GROUP_ENDS.read(text)
            if not isinstance(end, Malformed):  # else each rank still has its own deadline
                self._ended[group] = end.reason
                for member in self._all():
                    if member.group == group:
                        self._stop(member, end.reason)

        self._store.get(messages.GROUP_ENDS.key(self.orders.step, group), _LONG, then=then)

    def _all(self) -> list[GroupMember]:
        return list(self._members.values())

    def _stop(self, member: GroupMember, reason: StopReason) -> None:
        run = self._runs.get(member.rank)
        if run is not None:
            run.stop(reason)
        elif member.rank not in self.results:
            status: Status = "stopped" if reason == "peer-failed" else "not-run"
            detail = say("it had not begun when its group came to an end")
            self._note(member, _never_began(member.rank, status, detail))

    def _note(self, member: GroupMember, result: RankResult) -> None:
        self.results[member.rank] = result
        if not result.passed:
            self._number(member.rank)
        reason = _why_group_ends(result)
        if reason is not None and len(member.ranks) > 1 and member.group not in self._ended:
            self._ended[member.group] = reason
            key = messages.GROUP_ENDS.key(self.orders.step, member.group)
            self._store.set(key, GroupEnd(reason=reason))

    def _number(self, rank: int) -> None:
        """Get the number of ranks of the whole job that failed before this one."""

        def then(number: int) -> None:
            self._numbered[rank] = number

        self._store.add(messages.BAD_ENDS, then=then)

    def _send_results(self) -> None:
        found = [
            msgspec.structs.replace(result, order=self._numbered.get(rank, 0))
            for rank, result in sorted(self.results.items())
        ]
        for at in range(0, len(found), _RESULTS):
            some = tuple(found[at : at + _RESULTS])
            key = messages.RESULTS.key(self.orders.step, some[0].rank)
            grown = self._counters.grown if self._counters is not None and at == 0 else {}
            try:
                self._store.set(key, StepResults(results=some, grown=grown))
            except StoreError:  # task 0 waits for every rank: each goes alone, without its data
                for result in some:
                    key = messages.RESULTS.key(self.orders.step, result.rank)
                    bare = msgspec.structs.replace(result, data={}, flight=None)
                    self._store.set(key, StepResults(results=(bare,), grown=grown))
                    grown = {}


def _no_store(first: int, found: Malformed | None) -> str:
    if found is None:
        return say("rank {rank} did not open the store at which the ranks meet", rank=first)
    return say(
        "the store that rank {rank} opened for the meeting is not understood ({problem})",
        rank=first, problem=found.problem,
    )  # fmt: skip


def _members(orders: StepOrders) -> dict[int, GroupMember]:
    """Return the places of a task's ranks in their groups."""
    members = {}
    for group in orders.groups:
        ranks = unpack(group.ranks)
        index = {rank: at for at, rank in enumerate(ranks)}
        for rank in group.mine:
            members[rank] = GroupMember(
                rank=rank, group=group.number, index=index[rank], ranks=ranks
            )
    return members


def _why_group_ends(result: RankResult) -> Literal["deadline", "peer-failed"] | None:
    """Return why the group of a rank comes to its end with it; None when it goes on."""
    if result.status == "timed-out":
        return "deadline"
    if result.status in ("failed", "crashed") and result.phase != "done":
        return "peer-failed"
    return None


def _never_began(rank: int, status: Status, detail: str) -> RankResult:
    return RankResult(rank=rank, status=status, phase="start", kind="not-begun", detail=detail)
