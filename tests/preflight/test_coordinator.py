"""The coordinator: rank assignment, steps, silence, and an end in time."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from each import each
from memory_store import MemoryStore

from gpucheck.cluster import attendance, coordinator
from gpucheck.cluster.attendance import SILENT, Heard
from gpucheck.cluster.coordinator import Coordinator
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.model import RankResult, Step, TaskFacts
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.task_messages import (
    GaveUp,
    Heartbeat,
    Leaving,
    RankProgress,
    Registration,
    Seen,
    StepResults,
    TaskReport,
    Verdict,
    Witnessed,
)

Next = Callable[[Heard], Step | None]


class Clock:
    """The time, as the test wants it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


class Hall:
    """A coordinator, and tasks that do what the test says."""

    def __init__(
        self, clock: Clock, tasks: int, next_step: Next, timeout: float = 300.0, *,
        per_host: int = 1, **of_job: Any,  # noqa: ANN401  # fields
    ) -> None:  # fmt: skip
        self.clock = clock
        self.per_host = per_host
        self.store = MemoryStore()
        self.heard: list[Heard] = []
        plan = JobPlan(
            tasks=tasks, cuda=False, per_task=1, begun=clock.now, timeout=timeout, **of_job
        )
        self.coordinator = Coordinator(
            self.store, plan, next_step, self._finish, lambda _text: None
        )
        self.beats = dict.fromkeys(range(tasks), 0)

    def _finish(self, heard: Heard) -> Verdict:
        self.heard.append(heard)
        return Verdict(exit=0, exit_class="healthy")

    def facts(self, task: int, **more: Any) -> TaskFacts:  # noqa: ANN401  # fields
        return TaskFacts(task=task, host=f"n{task // self.per_host}", **more)

    def come(self, *tasks: int, left: float = 300.0) -> None:
        for task in tasks:
            facts = self.facts(task, address=f"10.0.0.{task}")
            said = Registration(facts=facts, seconds_left=left, deputy_port=4000 + task)
            self.store.set(messages.REGISTRATIONS.key(task), said)

    def learn(self, *tasks: int, problem: str = "") -> None:
        for task in tasks:
            kind = "import-failed" if problem else ""
            facts = self.facts(task, devices=[], problem=problem, kind=kind)
            self.store.set(messages.REPORTS.key(task), TaskReport(facts=facts))

    def did(self, task: int, step: int, **result: object) -> None:
        one = msgspec.convert({"rank": task, "status": "passed", **result}, RankResult)
        self.store.set(messages.RESULTS.key(step, task), StepResults(results=(one,)))

    def leave(self, *tasks: int) -> None:
        for task in tasks:
            self.store.set(messages.LEAVING.key(task), Leaving())

    def run(self, seconds: float, *, silent: tuple[int, ...] = ()) -> None:
        end = self.clock.now + seconds
        while self.clock.now < end:
            self.clock.now += 0.25
            for task in self.beats:
                if task not in silent:
                    self.beats[task] += 1
                    beat = Heartbeat(
                        n=self.beats[task], ranks={task: RankProgress("enter", 2, 0.1)}
                    )
                    self.store.set(messages.HEARTBEATS.key(task), beat)
            self.coordinator.tick()

    @property
    def result(self) -> Heard:
        assert len(self.heard) == 1
        return self.heard[0]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (attendance, coordinator):
        monkeypatch.setattr(module, "time", clock)
    return clock


def one_step(heard: Heard) -> Step | None:
    if heard.history:
        return None
    group = tuple(heard.roster.living)
    return Step(number=7, kind="together", groups=(group,), backend="gloo", seconds=20)


def test_all_is_well(clock: Clock) -> None:
    hall = Hall(clock, 2, one_step)
    hall.come(0, 1)
    hall.run(1)
    assert "roster/0" not in hall.store.values
    hall.learn(0, 1)
    hall.run(1)
    assigned = hall.store.values["roster/1"]
    assert (assigned["devices"], assigned["world_size"]) == ({"1": "cpu"}, 2)
    orders = hall.store.values["go/1/0"]
    assert orders["groups"] == [{"number": 0, "ranks": "0-1", "mine": [1]}]
    assert "verdict" not in hall.store.values
    hall.did(0, 7)
    hall.did(1, 7)
    hall.run(1)
    assert hall.store.values["verdict"]["exit"] == 0
    assert hall.result.history[0].passed((0, 1))
    assert not hall.coordinator.all_have_left
    hall.leave(0, 1)
    assert hall.coordinator.all_have_left


