"""A task that stood still does not judge what it has missed, and accuses nobody of it."""

import signal
import time
from typing import cast

import pytest
from memory_store import MemoryStore

from gpucheck.cluster.coordinator import Coordinator
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.launcher import TaskPlace
from gpucheck.cluster.model import TaskFacts
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.task_messages import Verdict
from gpucheck.cluster.task import supervisor as module
from gpucheck.cluster.task.supervisor import ExitReason, Supervisor
from gpucheck.machine.worker_pool.pool import StartProgram


class Clock:
    """A clock for the module."""

    def __init__(self) -> None:
        self.now = self.began = time.monotonic()

    def monotonic(self) -> float:
        return self.now


class Line(MemoryStore):
    """A connection during which this task stands still once, and which may be closed meanwhile."""

    def __init__(self, clock: Clock, pause: float) -> None:
        super().__init__()
        self.last_heard = time.monotonic()
        self.closes = True
        self.verdict: Verdict | None = None
        self._clock = clock
        self._pause = pause
        self._pumps = 0

    def pump(self) -> None:
        self._clock.now += 0.3
        self._pumps += 1
        if self._pumps == 2:  # the next turn begins late
            self._clock.now += self._pause
        if self._pumps == 3 and self.verdict is not None:
            self.put(messages.VERDICT.name, self.verdict)
        if self._pumps == 3 and self.closes:
            self.lost = "the store closed the connection"

    def ping(self) -> None:
        pass


class Leader(Coordinator):
    """A coordinator that everybody has left, which the store notices only after a while."""

    all_have_left = True

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ticks: list[float] = []

    def tick(self) -> None:
        self.ticks.append(self._clock.now)

    def stop(self, why: str, *, is_blind: bool = False) -> None:  # noqa: ARG002
        raise AssertionError(why)

    @property
    def is_given_up(self) -> bool:
        return self._clock.now > self._clock.began + 21.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def run(line: Line, leader: Leader | None = None) -> ExitReason:
    """Run a task that has nothing to do."""
    place = TaskPlace(launcher="env", task=1, tasks=2, run="r", node=1)
    plan = JobPlan(
        tasks=2,
        cuda=False,
        python="python",
        kept_away=frozenset({1}),
        begun=time.monotonic(),
        timeout=20,
    )
    task = Supervisor(
        place, plan, line, cast("StartProgram", None), TaskFacts(task=1, host="b"),
        judge=lambda _snapshot: [], coordinator=leader,
    )  # fmt: skip
    return task.run()


def test_a_connection_that_closes_meanwhile_accuses_nobody(clock: Clock) -> None:
    found = run(Line(clock, pause=20.0))
    assert found.reason == "given-up"
    assert "stood still" in found.detail


def test_a_connection_that_closes_otherwise_is_lost(clock: Clock) -> None:
    assert run(Line(clock, pause=0.0)).reason == "store-lost"
    assert run(Line(clock, pause=5.0)).reason == "store-lost", "nobody gave it up so early"


class Told(Line):
    """A connection of a task that is told to end, while what has come was not read yet."""

    def pump(self) -> None:
        super().pump()
        if self._pumps == 2:
            signal.raise_signal(signal.SIGTERM)


def test_a_connection_that_was_closed_before_the_signal_is_lost(clock: Clock) -> None:
    """As torchrun does 0.1 s after task 0 has died: a busy task sees both at once."""
    assert run(Told(clock, pause=0.0)).reason == "store-lost"


def test_a_verdict_that_came_before_the_signal_counts(clock: Clock) -> None:
    line = Told(clock, pause=0.0)
    line.closes, line.verdict = False, Verdict(exit=5, exit_class="slow")
    assert run(line).reason == "verdict"


def test_a_signal_while_the_connection_is_there_is_the_end_of_the_job(clock: Clock) -> None:
    line = Told(clock, pause=0.0)
    line.closes = False
    assert run(line).reason == "signal"


def test_a_verdict_that_came_meanwhile_counts(clock: Clock) -> None:
    line = Line(clock, pause=20.0)
    line.verdict = Verdict(exit=5, exit_class="slow")
    found = run(line)
    assert found.verdict is not None
    assert (found.reason, found.verdict.exit) == ("verdict", 5)


def test_task_0_judges_nothing_before_it_knows_who_has_left(clock: Clock) -> None:
    line, leader = Line(clock, pause=20.0), Leader(clock)
    line.closes = False
    assert run(line, leader).reason == "given-up"
    after = [now - clock.began for now in leader.ticks]
    assert after[0] < 1.0, "it went on before"
    assert not [now for now in after if 20.0 < now <= 21.0], "it went on too early"
