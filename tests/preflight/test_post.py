"""A worker under way: its deadlines, and how it is ended."""

from typing import Any

import pytest

from gpucheck.host.supervised import KILL, TERMINATE
from gpucheck.preflight.run import post as module
from gpucheck.preflight.run.post import Deadlines, Post


class Clock:
    """The time, as the test wants it."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


class Crew:
    """Takes signals."""

    def __init__(self) -> None:
        self.sent: list[int] = []

    def start(self, key: str, order: dict[str, Any]) -> str:
        raise NotImplementedError

    def events(self, seconds: float) -> list[tuple[str, dict[str, Any]]]:
        raise NotImplementedError

    def signal(self, key: str, number: int) -> None:
        assert key == "1.3"
        self.sent.append(number)

    def close(self) -> None:
        raise NotImplementedError


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def _post(clock: Clock, end: float = 1000.0) -> Post:
    return Post(3, "1.3", Deadlines(collective=20.0), clock.now + end)


def test_a_good_answer_is_taken_even_if_the_process_then_crashes(clock: Clock) -> None:
    post = _post(clock)
    post.hear({"event": "phase", "phase": "enter", "collective": 2})
    post.hear({"event": "result", "status": "passed", "measurements": {"x s": 0.5, "y": None}})
    clock.now += 2
    post.hear({"event": "ended", "signal": 11, "status": None, "printed": ""})
    assert post.gone
    assert post.result is not None
    assert post.result.passed
    assert post.result.rank == 3
    assert post.result.seconds == 2
    assert post.result.measurements == {"x s": 0.5}


def test_each_phase_has_its_own_deadline(clock: Clock) -> None:
    post, crew = _post(clock), Crew()
    for _ in range(10):
        post.hear({"event": "phase", "phase": "enter", "collective": 1})
        clock.now += 19
        post.push(crew)
    assert crew.sent == []
    clock.now += 2
    post.push(crew)
    assert crew.sent == [TERMINATE]


def test_the_ladder_ends_in_giving_up(clock: Clock) -> None:
    post, crew = _post(clock), Crew()
    post.hear({"event": "phase", "phase": "enter", "collective": 1})
    for _ in range(40):
        clock.now += 1
        post.push(crew)
    assert crew.sent == [TERMINATE, KILL]
    assert post.gone
    assert post.unkillable
    assert post.result is not None
    assert (post.result.status, post.result.kind) == ("timed-out", "unkillable")
    assert "stuck in the driver" in post.result.detail
    assert clock.now < 100 + 20 + 5 + 5 + 11


def test_what_it_says_while_it_is_ended_gives_it_no_more_time(clock: Clock) -> None:
    post, crew = _post(clock), Crew()
    post.hear({"event": "phase", "phase": "enter", "collective": 1})
    for _ in range(40):
        clock.now += 1
        post.hear({"event": "phase", "phase": "enter", "collective": 1})
        if clock.now > 115:
            post.stop("deadline")
        post.push(crew)
    assert crew.sent == [TERMINATE, KILL]
    assert post.gone


def test_a_victim_may_say_what_it_saw_and_is_then_stopped(clock: Clock) -> None:
    post, crew = _post(clock), Crew()
    post.hear({"event": "phase", "phase": "enter", "collective": 1})
    post.stop("failure")
    clock.now += 1
    post.push(crew)
    assert crew.sent == []
    clock.now += 1.5
    post.push(crew)
    post.hear({"event": "ended", "signal": 15, "status": None, "printed": "stack"})
    assert post.result is not None
    assert post.result.status == "stopped"
    assert post.result.phase == "enter"


def test_a_crash_that_another_rank_noticed_first_is_a_crash(clock: Clock) -> None:
    post = _post(clock)
    post.hear({"event": "phase", "phase": "enter", "collective": 1})
    post.stop("failure")
    post.hear({"event": "ended", "signal": 11, "status": None, "printed": ""})
    assert post.result is not None
    assert (post.result.status, post.result.kind) == ("crashed", "signal")
    assert post.result.data["signal"] == "SIGSEGV"


@pytest.mark.parametrize("end", [{"signal": 15, "status": None}, {"signal": None, "status": 1}])
def test_a_victim_that_ends_by_itself_is_no_crash(clock: Clock, end: dict[str, Any]) -> None:
    post = _post(clock)
    post.hear({"event": "phase", "phase": "enter", "collective": 1})
    post.stop("failure")
    post.hear({"event": "ended", "printed": "", **end})
    assert post.result is not None
    assert post.result.status == "stopped"


def test_the_time_of_the_group_ends_all_of_it_as_timed_out(clock: Clock) -> None:
    post, crew = _post(clock), Crew()
    post.hear({"event": "phase", "phase": "connect"})
    post.stop("deadline")
    post.push(crew)
    post.hear({"event": "ended", "signal": 15, "status": None, "printed": ""})
    assert crew.sent == [TERMINATE]
    assert post.result is not None
    assert (post.result.status, post.result.phase) == ("timed-out", "connect")


def test_it_is_told_how_long_it_was_in_its_phase_and_whose_time_was_over(clock: Clock) -> None:
    for own in (True, False):
        post, crew = _post(clock), Crew()
        post.hear({"event": "phase", "phase": "set-device"})
        clock.now += 60.5 if own else 38
        if not own:
            post.stop("deadline")
        post.push(crew)
        clock.now += 4  # dying takes its time
        post.hear({"event": "ended", "signal": TERMINATE, "status": None, "printed": ""})
        assert post.result is not None
        assert post.result.data["in_phase"] == (60.5 if own else 38.0)
        assert post.result.data["own_deadline"] is own


def test_the_end_of_the_run_accuses_nobody(clock: Clock) -> None:
    post, crew = _post(clock, end=5.0), Crew()
    clock.now += 6
    post.push(crew)
    post.hear({"event": "ended", "signal": 15, "status": None, "printed": ""})
    assert post.result is not None
    assert post.result.status == "not-run"


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
    post = _post(clock)
    post.hear({"event": "phase", "phase": "enter", "collective": 4})
    post.hear(message)
    assert post.result is not None
    assert (post.result.status, post.result.kind) == ("crashed", kind)
    assert (post.result.phase, post.result.collective) == ("enter", 4)


@pytest.mark.parametrize(
    "answer",
    [
        {"status": "splendid"},
        {"status": "passed", "phase": "lunch"},
        {"status": "passed", "measurements": [1]},
        {"status": "passed", "data": "x"},
        {"status": "passed", "collective": "many"},
    ],
)
def test_an_answer_that_is_none_is_no_pass(clock: Clock, answer: dict[str, Any]) -> None:
    post = _post(clock)
    post.hear({"event": "result", **answer})
    post.hear({"event": "ended", "signal": None, "status": 0, "printed": ""})
    assert post.result is not None
    assert not post.result.passed