def test_who_never_comes_is_absent_after_the_time_to_arrive(clock: Clock) -> None:
    hall = Hall(clock, 3, one_step)
    hall.come(0, 2)
    hall.learn(0, 2)
    hall.run(59)
    assert "roster/0" not in hall.store.values
    hall.run(2)
    assert hall.store.values["go/0/0"]["groups"][0]["ranks"] == "0,2"
    hall.come(1)
    hall.did(0, 7)
    hall.did(2, 7)
    hall.run(1)
    assert hall.result.roster.absent == {1}


def test_while_the_store_is_late_nobody_can_come(clock: Clock) -> None:
    hall = Hall(clock, 2, one_step)
    hall.come(0)
    hall.learn(0)
    hall.store.delay = 20.0  # the machine is far too busy
    hall.run(78)
    assert "roster/0" not in hall.store.values
    hall.come(1)
    hall.learn(1)
    hall.run(1)
    assert hall.store.values["go/1/0"]["groups"][0]["ranks"] == "0-1"


def test_a_supervisor_that_falls_silent_is_lost_with_its_last_phase(clock: Clock) -> None:
    hall = Hall(clock, 2, one_step)
    hall.come(0, 1)
    hall.learn(0, 1)
    hall.run(5)
    hall.did(0, 7)
    hall.run(SILENT + 12, silent=(1,))  # others are asked about it
    lost = hall.result.history[0].results[1]
    assert (lost.status, lost.phase, lost.collective) == ("lost", "enter", 2)
    assert hall.result.roster.dead == {1}
    hall.leave(0)
    assert hall.coordinator.all_have_left


def test_who_falls_silent_while_it_imports_torch_is_known_before_the_first_step(
    clock: Clock,
) -> None:
    hall = Hall(clock, 2, one_step)
    hall.come(0, 1)
    hall.learn(0)
    hall.run(5)
    hall.run(SILENT + 2, silent=(1,))
    hall.did(0, 7)
    hall.run(10, silent=(1,))
    assert hall.result.history[0].results[1].status == "lost"
    assert "go/1/0" not in hall.store.values


def test_what_the_store_did_not_hear_is_no_silence(clock: Clock) -> None:
    hall = Hall(clock, 2, one_step)
    hall.come(0, 1)
    hall.learn(0, 1)
    hall.run(5)
    hall.run(1.5, silent=(0, 1))  # every heartbeat so far is read
    clock.now += 60  # nothing is read: task 0 was swapped out, or flooded
    hall.store.delay += 59
    hall.coordinator.tick()
    assert hall.coordinator._tasks.lost == set()  # noqa: SLF001  # who is lost so far
    hall.run(SILENT - 6, silent=(1,))
    assert hall.coordinator._tasks.lost == set()  # noqa: SLF001
    hall.run(6, silent=(1,))
    assert hall.coordinator._tasks.lost == {1}  # noqa: SLF001


def test_others_are_asked_about_a_silent_host_before_it_is_judged(clock: Clock) -> None:
    hall = Hall(clock, 4, one_step)
    hall.come(0, 1, 2, 3)
    hall.learn(0, 1, 2, 3)
    hall.run(5)
    for task in (0, 1, 3):
        hall.did(task, 7)
    hall.run(SILENT + 3, silent=(2,))
    for witness in (0, 1, 3):
        (place,) = hall.store.values[f"ask/{witness}/0"]["places"]
        assert (place["task"], place["host"], place["port"]) == (2, "10.0.0.2", 4002)
    assert "ask/2/0" not in hall.store.values
    assert not hall.heard
    seen: dict[int, Seen] = {0: "unreachable", 1: "says-nothing", 3: "says-nothing"}
    for witness, what in seen.items():
        said = Witnessed(seen={2: what, 7: "refused"})  # nobody asked about 7
        hall.store.set(messages.WITNESSED.key(witness), said)
    hall.run(2, silent=(2,))
    assert hall.result.seen == {2: seen}


def test_where_others_of_a_host_are_heard_the_lowest_is_asked_for_the_process(clock: Clock) -> None:
    hall = Hall(clock, 4, one_step, per_host=2)
    hall.come(0, 1, 2, 3)
    hall.learn(0, 1, 2, 3)
    hall.run(SILENT + 6, silent=(3,))
    assert [one["task"] for one in hall.store.values["ask/2/0"]["places"]] == [3]
    assert not {"ask/0/0", "ask/1/0"} & hall.store.values.keys()


