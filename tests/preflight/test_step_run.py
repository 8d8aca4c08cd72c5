"""One step as one task goes through it."""

from typing import Any

import pytest
from memory_store import MemoryStore

from gpucheck.cluster.model import Kind, RankResult
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.task_messages import (
    GroupEnd,
    Rendezvous,
    StepGroup,
    StepOrders,
    StepResults,
)
from gpucheck.cluster.store.wire import StoreError
from gpucheck.cluster.task.rank_run import Deadlines, RankRun
from gpucheck.cluster.task.step_run import StepRun
from gpucheck.machine.worker_pool.process import WorkerProcess


class Workers:
    """Notes which workers were started, and lets the test say what becomes of them."""

    def __init__(self) -> None:
        self.orders: dict[int, dict[str, Any]] = {}
        self.runs: dict[int, RankRun] = {}

    def start(self, rank: int, key: str, order: dict[str, Any], deadlines: Deadlines) -> RankRun:
        self.orders[rank] = order
        process = WorkerProcess(key, deadlines["start"], 1e12, grace=5.0)
        self.runs[rank] = RankRun(rank, process, deadlines)
        return self.runs[rank]

    def says(self, rank: int, **result: object) -> None:
        self.runs[rank].hear({"event": "result", **result})
        self.ends(rank)

    def ends(self, rank: int, **how: object) -> None:
        self.runs[rank].hear({"event": "ended", "status": 0, "signal": None, "printed": "", **how})


