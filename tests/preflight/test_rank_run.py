"""A rank in a step: its deadlines, and what came of it."""

from typing import Any

import pytest

from gpucheck.cluster.model import RankResult
from gpucheck.cluster.task.rank_run import RankRun, read_answer
from gpucheck.facts.preflight import Phase
from gpucheck.machine.supervised import KILL, TERMINATE
from gpucheck.machine.worker_pool.look import Looks, LostPackets
from gpucheck.machine.worker_pool.process import Message, StopReason, WorkerProcess, read_message

CLOCKS = (
    "gpucheck.machine.worker_pool.process.time",
    "gpucheck.machine.worker_pool.process.time",
    "gpucheck.cluster.task.rank_run.time",
)


class Clock:
    """The time, as the test wants it."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


DEADLINES: dict[Phase, float] = {
    "start": 30.0, "set-device": 60.0, "alone": 30.0, "store": 60.0, "connect": 60.0,
    "enter": 20.0, "leave": 20.0, "done": 15.0,
}  # fmt: skip


class Run:
    """A rank with a worker that takes signals."""

    def __init__(self, end: float) -> None:
        self.process = WorkerProcess("1.3", DEADLINES["start"], end, grace=5.0)
        self.rank = RankRun(3, self.process, DEADLINES)
        self.sent: list[int] = []

    def hear(self, message: Message) -> None:
        self.rank.hear(message)

    def stop(self, reason: StopReason) -> None:
        self.rank.stop(reason)

    def push(self) -> None:
        """Do what the pool does each time around."""
        if self.process.push(self.sent.append):
            self.process.is_gone = self.process.is_unkillable = True
            self.rank.hear({"event": "ended"})

    @property
    def result(self) -> RankResult:
        assert self.rank.result is not None
        return self.rank.result


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for name in CLOCKS:
        monkeypatch.setattr(name, clock)
    return clock


def _run(clock: Clock, end: float = 1000.0) -> Run:
    return Run(clock.now + end)


def test_a_good_answer_is_taken_even_if_the_process_then_crashes(clock: Clock) -> None:
    run = _run(clock)
    run.hear({"event": "phase", "phase": "enter", "collective": 2})
    run.hear({"event": "result", "status": "passed", "measurements": {"x s": 0.5, "y": None}})
    clock.now += 2
    run.hear({"event": "ended", "signal": 11, "status": None, "printed": ""})
    assert run.result.passed
    assert run.result.rank == 3
    assert run.result.seconds == 2
    assert run.result.measurements == {"x s": 0.5}


def test_the_time_in_each_phase_is_kept_of_a_rank_that_did_not_pass(clock: Clock) -> None:
    run = _run(clock)
    clock.now += 0.5
    run.hear({"event": "phase", "phase": "connect"})
    clock.now += 3
    for collective in (1, 2):
        run.hear({"event": "phase", "phase": "enter", "collective": collective})
        clock.now += 4
    run.hear({"event": "ended", "signal": 11, "status": None, "printed": ""})
    assert run.result.phase_seconds == {"start": 0.5, "connect": 3.0, "enter": 8.0}


def test_the_time_of_a_rank_that_passed_is_not_kept(clock: Clock) -> None:
    run = _run(clock)
    clock.now += 3
    run.hear({"event": "result", "status": "passed", "measurements": {}})
    run.hear({"event": "ended", "signal": None, "status": 0, "printed": ""})
    assert run.result.phase_seconds == {}


def test_each_phase_has_its_own_deadline(clock: Clock) -> None:
    run = _run(clock)
    for _ in range(10):
        run.hear({"event": "phase", "phase": "enter", "collective": 1})
        clock.now += 19
        run.push()
    assert run.sent == []
    clock.now += 2
    run.push()
    assert run.sent == [TERMINATE]


def test_the_ladder_ends_in_giving_up(clock: Clock) -> None:
    run = _run(clock)
    run.hear({"event": "phase", "phase": "enter", "collective": 1})
    for _ in range(40):
        clock.now += 1
        run.push()
    assert run.sent == [TERMINATE, KILL]
    assert run.process.is_gone
    assert run.process.is_unkillable
    assert (run.result.status, run.result.kind) == ("timed-out", "unkillable")
    assert "stuck in the driver" in run.result.detail
    assert clock.now < 100 + 20 + 5 + 5 + 11


def test_what_it_says_while_it_is_ended_gives_it_no_more_time(clock: Clock) -> None:
    run = _run(clock)
    run.hear({"event": "phase", "phase": "enter", "collective": 1})
    for _ in range(40):
        clock.now += 1
        run.hear({"event": "phase", "phase": "enter", "collective": 1})
        if clock.now > 115:
            run.stop("deadline")
        run.push()
    assert run.sent == [TERMINATE, KILL]
    assert run.process.is_gone


def test_a_victim_may_say_what_it_saw_and_is_then_stopped(clock: Clock) -> None:
    run = _run(clock)
    run.hear({"event": "phase", "phase": "enter", "collective": 1})
    run.stop("peer-failed")
    clock.now += 1
    run.push()
    assert run.sent == []
    clock.now += 1.5
    run.push()
    run.hear({"event": "ended", "signal": 15, "status": None, "printed": "stack"})
    assert run.result.status == "stopped"
    assert run.result.phase == "enter"


def test_a_crash_that_another_rank_noticed_first_is_a_crash(clock: Clock) -> None:
    run = _run(clock)
    run.hear({"event": "phase", "phase": "enter", "collective": 1})
    run.stop("peer-failed")
    run.hear({"event": "ended", "signal": 11, "status": None, "printed": ""})
    assert (run.result.status, run.result.kind) == ("crashed", "signal")
    assert run.result.data["signal"] == "SIGSEGV"


@pytest.mark.parametrize("end", [{"signal": 15, "status": None}, {"signal": None, "status": 1}])
def test_a_victim_that_ends_by_itself_is_no_crash(clock: Clock, end: dict[str, Any]) -> None:
    run = _run(clock)
    run.hear({"event": "phase", "phase": "enter", "collective": 1})
    run.stop("peer-failed")
    run.hear({"event": "ended", "printed": "", **end})
    assert run.result.status == "stopped"


def test_the_time_of_the_group_ends_all_of_it_as_timed_out(clock: Clock) -> None:
    run = _run(clock)
    run.hear({"event": "phase", "phase": "connect"})
    run.stop("deadline")
    run.push()
    run.hear({"event": "ended", "signal": 15, "status": None, "printed": ""})
    assert run.sent == [TERMINATE]
    assert (run.result.status, run.result.phase) == ("timed-out", "connect")


def test_it_is_told_how_long_it_was_in_its_phase_and_whose_time_was_over(clock: Clock) -> None:
    for own in (True, False):
        run = _run(clock)
        run.hear({"event": "phase", "phase": "set-device"})
        clock.now += 60.5 if own else 38
        if not own:
            run.stop("deadline")
        run.push()
        clock.now += 4  # dying takes its time
        run.hear({"event": "ended", "signal": TERMINATE, "status": None, "printed": ""})
        assert run.result.data["in_phase"] == (60.5 if own else 38.0)
        assert run.result.data["own_deadline"] is own


def test_the_end_of_the_run_accuses_nobody(clock: Clock) -> None:
    run = _run(clock, end=5.0)
    clock.now += 6
    run.push()
    run.hear({"event": "ended", "signal": 15, "status": None, "printed": ""})
    assert run.result.status == "not-run"


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"event": "ended", "signal": 11, "status": None, "printed": "boom"}, "signal"),
        ({"event": "ended", "signal": None, "status": 3, "printed": "boom"}, "exit-status"),
        ({"event": "ended", "signal": None, "status": 0, "printed": ""}, "no-answer"),
    ],
)
def test_an_end_without_an_answer_is_a_crash(
    clock: Clock, message: dict[str, Any], kind: str
) -> None:
    run = _run(clock)
    run.hear({"event": "phase", "phase": "enter", "collective": 4})
    run.hear(message)
    assert (run.result.status, run.result.kind) == ("crashed", kind)
    assert (run.result.phase, run.result.collective) == ("enter", 4)


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "splendid"},
        {"status": "passed", "phase": "lunch"},
        {"status": "passed", "measurements": [1]},
        {"status": "passed", "data": "x"},
        {"status": "passed", "collective": "many"},
        {"status": "passed", "collective": float("inf")},
    ],
)
def test_an_answer_that_is_none_is_no_pass(clock: Clock, answer: dict[str, Any]) -> None:
    run = _run(clock)
    run.hear({"event": "result", **answer})
    run.hear({"event": "ended", "signal": None, "status": 0, "printed": ""})
    assert not run.result.passed


def test_numbers_that_are_none_and_data_that_are_too_large_are_left_out() -> None:
    """Task 0 would refuse the first, and the store the second; it waits for each rank."""
    said = read_message(
        b'{"status": "passed", "measurements": {"a": NaN, "b": 1e999, "c": 2}, "data": {"x": 1}}'
    )
    answer = read_answer(said)
    assert answer is not None
    assert (answer.measurements, answer.data) == ({"c": 2.0}, {"x": 1})
    large = read_answer({**said, "data": {"x": "y" * 100_000}})
    assert large is not None
    assert list(large.data) == ["left_out"]


@pytest.mark.parametrize("answers", [False, True])
def test_what_its_connections_lost_is_told_if_its_time_was_over(
    clock: Clock,
    answers: bool,  # noqa: FBT001  # both
) -> None:
    """It may have lost its peers just before it was ended itself."""
    run = _run(clock)
    assert run.process.looks is None
    run.process.looks = Looks()
    run.hear({"event": "phase", "phase": "enter", "collective": 1})
    clock.now += 21
    run.push()
    rows = [LostPackets("10.0.0.1", f"10.0.1.{at}", 100, at, 0) for at in range(70)]
    run.process.looks.lost_packets = rows
    if answers:
        run.hear({"event": "result", "status": "failed", "phase": "enter"})
    run.hear({"event": "ended", "signal": 15, "status": None, "printed": ""})
    told = run.result.data["lost_packets"]
    assert run.result.facts.lost_packets
    assert len(told) == 64
    assert told[0] == ["10.0.0.1", "10.0.1.69", 100, 69, 0]