def test_a_task_that_is_lost_and_heard_again_is_known(clock: Clock) -> None:
    hall = Hall(clock, 2, one_step)
    hall.come(0, 1)
    hall.learn(0, 1)
    hall.run(SILENT + 4, silent=(1,))
    hall.run(3)
    hall.did(0, 7)
    hall.run(9)
    assert hall.result.back == {1}


def test_the_hosts_of_absent_tasks_are_looked_for_by_their_names(clock: Clock) -> None:
    hall = Hall(clock, 3, one_step, hosts={0: "n0", 1: "n1", 2: "n2"})
    hall.come(0, 1)
    hall.learn(0, 1)
    hall.run(62)
    hall.did(0, 7)
    hall.did(1, 7)
    hall.run(1)
    for witness in (0, 1):
        (place,) = hall.store.values[f"ask/{witness}/0"]["places"]
        assert (place["task"], place["host"], place["port"]) == (2, "n2", 0)
        said = Witnessed(seen={2: "unreachable"})
        hall.store.set(messages.WITNESSED.key(witness), said)
    hall.run(2)
    assert hall.result.seen == {2: {0: "unreachable", 1: "unreachable"}}
    assert hall.result.awaited == frozenset()


def test_who_was_told_to_end_is_not_lost(clock: Clock) -> None:
    """A launcher ends its tasks of one node; one of them had died before that."""
    hall = Hall(clock, 4, one_step)
    hall.come(0, 1, 2, 3)
    hall.learn(0, 1, 2, 3)
    hall.run(5)
    hall.did(0, 7)
    hall.leave(1, 2)
    hall.run(SILENT + 12, silent=(1, 2, 3))
    results = hall.result.history[0].results
    assert {rank: one.status for rank, one in results.items()} == {
        0: "passed", 1: "stopped", 2: "stopped", 3: "lost",
    }  # fmt: skip
    assert hall.result.left == {1, 2}
    assert "told to end before the job was judged (1, 2)" in hall.result.stopped_because
    assert [one["task"] for one in hall.store.values["ask/0/0"]["places"]] == [3]


@each("is_in_a_step", [True, False])
def test_whose_connection_broke_before_the_job_was_told_to_end(
    clock: Clock,
    is_in_a_step: bool,  # noqa: FBT001  # both
) -> None:
    hall = Hall(clock, 4, one_step)
    hall.come(0, 1, 2, 3)
    if is_in_a_step:
        hall.learn(0, 1, 2, 3)
    hall.run(5)
    hall.leave(2)
    hall.store.broken = {2: clock.now, 3: clock.now}
    hall.coordinator.stop("it was told to end (SIGTERM)")
    assert hall.result.broken == {3}
    results = hall.result.history[0].results
    assert results[3].status == "lost"
    assert results[2].status == "stopped"
    assert {one.status for rank, one in results.items() if rank < 2} <= {"not-run"}


def test_a_task_whose_large_message_never_came_is_known(clock: Clock) -> None:
    hall = Hall(clock, 3, one_step)
    hall.store.wide = {0, 1}
    hall.come(0, 1, 2)
    hall.learn(0, 1)
    hall.run(SILENT + 4, silent=(2,))
    hall.did(0, 7)
    hall.did(1, 7)
    hall.run(10, silent=(2,))
    assert hall.result.narrow == {2}


def test_a_task_that_gave_up_is_no_longer_waited_for(clock: Clock) -> None:
    hall = Hall(clock, 2, one_step)
    hall.come(0, 1)
    hall.learn(0, 1)
    hall.run(3)
    hall.did(0, 7)
    hall.store.set(messages.GAVE_UP.key(1), GaveUp(why="nothing came"))
    hall.run(2)
    assert hall.result.gave_up == {1: "nothing came"}
    assert hall.result.history[0].results[1].status == "lost"
    assert "ask/0/0" not in hall.store.values


def test_whose_connection_was_closed_when_it_fell_silent(clock: Clock) -> None:
    """The process of one died then; that of the other ended later, as it heard nothing."""
    hall = Hall(clock, 3, one_step)
    hall.come(0, 1, 2)
    hall.learn(0, 1, 2)
    hall.run(5)
    hall.did(0, 7)
    hall.store.broken = {1: clock.now + 0.5, 2: clock.now + 15.0}
    hall.run(SILENT + 12, silent=(1, 2))
    assert hall.result.closed == {1}


def test_who_connects_and_never_registers_is_known(clock: Clock) -> None:
    hall = Hall(clock, 3, one_step, kept_away=frozenset({2}))
    hall.store.connected = {0, 1, 2}
    hall.come(0)
    hall.learn(0)
    hall.run(62)
    hall.did(0, 7)
    hall.run(10)
    assert hall.result.mute == {1}, "a drill keeps the other away"


