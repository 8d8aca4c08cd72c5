"""One run of a pre-flight as one task: store, coordinator, supervisor, and how it ends."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from gpucheck.cluster import meeting
from gpucheck.cluster.coordinator import Coordinator, Finish, Next
from gpucheck.cluster.door import Door
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.launcher import TaskPlace
from gpucheck.cluster.meeting import Meeting, Standby
from gpucheck.cluster.model import ExitClass, ExitStatus, RankResult, StepResult
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.task_messages import GaveUp, Seen, Survivor, Verdict
from gpucheck.cluster.task import node_facts, witness
from gpucheck.cluster.task.node_facts import counter_files
from gpucheck.cluster.task.supervisor import ExitReason, Judge, Supervisor
from gpucheck.cluster.task_0 import host_of_task_0, lost_early, mtu
from gpucheck.engine import FailOn, GpuVerdict, OpenQuestion, Report, counts, questions_about_gpus
from gpucheck.facts.claims import Confidence
from gpucheck.facts.preflight import Culprit, Preflight
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.findings import all_rules
from gpucheck.findings.form import Finding
from gpucheck.findings.gpu_presence import NO_NVIDIA_GPU
from gpucheck.findings.selftests import CUT_SHORT, SELFTEST_FAILED
from gpucheck.language import say
from gpucheck.machine import LiveHost
from gpucheck.machine.process_identity import ProcessIdentity
from gpucheck.tables import Tables

# How a pre-flight ends: exit status and class, the same on every living rank; whether a node fits.
#
# Slurm drains a node whose Prolog returns anything but 0. So for ``--node`` a node is unfit only if
# a fault of the node itself was seen: its driver, its GPUs, or their work together. Whatever is a
# fault of one Python environment, of the call or of the clock leaves the node in service.

ORDER: tuple[ExitStatus, ...] = (1, 4, 3, 5)
"""The precedence of the classes: the first that occurs is the exit status."""
_WORDS: dict[ExitStatus, ExitClass] = {
    0: "healthy", 1: "culprit", 3: "inconclusive", 4: "misconfiguration", 5: "slow",
}  # fmt: skip
_ON_THE_GPU = ("set-device", "alone", "store", "connect", "enter", "leave")
"""The phases in which a rank uses its device or the others. Before them only Python is slow."""
_FAULTS = ("crashed", "failed", "timed-out", "lost")
"""How a rank ends by itself; one that was stopped or not run has waited for another."""
_CULPRIT, _INCONCLUSIVE = 1, 3
"""Exit statuses (docs/preflight/reference.md)."""


class Ending(msgspec.Struct, frozen=True):
    """The exit status, its class in one word, and why in a sentence ("" where findings say it)."""

    status: ExitStatus
    word: ExitClass
    why: str = ""


def ending(
    standing: Iterable[Finding], preflight: Preflight, fail_on: FailOn, *, store_lost: str = ""
) -> Ending:
    """Return how the pre-flight ends.

    Findings below ``fail_on`` do not count. If none counts, a run that could not be finished and a
    lost store are inconclusive. A drill never ends with 0, whatever ``fail_on`` says: an unnoticed
    one is inconclusive.

    Args:
        standing: the findings of the report that no other suppresses.
        preflight: what was found; a culprit whose slug is no finding's counts by itself.
        fail_on: the least severity that counts.
        store_lost: why the store cannot be reached; "" when it can.
    """
    classes: set[ExitStatus] = {
        all_rules()[finding.slug].preflight_class
        for finding in standing
        if counts(finding.severity, fail_on)
    }
    named = (culprit for culprit in preflight.culprits or () if _is_named_all_the_same(culprit))
    if any(counts(culprit.severity, fail_on) for culprit in named):
        classes.add(1)
    why = store_lost or _open(preflight)
    if why and fail_on != "never":
        classes.add(3)
    status: ExitStatus = next((exit_status for exit_status in ORDER if exit_status in classes), 0)
    if status == 0 and preflight.drill:
        return _made(3, _of_drill(preflight))
    return _made(status, why if status == 3 else "")  # noqa: PLR2004  # inconclusive


def _is_named_all_the_same(culprit: Culprit) -> bool:
    """Whether a culprit is named although its slug alone blames nobody.

    That is a slug that no rule knows, or a collective that timed out between known ranks.
    """
    rule = all_rules().get(culprit.slug)
    if rule is None:
        return True
    is_open = rule.preflight_class == 3  # noqa: PLR2004  # inconclusive
    return is_open and bool(culprit.ranks) and culprit.confidence is not Confidence.POSSIBLE


def _open(preflight: Preflight) -> str:
    """Return why the job cannot be called healthy, or "" if it can."""
    if preflight.inconclusive:
        return preflight.inconclusive
    if preflight.culprits is None:
        return preflight.problem("culprits") or say("the pre-flight was not run")
    if not preflight.finished:
        return preflight.stopped_because or say("not every step was done")
    return ""


def _of_drill(preflight: Preflight) -> str:
    if preflight.culprits:
        return say("this was a drill: what it found does not count")
    return say("this was a drill, and the fault was not noticed")


def _made(status: ExitStatus, why: str) -> Ending:
    return Ending(status, _WORDS[status], why)


class NodeOutcome(msgspec.Struct, frozen=True):
    """What the static checks and the self-tests say of a node."""

    unfit: tuple[Finding, ...]
    """The faults of the node, the most probable first."""
    unknown: tuple[OpenQuestion, ...]
    """What nobody could find out about its GPUs and their driver."""
    gpus: tuple[GpuVerdict, ...] = ()
    """What to do with each GPU."""


def of_report(report: Report, tables: Tables, fail_on: FailOn, gpus: int | None) -> NodeOutcome:
    """Return what a report says of the node itself.

    Args:
        report: of the machine.
        tables: the compatibility tables.
        fail_on: the least severity that counts.
        gpus: how many GPUs the node must have; None if nobody said. Without a number a node
            without GPUs is fit, since it may never have had one.
    """
    tests = report.snapshot.get(SelfTests)
    unfit = tuple(
        finding for finding in report.standing if _is_of_the_node(finding, fail_on, gpus, tests)
    )
    unknown = questions_about_gpus(report.snapshot, tables)
    failed = [test for _path, test in tests.wrong() if test.kind != CUT_SHORT]
    if failed:
        question, fact = say("Do the self-tests pass?"), "selftests.results"
        why = f"{failed[0].name} on {failed[0].place}: {failed[0].detail}"
        unknown = (OpenQuestion(question=question, fact=fact, reason=why), *unknown)
    return NodeOutcome(unfit, unknown, report.gpus)


def _is_of_the_node(finding: Finding, fail_on: FailOn, gpus: int | None, tests: SelfTests) -> bool:
    if not counts(finding.severity, fail_on) or finding.confidence is Confidence.POSSIBLE:
        return False
    if finding.slug == NO_NVIDIA_GPU.slug:
        return bool(gpus)
    if finding.slug == SELFTEST_FAILED.slug:
        return _differs(tests)
    return all_rules()[finding.slug].drains_node


def _differs(tests: SelfTests) -> bool:
    """Whether a self-test failed on one GPU and passed on another with the same PyTorch.

    A test that fails everywhere without a known cause may be the fault of that PyTorch.
    """
    failed = {test.name for _path, test in tests.wrong() if test.kind != CUT_SHORT}
    passed = {result.name for result in tests.results or () if result.status == "passed"}
    return bool(failed & passed)


def is_unfit(ending: Ending, history: Iterable[StepResult]) -> bool:
    """Whether a pre-flight of this node alone found it unfit.

    Any culprit is a part of this node. If nobody could be named although ranks failed while they
    used their devices, all suspects are parts of this node as well.
    """
    if ending.status == _CULPRIT:
        return True
    return ending.status == _INCONCLUSIVE and any(suspects(history))


def suspects(history: Iterable[StepResult]) -> list[RankResult]:
    """Return the ranks that failed while they used their devices, each once, in order."""
    found = {
        result.rank: result
        for done in history
        for result in done.results.values()
        if result.status in _FAULTS and result.phase in _ON_THE_GPU
    }
    return [found[rank] for rank in sorted(found)]


# One run of a pre-flight as one task: store, connection, coordinator, supervisor.

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
