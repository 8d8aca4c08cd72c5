"""One run of a pre-flight as one task: store, connection, coordinator, supervisor."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from gpucheck.cluster.coordinator.coordinator import Coordinator, Finish, Next, Plan
from gpucheck.cluster.coordinator.rank_assignment import JobSpec
from gpucheck.cluster.door import Door
from gpucheck.cluster.drill import Drill
from gpucheck.cluster.figures.baseline import Baseline
from gpucheck.cluster.launchers.entrance import Entrance
from gpucheck.cluster.model import ExitClass, ExitStatus
from gpucheck.cluster.store import messages
from gpucheck.cluster.store.messages import GaveUp, Seen, Survivor, Verdict
from gpucheck.cluster.survivors import meeting, sight
from gpucheck.cluster.survivors.heir import Heir
from gpucheck.cluster.survivors.meeting import Circumstances, Meeting
from gpucheck.cluster.task import node_facts
from gpucheck.cluster.task.rdma_ports import counter_files
from gpucheck.cluster.task.supervisor import ExitReason, Judge, Supervisor
from gpucheck.cluster.task.task_place import TaskPlace
from gpucheck.cluster.unreached import host_of_task_0, lost_early, mtu
from gpucheck.facts.selftests import Level
from gpucheck.facts.snapshot import Snapshot
from gpucheck.language import say
from gpucheck.machine import LiveHost
from gpucheck.machine.process_identity import ProcessIdentity

_ARRIVAL = _IMPORT = _CONNECT = 60.0
"""Seconds for all tasks to arrive (pods may be late), to import torch, and to connect."""
_SHARE, _MOST = 0.2, 0.4
"""The share of a long time limit that each of these gets, and the most of a short one."""
_START = 30.0
_TO_MEET = 5.0
"""Seconds after a SIGTERM in which the tasks that have lost task 0 may still meet."""
_TO_HEAR = 0.5
"""Seconds for the others to hear why task 0 ends."""
_MISCONFIGURED = 4
_FAREWELL = 2.0
"""Seconds that are left of the time limit when they have met."""
_LONGEST_NAME = 255
_ALONE: dict[Level, float] = {"quick": 30.0, "standard": 120.0, "stress": 300.0}
"""Seconds for one test of a GPU alone."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants; ``timeout`` in seconds for the whole run, which starts at ``begun``."""

    python: str
    chosen_by: str = ""
    """How this interpreter was chosen."""
    cuda: bool
    timeout: float
    begun: float
    ranks: int | None = None
    """Ranks of each task over gloo on the CPU."""
    port: int | None = None
    token: str = ""
    level: Level = "quick"
    seed: int = 0
    drill: Drill = Drill()
    baseline: Baseline | None = None
    """What this node's GPUs reached before; None when nobody compares."""
    takes_signals: bool = True
    """Whether this process is gpucheck's own, so that a SIGTERM means the pre-flight."""


class Policy(msgspec.Struct, frozen=True):
    """What decides: the next step, the verdict, what is wrong with a node, or with task 0."""

    next_step: Next
    finish: Finish
    judge: Judge
    without_task_0: meeting.Judge
    """Judges the loss of task 0, in a task that takes over."""