def test_a_task_0_that_lost_its_own_store_says_so(clock: Clock) -> None:
    hall = Hall(clock, 9, one_step)
    hall.come(0, 1)
    hall.run(5)
    hall.coordinator.stop("no answer from the store for 15 s", is_blind=True)
    assert hall.result.is_blind
    assert "lost the connection to its own store" in hall.result.stopped_because
    assert "no answer from the store for 15 s" in hall.result.stopped_because


def test_in_a_large_job_heartbeats_are_rarer_and_silence_is_longer(clock: Clock) -> None:
    hall = Hall(clock, 6000, one_step)  # a heartbeat every 3 s
    hall.beats = {0: 0, 1: 0}
    hall.come(0, 1)
    hall.learn(0, 1)
    hall.run(62)
    hall.run(SILENT + 4, silent=(1,))
    assert hall.coordinator._tasks.lost == set()  # noqa: SLF001
    hall.run(6, silent=(1,))
    assert hall.coordinator._tasks.lost == {1}  # noqa: SLF001


def test_whose_torch_does_not_import_gets_no_orders_but_an_outcome(clock: Clock) -> None:
    hall = Hall(clock, 2, one_step)
    hall.come(0, 1)
    hall.learn(0)
    hall.learn(1, problem="No module named torch")
    hall.run(1)
    hall.did(0, 7)
    hall.run(1)
    assert hall.result.history[0].results[1].kind == "import-failed"
    assert "go/1/0" not in hall.store.values


def test_the_verdict_is_there_before_the_first_of_them_must_go(clock: Clock) -> None:
    hall = Hall(clock, 2, one_step)
    hall.come(0)
    hall.come(1, left=70.0)
    hall.learn(0, 1)
    hall.run(61)
    assert hall.heard == []
    hall.run(2)
    assert "limit" in hall.result.stopped_because
    assert {one.status for one in hall.result.history[0].results.values()} == {"not-run"}
    assert hall.result.history[0].results[0].phase == "enter"


def test_a_step_that_could_not_end_is_not_begun(clock: Clock) -> None:
    hall = Hall(clock, 1, one_step, timeout=40.0)
    hall.come(0, left=40.0)
    hall.learn(0)
    hall.run(2)
    assert "together" in hall.result.stopped_because
    assert hall.result.history == []


def test_a_task_that_dies_at_once_is_lost_too(clock: Clock) -> None:
    hall = Hall(clock, 1, one_step)
    hall.come(0)
    hall.run(SILENT + 4, silent=(0,))
    assert hall.result.facts[0].kind == "silent"


def test_an_unkillable_worker_takes_its_rank_out(clock: Clock) -> None:
    hall = Hall(clock, 2, one_step)
    hall.come(0, 1)
    hall.learn(0, 1)
    hall.run(1)
    hall.did(0, 7)
    hall.did(1, 7, status="timed-out", kind="unkillable")
    hall.run(1)
    assert hall.result.roster.dead == {1}
    assert hall.result.roster.living == [0]


FACTS = {"task": 0, "host": "x"}
FORGED: dict[str, list[object]] = {
    "task/0": [
        "nonsense",
        {},
        {"message": "registration"},
        {"message": "report", "facts": FACTS},
        {"message": "registration", "facts": {"task": 5, "host": "x"}},
        {"message": "registration", "facts": {**FACTS, "devices": [{"uuid": [1]}]}},
        {"message": "registration", "facts": {**FACTS, "devices": [{"uuid": {"a": 1}}]}},
        {"message": "registration", "facts": FACTS, "seconds_left": -1},
        {"message": "registration", "facts": FACTS, "seconds_left": "many"},
    ],
    "task/x": [{}],
    "task/²": [{}],
    "task/999999999999": [{"message": "registration", "facts": {**FACTS, "task": 999}}],
    "task/999": [{"message": "registration", "facts": {"task": 999, "host": "x"}}],
    "facts/0": [
        {"task": 5},
        [1],
        {"message": "report", "facts": {**FACTS, "devices": [{"uuid": 7}]}},
        {"message": "report", "facts": {**FACTS, "gpu_numbers": {"GPU-1": "x"}}},
        {"message": "report", "facts": {**FACTS, "roots": [{"slug": []}]}},
        {"message": "report", "facts": {**FACTS, "baseline": {"gpus": 3}}},
    ],
    "beat/0": [{"n": 1}, {"message": "heartbeat", "n": "many"}],
    "beat/²": [{"message": "heartbeat", "n": 1}],
    "beat/x": [{}],
    "done/7/0": [
        [{"rank": "a"}],
        {"message": "results", "results": [{"rank": "a", "status": "passed"}]},
        {"message": "results", "results": [{"rank": 0, "status": "splendid"}]},
        {"message": "results", "results": [
            {"rank": 0, "status": "timed-out", "data": {"in_phase": "long"}}]},
        {"message": "results", "results": [
            {"rank": 0, "status": "failed", "data": {"roots": [{"slug": []}]}}]},
    ],
    "done/7/5": [{"message": "results", "results": [{"rank": 99, "status": "passed"}]}],
}  # fmt: skip


