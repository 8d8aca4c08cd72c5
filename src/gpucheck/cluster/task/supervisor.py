"""What the launcher starts: it keeps every deadline, and never touches torch or a GPU itself.

One loop serves the connection to the store, the workers and, in task 0, the coordinator; nothing in
it blocks. What the task does in order is a script (a generator) that is resumed each time around.
"""

import signal
import time
from collections.abc import Callable, Generator
from typing import Any, Literal

import msgspec

from gpucheck.cluster.coordinator import Coordinator
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.launcher import TaskPlace
from gpucheck.cluster.model import RootCause, TaskFacts
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store import wire
from gpucheck.cluster.store.client import TICK, StoreClient, leave
from gpucheck.cluster.store.task_messages import (
    Heartbeat,
    M,
    Malformed,
    Registration,
    StepOrders,
    TaskReport,
    Topic,
    Verdict,
)
from gpucheck.cluster.task import node_facts, rank_run
from gpucheck.cluster.task.node_facts import PortCounters
from gpucheck.cluster.task.rank_run import RankRun
from gpucheck.cluster.task.step_run import RankWorkers, StepRun
from gpucheck.cluster.task.witness import Witness
from gpucheck.facts import builtins
from gpucheck.facts.preflight import Look
from gpucheck.facts.snapshot import Snapshot
from gpucheck.language import say
from gpucheck.machine import process_identity
from gpucheck.machine.control_groups import processor_limits, throttled_since
from gpucheck.machine.worker_pool.pool import StartProgram
from gpucheck.machine.worker_pool.process import Message

_PAUSE = 2.0
"""Seconds between two turns of the loop from which on this task itself stood still."""
_GIVEN_UP = 10.0
"""Seconds from which on the others may have given it up; nobody does so earlier."""
_COMES_ROUND = 1.0
"""Seconds after a long standstill in which what happened meanwhile is read, and nothing judged."""
_SILENCE = 15.0
"""After this many seconds without a message, the store is considered gone; in large jobs after as
many more as ``wire.silence`` says."""
_LONG = 600.0
"""Seconds that one question to the store may wait; it is asked again, and ``wire.WAIT_LIMIT`` is
longer."""
_NODE_CHECK = 40.0
"""Seconds for the static probes of a node."""
_CENSUS = "census"
Script = Generator[None, None, None]
Reason = Literal[
    "verdict", "store-lost", "cut-off", "not-understood", "given-up", "time", "signal"
]  # fmt: skip
"""``cut-off``: the store was lost, and the others could not tell why, either."""
Judge = Callable[[Snapshot], list[RootCause]]


class Standstill:
    """Notices the time in which this task did not run.

    Args:
        store: its connection.
    """

    def __init__(self, store: StoreClient) -> None:
        self._store = store
        self._turned = time.monotonic()
        self._awake_at = 0.0
        self.was_left = False
        """Whether the connection was closed meanwhile: nobody can tell then by whom, and why."""

    def turn(self) -> None:
        """Note a turn of the loop. The store was not silent while this task stood still."""
        now = time.monotonic()
        pause, self._turned = now - self._turned, now
        if pause > _PAUSE:
            self._store.last_heard = min(now, self._store.last_heard + pause)
        if pause > _GIVEN_UP:
            self._awake_at = now + _COMES_ROUND

    def comes_round(self) -> bool:
        """Return whether it went on only just now, and does not know yet what it has missed."""
        if time.monotonic() >= self._awake_at:
            return False
        self.was_left = self.was_left or bool(self._store.lost)
        return True


class ExitReason(msgspec.Struct, frozen=True, kw_only=True):
    """How the run ended for a task: with or without the verdict of the job."""

    reason: Reason
    verdict: Verdict | None = None
    detail: str = ""


