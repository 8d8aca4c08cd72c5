"""A task that is sent orders for ranks it does not have says so, and starts nothing."""

import time

from memory_store import MemoryStore

from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.launcher import TaskPlace
from gpucheck.cluster.model import TaskFacts
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.task_messages import RankAssignment, StepGroup, StepOrders
from gpucheck.cluster.task.supervisor import ExitReason, Supervisor
from gpucheck.facts import Answer
from gpucheck.language import speaking, spoken
from gpucheck.machine.supervised import Supervised

_TASK = 1


class Line(MemoryStore):
    """A connection on which nothing is lost."""

    def pump(self) -> None:
        self.last_heard = time.monotonic()

    def ping(self) -> None:
        raise AssertionError("this task takes part")


def _nothing_starts(*_: object, **__: object) -> Answer[Supervised]:
    return Answer(None, "", "no such program", missing=True)


def _told(mine: tuple[int, ...]) -> tuple[ExitReason, MemoryStore]:
    """Run a task with the ranks 2 and 3 whose orders name some as its own."""
    line = Line()
    line.put(
        messages.ASSIGNMENTS.key(_TASK),
        RankAssignment(devices={2: "cpu", 3: "cpu"}, world_size=8),
    )
    group = StepGroup(number=0, ranks="0-7", mine=mine)
    line.put(
        messages.ORDERS.key(_TASK, 0),
        StepOrders(step=0, kind="together", backend="gloo", groups=(group,), seconds=5.0,
                   connect_seconds=5.0),
    )  # fmt: skip
    place = TaskPlace(launcher="env", task=_TASK, tasks=2, run="r", node=1)
    plan = JobPlan(
        tasks=2, cuda=False, python="python", begun=time.monotonic(), timeout=2, takes_signals=False
    )
    task = Supervisor(
        place, plan, line, _nothing_starts, TaskFacts(task=_TASK, host="b"),
        judge=lambda _snapshot: [],
    )  # fmt: skip
    return task.run(), line


def test_ranks_of_another_task_are_refused() -> None:
    found, line = _told((2, 7))
    assert found.reason == "not-understood"
    assert found.detail == (
        f"task 0 sent {messages.ORDERS.key(_TASK, 0)}, which is malformed: "
        "it names ranks that this task does not have"
    )
    with speaking("zh"):
        assert "ranks" not in spoken(found.detail)
    assert not line.under(messages.RESULTS.key(_TASK)), "nothing was done"


def test_its_own_ranks_are_accepted() -> None:
    assert _told((2, 3))[0].reason == "time"