class Table:
    """A store, workers, and the steps of tasks that share the store."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.workers: dict[int, Workers] = {}
        self.runs: list[StepRun] = []

    def task(
        self, groups: dict[int, str], mine: dict[int, tuple[int, ...]], kind: Kind = "together"
    ) -> StepRun:
        told = tuple(StepGroup(number=n, ranks=groups[n], mine=mine[n]) for n in mine)
        orders = StepOrders(
            step=1, kind=kind, backend="gloo", groups=told, seconds=5, connect_seconds=5
        )
        ranks = [rank for group in told for rank in group.mine]
        workers = Workers()
        self.workers |= dict.fromkeys(ranks, workers)
        step_run = StepRun(
            orders, dict.fromkeys(ranks, "cpu"), workers, self.store,  # type: ignore[arg-type]
            address=f"10.0.0.{ranks[0]}", drill=lambda rank: {"faults": []} if rank == 3 else None,
        )  # fmt: skip
        self.runs.append(step_run)
        step_run.begin()
        return step_run

    def opened(self, rank: int, step_run: StepRun) -> None:
        step_run.heard(self.workers[rank].runs[rank], {"event": "store", "port": 4000 + rank})

    def done(self) -> dict[int, RankResult]:
        found: dict[int, RankResult] = {}
        for text in self.store.under(messages.RESULTS.prefix(1)).values():
            said = messages.RESULTS.read(text)
            assert isinstance(said, StepResults)
            found.update({one.rank: one for one in said.results})
        return found


@pytest.fixture
def table() -> Table:
    return Table()


def test_ranks_alone_need_no_store(table: Table) -> None:
    step_run = table.task({0: "0", 1: "1"}, {0: (0,), 1: (1,)}, kind="alone")
    assert [table.workers[r].orders[r]["trial"] for r in (0, 1)] == ["alone", "alone"]
    assert not step_run.tick()
    for rank in (0, 1):
        table.workers[rank].says(rank, status="passed")
    assert step_run.tick()
    assert {rank: one.status for rank, one in table.done().items()} == {0: "passed", 1: "passed"}


def test_the_members_start_when_the_first_has_opened_the_store(table: Table) -> None:
    first = table.task({0: "0-2"}, {0: (0,)})
    others = table.task({0: "0-2"}, {0: (1, 2)})
    assert table.workers[1].orders == {}
    table.opened(0, first)
    order = table.workers[1].orders[2]
    assert order["store"] == {"host": "10.0.0.0", "port": 4000}
    assert (order["index"], order["size"], order["group"]) == (2, 3, [0, 1, 2])
    assert not others.tick()


def test_only_the_worker_of_the_rank_is_told_of_a_drill(table: Table) -> None:
    step_run = table.task({0: "2-3"}, {0: (2, 3)})
    table.opened(2, step_run)
    assert table.workers[2].orders[2]["drill"] is None
    assert table.workers[3].orders[3]["drill"] == {"faults": []}
    assert "faults" not in str(table.store.values)


def test_a_crash_stops_the_others_wherever_they_are_and_is_numbered_first(table: Table) -> None:
    first = table.task({0: "0-2"}, {0: (0,)})
    table.opened(0, first)
    others = table.task({0: "0-2"}, {0: (1, 2)})
    table.workers[1].ends(1, signal=11, status=None)
    others.tick()
    assert table.store.values["end/1/0"]["reason"] == "peer-failed"
    for rank in (0, 2):
        table.workers[rank].ends(rank, signal=15, status=None)
    assert first.tick()
    assert others.tick()
    found = table.done()
    assert {rank: one.status for rank, one in found.items()} == {
        0: "stopped", 1: "crashed", 2: "stopped",
    }  # fmt: skip
    assert found[1].order == 1
    assert {found[0].order, found[2].order} == {2, 3}


def test_when_time_is_over_for_one_it_is_over_for_all_of_the_group(table: Table) -> None:
    first = table.task({0: "0-1"}, {0: (0,)})
    table.opened(0, first)
    other = table.task({0: "0-1"}, {0: (1,)})
    table.workers[0].runs[0].hear({"event": "phase", "phase": "enter", "collective": 1})
    table.workers[1].runs[1].hear({"event": "phase", "phase": "connect"})
    table.workers[0].runs[0].stop("deadline")
    table.workers[0].ends(0, signal=15, status=None)
    first.tick()
    table.workers[1].ends(1, signal=15, status=None)
    other.tick()
    found = table.done()
    assert {rank: (one.status, one.phase) for rank, one in found.items()} == {
        0: ("timed-out", "enter"), 1: ("timed-out", "connect"),
    }  # fmt: skip


def test_a_wrong_sum_at_the_end_stops_nobody(table: Table) -> None:
    first = table.task({0: "0-1"}, {0: (0, 1)})
    table.opened(0, first)
    table.workers[0].says(0, status="failed", kind="wrong-value", phase="done")
    first.tick()
    assert "end/1/0" not in table.store.values
    table.workers[1].says(1, status="passed")
    assert first.tick()


def test_a_store_that_is_never_opened_is_an_outcome(table: Table) -> None:
    step_run = table.task({0: "0-1"}, {0: (1,)})
    table.store.give_up("rendezvous/1/0")
    assert step_run.tick()
    found = table.done()[1]
    assert (found.status, found.phase) == ("timed-out", "start")
    assert "rank 0" in found.detail


def test_a_rank_that_had_not_begun_when_its_group_ended_is_a_victim(table: Table) -> None:
    step_run = table.task({0: "0-1"}, {0: (1,)})
    table.store.set("end/1/0", GroupEnd(reason="peer-failed"))
    assert step_run.tick()
    assert table.done()[1].status == "stopped"
    table.store.set("rendezvous/1/0", Rendezvous(host="10.0.0.0", port=1))
    assert table.workers[1].orders == {}


def test_phases_go_into_the_heartbeat(table: Table) -> None:
    step_run = table.task({0: "0-1"}, {0: (0, 1)})
    table.workers[0].runs[0].hear({"event": "phase", "phase": "enter", "collective": 3})
    at = step_run.progress()[0]
    assert (at.phase, at.collective) == ("enter", 3)


@pytest.mark.parametrize(
    "said",
    [3, {}, {"host": "a", "port": 1}, {"message": "rendezvous", "host": ["a"], "port": 1},
     {"message": "rendezvous", "host": "a", "port": 0},
     {"message": "rendezvous", "host": "a", "port": "80"}],
)  # fmt: skip
def test_a_malformed_rendezvous_is_an_outcome(table: Table, said: object) -> None:
    step_run = table.task({0: "0-1"}, {0: (1,)})
    table.store.set("rendezvous/1/0", said)
    assert step_run.tick()
    found = table.done()[1]
    assert (found.status, found.kind) == ("timed-out", "not-begun")
    assert "the store that rank 0 opened for the meeting is not understood" in found.detail


@pytest.mark.parametrize("said", ["peer-failed", {"message": "group-end", "reason": "spite"}])
def test_a_malformed_end_of_the_group_ends_nobody(table: Table, said: object) -> None:
    step_run = table.task({0: "0-1"}, {0: (1,)})
    table.store.set("end/1/0", said)
    assert not step_run.tick()
    table.store.set("rendezvous/1/0", Rendezvous(host="10.0.0.0", port=1))
    table.workers[1].says(1, status="passed")
    assert step_run.tick()


def test_results_that_the_store_refuses_go_one_by_one(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    step_run = table.task({0: "0", 1: "1"}, {0: (0,), 1: (1,)}, "alone")
    sent = table.store.set

    def limited(key: str, value: messages.TaskMessage) -> None:
        if isinstance(value, StepResults) and any(one.data for one in value.results):
            raise StoreError("a request of 2000000 bytes, more than a line of the store takes")
        sent(key, value)

    monkeypatch.setattr(table.store, "set", limited)
    for rank in (0, 1):
        table.workers[rank].says(rank, status="failed", kind="x", data={"a": "b"})
    for _time in range(5):
        step_run.tick()
    found = table.done()
    assert {rank: (one.kind, one.data) for rank, one in found.items()} == {
        0: ("x", {}), 1: ("x", {}),
    }  # fmt: skip