class Supervisor:
    """One task of a pre-flight.

    Args:
        place: which task this is.
        plan: what the job does.
        store: its connection to the store.
        start: starts a program (``LiveHost.supervise``).
        facts: what the system says of this node.
        judge: names the errors that the static rules find in a snapshot.
        coordinator: in task 0.
        progress: is told what is going on, ten times a second.
    """

    def __init__(
        self,
        place: TaskPlace,
        plan: JobPlan,
        store: StoreClient,
        start: StartProgram,
        facts: TaskFacts,
        *,
        judge: Judge,
        coordinator: Coordinator | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        self._place = place
        self._plan = plan
        self._is_absent = place.task in plan.kept_away
        self._store = store
        self._start = start
        # A loopback address means that the store is on this node: others know how to reach it.
        here = store.local_address
        self._address = "" if here.startswith("127.") or here == "::1" else here
        self._facts = msgspec.structs.replace(facts, address=self._address, phase="import")
        self._drill = plan.drill.for_worker
        self._judge = judge
        self._coordinator = coordinator
        self._progress = progress
        self._workers = RankWorkers(start, plan.python, self._hear, plan.import_seconds, plan.end)
        self._limits = processor_limits()
        self._counters = PortCounters(start, place.counters)
        self._check: node_facts.NodeCheck | None = None
        self._step_run: StepRun | None = None
        self._census: Message | None = None
        self._verdict: Verdict | None = None
        self._not_understood = ""
        self._devices: dict[int, str] = {}
        self._beat_at = 0.0
        self._beats = 0
        self._told_to_end = False
        self._standstill = Standstill(store)
        self._witness = Witness(place.task, place.run, store, place.domain)
        self._results: list[dict[str, Any]] = []
        self.snapshot: Snapshot | None = None
        """What the static probes found here, where they were run."""

    def run(self) -> ExitReason:
        """Do what the coordinator wants until there is a verdict, or none can come."""
        takes = self._plan.takes_signals
        before = signal.signal(signal.SIGTERM, self._on_signal) if takes else None
        script = self._script()
        try:
            while True:
                self._tick(script)
                if (ending := self._ending()) is not None:
                    return ending
        finally:
            self._close()
            if takes:
                signal.signal(signal.SIGTERM, before)

    @property
    def own(self) -> dict[str, Any]:
        """What this task has seen itself: its facts, and its ranks' results by step."""
        plain: dict[str, Any] = builtins({"facts": self._facts, "steps": self._results})
        return plain

    @property
    def told_to_end(self) -> bool:
        """Whether it has received SIGTERM."""
        return self._told_to_end

    @property
    def host(self) -> str:
        """The name of this node."""
        return self._facts.host

    @property
    def ranks(self) -> dict[int, str]:
        """The ranks of this task with their devices; empty before they were assigned."""
        return self._devices

    def leave(self) -> None:
        """Report that the verdict was taken and everything is written; leave with the others."""
        end = self._plan.end if self._verdict is not None else 0.0
        leave(self._store, self._place.task, end, self._coordinator)

    def _tick(self, script: Script) -> None:
        self._store.pump()
        self._workers.tick(TICK)  # here it waits
        self._standstill.turn()
        if self._check is not None:
            self._check.tick()
        self._counters.tick()
        self._witness.tick()
        if self._coordinator is not None and not self._standstill.comes_round():
            self._coordinator.tick()
        next(script, None)
        self._beat()

    def _ending(self) -> ExitReason | None:
        if self._standstill.comes_round():
            return None
        now = time.monotonic()
        if self._told_to_end:
            # A launcher ends the others when one has died: what came before its signal counts.
            self._store.pump()
        if self._coordinator is not None and self._coordinator.is_given_up:
            return ExitReason(
                reason="given-up",
                detail=say("task 0 itself stood still for so long that the others gave it up"),
            )
        if self._verdict is not None:
            return ExitReason(reason="verdict", verdict=self._verdict)
        if (lost := self._loss(now)) is not None:
            return lost
        if self._told_to_end:
            return ExitReason(reason="signal", detail=say("it was told to end (SIGTERM)"))
        if now > self._plan.end:
            return ExitReason(reason="time", detail=say("the time limit of the run was reached"))
        return None

    def _loss(self, now: float) -> ExitReason | None:
        """Return how task 0 was lost, or that nothing it says can be understood; None if not."""
        if self._store.lost and self._standstill.was_left:
            return ExitReason(
                reason="given-up",
                detail=say("this task stood still, and task 0 closed the connection meanwhile"),
            )
        if self._store.lost:
            return ExitReason(reason="store-lost", detail=self._store.lost)
        if self._not_understood:
            return ExitReason(reason="not-understood", detail=self._not_understood)
        silence = wire.silence(_SILENCE, self._store.beat)
        if now - self._store.last_heard > silence and not self._told_to_end:
            return ExitReason(
                reason="store-lost",
                detail=say("no answer from the store for {seconds:.0f} s", seconds=silence),
            )
        return None

    def _script(self) -> Script:
        """Yield while this task does its work, in order."""
        place = self._place
        self._store.get(messages.VERDICT.name, _LONG, then=self._take_verdict)
        if self._is_absent:
            return
        self._workers.open()
        self._counters.begin()
        self._witness.watch()
        self._register()
        if self._plan.cuda and place.local == 0:
            self._check = self._node_check()
        yield from self._learn()
        self._facts = node_facts.with_limit(self._facts, throttled_since(self._limits))
        self._store.set(messages.REPORTS.key(place.task), TaskReport(facts=self._facts))
        assigned = yield from self._await(messages.ASSIGNMENTS, place.task)
        self._devices = assigned.devices
        at = 0
        while True:
            orders = yield from self._await(messages.ORDERS, place.task, at)
            if any(not self._devices.keys() >= set(group.mine) for group in orders.groups):
                self._not_understood = say(
                    "task 0 sent {key}, which is malformed: {problem}",
                    key=messages.ORDERS.key(place.task, at),
                    problem=say("it names ranks that this task does not have"),
                )
                return
            yield from self._run_step(orders)
            at += 1

    def _register(self) -> None:
        left = max(0.0, round(self._plan.end - time.monotonic(), 1))
        registration = Registration(
            facts=self._facts, seconds_left=left, process=process_identity.own(),
            deputy_port=self._place.deputy_port, mark=self._place.mark,
        )  # fmt: skip
        self._store.set(messages.REGISTRATIONS.key(self._place.task), registration)
        self._store.send_wide()

    def _learn(self) -> Script:
        """Learn what torch and the driver are on this node. A failure to do so is a fact, too."""
        while self._workers.state == "importing":
            yield
        failure = self._workers.failure
        if failure is not None:
            problem, kind, look = failure.detail, failure.kind, failure.look
        else:
            problem, kind, look = yield from self._ask_torch()
        if problem:
            if self._check is None:
                self._check = self._node_check()
            self._facts = msgspec.structs.replace(
                self._facts, problem=problem, kind=kind, look=look
            )
        while self._check is not None and not self._check.done:
            yield
        if self._check is not None and self._check.snapshot is not None:
            self.snapshot = self._check.snapshot
            self._facts = node_facts.with_snapshot(self._facts, self.snapshot)
            if problem:
                roots = self._judge(self.snapshot)
                self._facts = msgspec.structs.replace(self._facts, roots=roots)

    def _node_check(self) -> node_facts.NodeCheck:
        """Start the static probes, which may not use up the time of a short run."""
        seconds = min(_NODE_CHECK, self._plan.import_seconds)
        return node_facts.NodeCheck(self._start, self._plan.python, seconds, self._plan.chosen_by)

    def _ask_torch(self) -> Generator[None, None, tuple[str, str, Look | None]]:
        """Ask torch in a worker for its version and devices. Return what is wrong."""
        order = {"census": True, "device": "cuda" if self._plan.cuda else "cpu"}
        run = self._workers.start(-1, _CENSUS, order, {"start": self._plan.import_seconds})
        while run.result is None:
            yield
        self._facts = msgspec.structs.replace(self._facts, phase="census")
        if self._census is not None:
            self._facts = node_facts.with_census(self._facts, self._census, cuda=self._plan.cuda)
            if not rank_run.zygote_is_held(run.result.look):
                return self._facts.problem, self._facts.kind, run.result.look
        return run.result.detail, run.result.kind, run.result.look

    def _run_step(self, orders: StepOrders) -> Script:
        while self._workers.state == "importing":
            yield
        step_run = StepRun(
            orders,
            self._devices,
            self._workers,
            self._store,
            address=self._address,
            drill=self._drill,
            counters=self._counters,
        )
        self._step_run = step_run
        step_run.begin()
        while not step_run.tick():
            yield
        self._step_run = None
        self._results.append({"step": orders.kind, "results": list(step_run.results.values())})

    def _await(self, topic: Topic[M], *numbers: int) -> Generator[None, None, M]:
        """Wait for a message of task 0. A malformed one ends the run of this task."""
        key = topic.key(*numbers)
        box: list[M] = []

        def then(text: bytes | None) -> None:
            found = topic.read(text) if text is not None else None
            if found is None:
                self._store.get(key, _LONG, then=then)
            elif isinstance(found, Malformed):
                self._not_understood = say(
                    "task 0 sent {key}, which is malformed: {problem}",
                    key=key,
                    problem=found.problem,
                )
            else:
                box.append(found)

        self._store.get(key, _LONG, then=then)
        while not box:
            yield
        return box[0]

    def _take_verdict(self, text: bytes | None) -> None:
        if text is None:
            self._store.get(messages.VERDICT.name, _LONG, then=self._take_verdict)
            return
        found = messages.VERDICT.read(text)
        if isinstance(found, Malformed):
            self._not_understood = say(
                "task 0 sent a malformed verdict: {problem}", problem=found.problem
            )
        else:
            self._verdict = found

    def _hear(self, run: RankRun, message: Message) -> None:
        if run.key == _CENSUS:
            if message.get("event") == "census":
                self._census = message
        elif self._step_run is not None:
            self._step_run.heard(run, message)

    def _beat(self) -> None:
        now = time.monotonic()
        if now < self._beat_at:
            return
        self._beat_at = now + self._store.beat
        if self._is_absent:
            self._store.ping()
            return
        self._beats += 1
        ranks = self._step_run.progress() if self._step_run is not None else {}
        key = messages.HEARTBEATS.key(self._place.task)
        self._store.set(key, Heartbeat(n=self._beats, ranks=ranks))
        if self._progress is not None:
            self._progress(
                self._facts.phase if self._step_run is None else self._step_run.orders.kind
            )

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._told_to_end = True

    def _close(self) -> None:
        """Kill the processes that still run."""
        self._workers.close()
        self._counters.close()
        if self._check is not None:
            self._check.close()