class Session:
    """One task's run.

    Args:
        host: this machine.
        entrance: what the launcher says.
        settings: what the user wants.
        policy: what judges; only task 0 asks for steps and the verdict.
        progress: is told what is going on.

    Raises:
        StoreError: there is no store, and the sentence says why.
    """

    def __init__(
        self,
        host: LiveHost,
        entrance: Entrance,
        settings: Settings,
        policy: Policy,
        progress: Callable[[str], None],
    ) -> None:
        self._entrance = entrance
        self._settings = settings
        self._end = settings.begun + settings.timeout
        door = Door(host.env(), entrance, settings.port, settings.token)
        self._mark = door.mark
        facts = node_facts.first_facts(host, entrance.task, node=entrance.node, pid=os.getpid())
        called = (entrance.host or facts.host)[:_LONGEST_NAME]  # the name for srun --exclude
        facts = msgspec.structs.replace(facts, host=called, baseline=settings.baseline)
        self._counters = tuple(counter_files(host)) if entrance.local == 0 else ()
        self._policy = policy
        self._meeting: Meeting | None = None
        self._told_at = float("inf")
        with contextlib.ExitStack() as opened:  # the next run here must find the port free
            self._store = door.open_store() if entrance.task == 0 else None
            if self._store is not None:
                opened.callback(self._store.close)
            self._client = door.connect(self._store, arrival_seconds(settings.timeout))
            opened.callback(self._client.close)
            self._heir = Heir.prepared(entrance.task, entrance.local, here=entrance.stays_here)
            opened.callback(self._heir.close)
            self._heir.watch(self._client)
            self.coordinator = (
                self._coordinator(policy, progress) if self._store is not None else None
            )
            self._supervisor = Supervisor(
                self._place(), self._client, host.supervise, facts,
                drill=settings.drill.for_worker, judge=policy.judge, coordinator=self.coordinator,
                progress=progress,
            )  # fmt: skip
            opened.pop_all()

    def run(self) -> ExitReason:
        """Run until there is a verdict, or until none can come."""
        found = self._supervisor.run()
        if found.reason != "store-lost" or self._store is not None:
            return found
        if (narrow := self._narrow()) is not None:
            return narrow
        if self._heir.deputies is not None:
            return self._meet(found)
        client = self._client
        why = lost_early(self._entrance, client.peer_address, client.port, found.detail)
        return ExitReason(reason="cut-off", detail=why)

    def _narrow(self) -> ExitReason | None:
        """Return that large messages get lost on the way to task 0, which still answers small ones.

        Task 0 is told that this task ends by itself. It hears that if only its own are lost.
        """
        client = self._client
        why: str = say("nothing came from task 0 any more")
        anybody = ProcessIdentity()  # it is about the way, not the process
        is_narrow = client.is_stalled and self._look(anybody) == "answers"
        if is_narrow:
            why = mtu(host_of_task_0(self._entrance), client.peer_address)
        client.set(messages.GAVE_UP.key(self._entrance.task), GaveUp(why=why))
        client.pump()
        return ExitReason(reason="cut-off", detail=why) if is_narrow else None

    def _meet(self, lost: ExitReason) -> ExitReason:
        """Meet the other tasks without task 0; return the verdict of the meeting, if any."""
        known, client = self._heir.deputies, self._client
        assert known is not None  # noqa: S101  # else nobody knows where to meet
        last = client.last_heard
        if self._supervisor.told_to_end:
            self._told_at = time.monotonic()
        with self._told_by_signal():
            said = Survivor(
                host=self._supervisor.host,
                seen=self._look(known.process),
                closed=bool(client.lost),
                seconds=max(0.0, time.monotonic() - last),
                ranks=self._supervisor.ranks,
            )
            circumstances = Circumstances(
                run=self._entrance.run, tasks=self._entrance.tasks,
                after=max(0.0, last - self._settings.begun), end=self._until,
            )  # fmt: skip
            self._meeting = Meeting(
                self._heir, known, client, said, circumstances, self._policy.without_task_0
            )
            found = self._meeting.hold()
        if found.verdict is None:
            return ExitReason(reason="cut-off", detail=found.sentence or lost.detail)
        return ExitReason(reason="verdict", verdict=found.verdict, detail=found.sentence)

    def _look(self, process: ProcessIdentity) -> Seen:
        """Return what there is to see of task 0, as the connection found it."""
        client = self._client
        return sight.look(
            process, client.peer_address, client.port, self._entrance.run, client.token
        )

    @contextlib.contextmanager
    def _told_by_signal(self) -> Iterator[None]:
        """Note a SIGTERM meanwhile, if this process is gpucheck's own."""
        if not self._settings.takes_signals:
            yield
            return
        before = signal.signal(signal.SIGTERM, self._on_signal)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def _until(self) -> float:
        """Return when a meeting must be over, a time of ``time.monotonic()``."""
        return min(self._end - _FAREWELL, self._told_at + _TO_MEET)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._told_at = min(self._told_at, time.monotonic())

    @property
    def snapshot(self) -> Snapshot | None:
        """What the static probes found on this node, where they were run."""
        return self._supervisor.snapshot

    @property
    def own(self) -> Mapping[str, Any]:
        """What this task has seen itself: its facts, and its ranks' results by step."""
        return self._supervisor.own

    @property
    def told_to_end(self) -> bool:
        """Whether it has received SIGTERM."""
        return self._supervisor.told_to_end or self._told_at < time.monotonic()

    @property
    def has_taken_over(self) -> bool:
        """Whether this task has judged the job in place of task 0."""
        return self._meeting is not None and self._meeting.presides

    def leave(self) -> None:
        """Report that the verdict was taken; the task with the store waits a little for others."""
        if self._meeting is not None:
            self._meeting.leave(self._end)
        else:
            self._supervisor.leave()

    def abandon(self, status: ExitStatus, why: str) -> None:
        """Tell the others that task 0 ends by itself without having judged the job, and why."""
        if self._store is None or self._store.get(messages.VERDICT.name) is not None:
            return
        word: ExitClass = "misconfiguration" if status == _MISCONFIGURED else "inconclusive"
        self._store.put(messages.VERDICT.name, Verdict(exit=status, exit_class=word, why=why))
        time.sleep(_TO_HEAR)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()
        if self._meeting is not None:
            self._meeting.close()
        self._heir.close()
        if self._store is not None:
            self._store.close()

    @property
    def _kept_away(self) -> frozenset[int]:
        """The tasks that a drill keeps away."""
        each = self._settings.ranks or 1
        return frozenset(rank // each for rank in self._settings.drill.absent)

    def _place(self) -> TaskPlace:
        entrance, settings = self._entrance, self._settings
        return TaskPlace(
            task=entrance.task, tasks=entrance.tasks, run=entrance.run, node=entrance.node,
            local=entrance.local,
            cuda=settings.cuda, python=settings.python, chosen_by=settings.chosen_by,
            end=self._end, counters=self._counters, takes_signals=settings.takes_signals,
            import_seconds=_limit(_IMPORT, settings.timeout),
            absent=entrance.task in self._kept_away,
            deputy_port=self._heir.port, mark=self._mark, domain=entrance.domain,
        )  # fmt: skip

    def _coordinator(self, policy: Policy, progress: Callable[[str], None]) -> Coordinator:
        entrance, settings = self._entrance, self._settings
        per_task = settings.ranks if not settings.cuda else None
        if entrance.one_gpu:
            per_task = per_task or 1
        job = JobSpec(
            tasks=entrance.tasks, cuda=settings.cuda, per_task=per_task,
            hosts=dict(enumerate(entrance.hosts)), kept_away=self._kept_away,
        )  # fmt: skip
        plan = Plan(
            backend="nccl" if settings.cuda else "gloo",
            begun=settings.begun,
            end=self._end,
            arrival=arrival_seconds(settings.timeout),
            connect=_limit(_CONNECT, settings.timeout),
            start=min(_START, settings.timeout / 5),
            set_device=_limit(_CONNECT, settings.timeout),
            level=settings.level,
            seed=settings.seed,
            alone=min(_ALONE[settings.level], settings.timeout / 5),
        )
        assert self._store is not None  # noqa: S101  # the coordinator's task holds it
        return Coordinator(self._store, job, plan, policy.next_step, policy.finish, progress)


def arrival_seconds(timeout: float) -> float:
    """Return how long all tasks of a run with this time limit may take to arrive."""
    return _limit(_ARRIVAL, timeout)


def _limit(usual: float, timeout: float) -> float:
    """Return a deadline that fits the time limit of the run: longer runs wait longer."""
    return min(max(usual, _SHARE * timeout), _MOST * timeout)