@each(("key", "value"), [(key, value) for key, values in FORGED.items() for value in values])
def test_what_comes_over_the_network_is_not_believed(clock: Clock, key: str, value: object) -> None:
    hall = Hall(clock, 1, one_step)
    hall.store.set(key, value)
    hall.run(1)
    hall.come(0)
    hall.store.set(key, value)
    hall.run(1)
    hall.learn(0)
    hall.store.set(key, value)
    hall.run(1)
    hall.come(0)
    hall.learn(0)
    hall.run(1)
    hall.did(0, 7)
    hall.run(1)
    assert set(hall.result.history[0].results) == {0}
    assert hall.result.history[0].results[0].passed
    assert hall.result.facts[0].host == "n0"


def test_what_was_not_believed_is_said(clock: Clock) -> None:
    hall = Hall(clock, 2, one_step)
    hall.store.set("task/1", {"message": "registration", "facts": {"task": 1, "host": 5}})
    hall.come(0)
    hall.learn(0)
    hall.run(62, silent=(1,))
    hall.did(0, 7)
    hall.run(1)
    (said,) = hall.result.malformed
    assert "task/1" in said
    assert "facts.host" in said
    assert hall.result.roster.absent == {1}


def test_being_told_to_stop_ends_it_once(clock: Clock) -> None:
    hall = Hall(clock, 2, one_step)
    hall.come(0)
    hall.run(1)
    hall.coordinator.stop("it was told to end")
    hall.coordinator.stop("again")
    assert hall.result.stopped_because == (
        "it was told to end; by then, 1 of 2 tasks had not come (1)"
    )
    assert hall.result.awaited == {1}


def test_results_are_msgspec_data() -> None:
    one = RankResult(rank=1, status="lost", phase="enter")
    assert msgspec.convert(msgspec.to_builtins(one), RankResult) == one


def test_a_rank_that_cannot_take_part_is_known_even_if_time_ran_out_before_the_first_step(
    clock: Clock,
) -> None:
    hall = Hall(clock, 2, one_step, timeout=40.0)
    hall.come(0, 1)
    hall.run(1)
    hall.learn(1, problem="killed by SIGSEGV")
    hall.run(60)  # task 0 is slow to import torch
    [step] = hall.result.history
    assert {rank: one.detail for rank, one in step.results.items()} == {1: "killed by SIGSEGV"}
    assert hall.result.stopped_because


def test_tasks_that_left_a_task_0_that_stood_still_have_given_it_up(clock: Clock) -> None:
    hall = Hall(clock, 2, one_step)
    hall.come(0, 1)
    hall.run(1)
    hall.store.connected = {0}
    given_up = [hall.coordinator.is_given_up]  # it never stood still
    hall.store.longest_pause = 30.0
    given_up.append(hall.coordinator.is_given_up)
    hall.store.connected = {0, 1}
    given_up.append(hall.coordinator.is_given_up)  # they have waited for it
    assert given_up == [False, True, False]


def test_a_task_0_that_is_given_up_judges_nothing(clock: Clock) -> None:
    """Not even when its time is over: the others have a verdict of their own."""
    hall = Hall(clock, 2, one_step)
    hall.come(0, 1)
    hall.run(1)
    hall.store.connected, hall.store.longest_pause = {0}, 30.0
    hall.run(400)
    assert hall.heard == []
    assert messages.VERDICT.name not in hall.store.texts


def test_a_task_that_is_refused_ends_the_run_at_once(clock: Clock) -> None:
    hall = Hall(clock, 3, one_step)
    hall.come(0, 2)
    hall.store.set(messages.REFUSALS.key(1), messages.Refusal(host="n1", why="a wrong file"))
    hall.run(1)
    assert hall.result.refused[1].why == "a wrong file"
    assert hall.result.history == []
    assert [one.host for one in hall.result.roster.ranks] == ["n0", "n1", "n2"]
