"""One run of a pre-flight as one task: store, connection, coordinator, supervisor."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from gpucheck.cluster import meeting
from gpucheck.cluster.coordinator import Coordinator, Finish, Next
from gpucheck.cluster.door import Door
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.launchers.entrance import TaskPlace
from gpucheck.cluster.meeting import Meeting, Standby
from gpucheck.cluster.model import ExitClass, ExitStatus
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.task_messages import GaveUp, Seen, Survivor, Verdict
from gpucheck.cluster.task import node_facts, witness
from gpucheck.cluster.task.node_facts import counter_files
from gpucheck.cluster.task.supervisor import ExitReason, Judge, Supervisor
from gpucheck.cluster.task_0 import host_of_task_0, lost_early, mtu
from gpucheck.facts.snapshot import Snapshot
from gpucheck.language import say
from gpucheck.machine import LiveHost
from gpucheck.machine.process_identity import ProcessIdentity

_TO_MEET = 5.0
"""Seconds after a SIGTERM in which the tasks that have lost task 0 may still meet."""
_TO_HEAR = 0.5
"""Seconds for the others to hear why task 0 ends."""
_MISCONFIGURED = 4
"""The exit status (docs/preflight/reference.md)."""
_FAREWELL = 2.0
"""Seconds that are left of the time limit when they have met."""
_LONGEST_NAME = 255
"""Characters: more than a name in the DNS may have (253)."""


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
        place: what the launcher says.
        plan: what the job does.
        policy: what judges; only task 0 asks for steps and the verdict.
        progress: is told what is going on.

    Raises:
        StoreError: there is no store, and the sentence says why.
    """

    def __init__(
        self,
        host: LiveHost,
        place: TaskPlace,
        plan: JobPlan,
        policy: Policy,
        progress: Callable[[str], None],
    ) -> None:
        self._plan = plan
        door = Door(host.env(), place, plan.port, plan.token)
        facts = node_facts.first_facts(host, place.task, node=place.node, pid=os.getpid())
        called = (place.host or facts.host)[:_LONGEST_NAME]  # the name for srun --exclude
        facts = msgspec.structs.replace(facts, host=called, baseline=plan.baseline)
        self._policy = policy
        self._meeting: Meeting | None = None
        self._told_at = float("inf")
        with contextlib.ExitStack() as opened:  # the next run here must find the port free
            self._store = door.open_store() if place.task == 0 else None
            if self._store is not None:
                opened.callback(self._store.close)
            self._client = door.connect(self._store, plan.arrival)
            opened.callback(self._client.close)
            self._standby = Standby.prepared(place.task, place.local, here=place.stays_here)
            opened.callback(self._standby.close)
            self._standby.watch(self._client)
            self.coordinator: Coordinator | None = None
            if self._store is not None:
                self.coordinator = Coordinator(
                    self._store, plan, policy.next_step, policy.finish, progress
                )
            self._place = msgspec.structs.replace(
                place, mark=door.mark, deputy_port=self._standby.port,
                counters=tuple(counter_files(host)) if place.local == 0 else (),
            )  # fmt: skip
            self._supervisor = Supervisor(
                self._place, plan, self._client, host.supervise, facts,
                judge=policy.judge, coordinator=self.coordinator, progress=progress,
            )  # fmt: skip
            opened.pop_all()

    def run(self) -> ExitReason:
        """Run until there is a verdict, or until none can come."""
        found = self._supervisor.run()
        if found.reason != "store-lost" or self._store is not None:
            return found
        if (narrow := self._narrow()) is not None:
            return narrow
        if self._standby.deputies is not None:
            return self._meet(found)
        client = self._client
        why = lost_early(self._place, client.peer_address, client.port, found.detail)
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
            why = mtu(host_of_task_0(self._place), client.peer_address)
        client.set(messages.GAVE_UP.key(self._place.task), GaveUp(why=why))
        client.pump()
        return ExitReason(reason="cut-off", detail=why) if is_narrow else None

    def _meet(self, lost: ExitReason) -> ExitReason:
        """Meet the other tasks without task 0; return the verdict of the meeting, if any."""
        known, client = self._standby.deputies, self._client
        assert known is not None  # noqa: S101  # else nobody knows where to meet
        last = client.last_heard
        if self._supervisor.told_to_end:
            self._told_at = time.monotonic()
        with self._told_by_signal():
            survivor = Survivor(
                host=self._supervisor.host,
                seen=self._look(known.process),
                closed=bool(client.lost),
                seconds=max(0.0, time.monotonic() - last),
                ranks=self._supervisor.ranks,
            )
            self._meeting = Meeting(
                self._standby, known, client, survivor, self._place, self._policy.without_task_0,
                after=max(0.0, last - self._plan.begun), end=self._until,
            )  # fmt: skip
            found = self._meeting.hold()
        if found.verdict is None:
            return ExitReason(reason="cut-off", detail=found.sentence or lost.detail)
        return ExitReason(reason="verdict", verdict=found.verdict, detail=found.sentence)

    def _look(self, process: ProcessIdentity) -> Seen:
        """Return what there is to see of task 0, as the connection found it."""
        client = self._client
        return witness.look(
            process, client.peer_address, client.port, self._place.run, client.token
        )

    @contextlib.contextmanager
    def _told_by_signal(self) -> Iterator[None]:
        """Note a SIGTERM meanwhile, if this process is gpucheck's own."""
        if not self._plan.takes_signals:
            yield
            return
        before = signal.signal(signal.SIGTERM, self._on_signal)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def _until(self) -> float:
        """Return when a meeting must be over, a time of ``time.monotonic()``."""
        return min(self._plan.end - _FAREWELL, self._told_at + _TO_MEET)

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
            self._meeting.leave(self._plan.end)
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
        self._standby.close()
        if self._store is not None:
            self._store.close()
