"""The worker pool: one ladder of signals, and an end for every worker."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_patient import Patient
from left_behind import MARK, alive, wait_until

from gpucheck.machine import LiveHost
from gpucheck.machine import sessions as ours_module
from gpucheck.machine.supervised import KILL, TERMINATE
from gpucheck.machine.worker_pool.look import LostPackets
from gpucheck.machine.worker_pool.pool import ForkingSpawner, SeparateSpawner, WorkerPool
from gpucheck.machine.worker_pool.process import Ladder, Message, WorkerProcess, worker_exit
from gpucheck.worker import BOOTSTRAP
from gpucheck.worker import sessions as theirs_module

pytestmark = pytest.mark.process

ORDER = {"census": True, "device": "cpu"}
"""A worker that answers at once and ends."""
HANG = "import time; time.sleep(1000)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + HANG


class Clock:
    """The time, as the test wants it."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("gpucheck.machine.worker_pool.process.time", clock)
    monkeypatch.setattr("gpucheck.machine.worker_pool.process.time", clock)
    return clock


class TestLadder:
    def test_it_asks_then_forces_then_gives_up(self, clock: Clock) -> None:
        ladder, sent = Ladder(grace=2.0), list[int]()
        assert not ladder.climb(sent.append)
        assert ladder.is_begun
        clock.now += 1.9
        assert not ladder.climb(sent.append)
        assert sent == [TERMINATE]
        clock.now += 0.2
        assert not ladder.climb(sent.append)
        assert sent == [TERMINATE, KILL]
        clock.now += 1.9
        assert not ladder.climb(sent.append)
        clock.now += 0.2
        assert ladder.climb(sent.append)
        assert sent == [TERMINATE, KILL]

    def test_where_both_signals_are_one_it_is_sent_once(
        self, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """On Windows there is no SIGKILL."""
        monkeypatch.setattr("gpucheck.machine.worker_pool.process.KILL", TERMINATE)
        ladder, sent = Ladder(grace=2.0), list[int]()
        ladder.climb(sent.append)
        clock.now += 3
        assert ladder.climb(sent.append)
        assert sent == [TERMINATE]


class TestWorkerProcess:
    def test_it_is_ended_when_its_own_time_is_over(self, clock: Clock) -> None:
        process, sent = WorkerProcess("a", 10.0, 1000.0, 2.0), list[int]()
        clock.now += 9
        assert not process.push(sent.append)
        process.allow(10.0)
        clock.now += 9
        process.push(sent.append)
        assert sent == []
        assert process.seconds_left == 1
        clock.now += 1
        process.push(sent.append)
        assert sent == [TERMINATE]
        assert (process.stopped_for, process.ran_over, process.waited) == ("deadline", True, 10)

    def test_it_is_ended_when_the_run_is_over(self, clock: Clock) -> None:
        process, sent = WorkerProcess("a", 10.0, 105.0, 2.0), list[int]()
        assert process.seconds_left == 5
        clock.now += 5
        process.push(sent.append)
        assert sent == [TERMINATE]
        assert (process.stopped_for, process.ran_over) == ("run-limit", False)

    def test_being_ended_it_gets_no_more_time(self, clock: Clock) -> None:
        process, sent = WorkerProcess("a", 10.0, 1000.0, 2.0), list[int]()
        clock.now += 10
        for _ in range(3):
            process.push(sent.append)
            process.allow(10.0)
            clock.now += 2
        assert sent == [TERMINATE, KILL]
        assert process.push(sent.append)

    def test_one_that_is_stopped_within_some_seconds_may_end_by_itself(self, clock: Clock) -> None:
        process, sent = WorkerProcess("a", 10.0, 1000.0, 2.0), list[int]()
        process.stop("peer-failed", within=3.0)
        process.stop("deadline")
        process.allow(10.0)
        clock.now += 2.9
        process.push(sent.append)
        assert sent == []
        clock.now += 0.2
        process.push(sent.append)
        assert process.is_signalled
        assert (process.stopped_for, process.ran_over) == ("peer-failed", False)

    def test_what_its_connections_lost_is_asked_when_a_quarter_of_its_time_is_over(
        self, clock: Clock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The other end may be ended first, and then this one ends by itself."""
        known = [[LostPackets("10.0.0.1", "10.0.0.2", 430, 98, 4)], []]
        monkeypatch.setattr(
            "gpucheck.machine.worker_pool.look.lost_packets", lambda _pid: known.pop(0)
        )
        process = WorkerProcess("a", 20.0, 1000.0, 2.0, looks=True)
        assert process.looks
        clock.now += 4.9
        process.push(lambda _number: None)
        assert process.looks.lost_packets == []
        clock.now += 0.2
        process.push(lambda _number: None)
        process.push(lambda _number: None)
        assert [packets.lost for packets in process.looks.lost_packets] == [98]
        clock.now += 14
        process.push(lambda _number: None)
        assert process.looks.is_begun
        assert [packets.lost for packets in process.looks.lost_packets] == [98], "closed by then"

    def test_one_that_is_gone_is_left_alone(self, clock: Clock) -> None:
        process, sent = WorkerProcess("a", 10.0, 1000.0, 2.0), list[int]()
        process.is_gone = True
        process.stop("deadline")
        clock.now += 100
        assert not process.push(sent.append)
        assert sent == []
        assert process.stopped_for is None


class Ears:
    """Hears what workers say."""

    def __init__(self) -> None:
        self.said: dict[str, list[Message]] = {}

    def __call__(self, process: WorkerProcess, message: Message) -> None:
        self.said.setdefault(process.key, []).append(message)

    def events(self, key: str) -> list[str]:
        return [str(message.get("event")) for message in self.said.get(key, [])]

    def has_ended(self, key: str) -> bool:
        return "ended" in self.events(key)


class Pools:
    """Makes pools over a fake torch and closes them."""

    def __init__(self) -> None:
        self.ears = Ears()
        self._made: list[WorkerPool] = []

    def make(self, *, forks: bool = True, python: str = sys.executable) -> WorkerPool:
        pool = WorkerPool(
            LiveHost().supervise, (python, BOOTSTRAP), self.ears,
            end=time.monotonic() + 60, grace=0.4, import_seconds=30.0, forks=forks,
        )  # fmt: skip
        self._made.append(pool)
        return pool

    def opened(self, *, forks: bool = True) -> WorkerPool:
        pool = self.make(forks=forks)
        assert pool.open() == ""
        self.until(pool, lambda: pool.state != "importing")
        return pool

    def until(self, pool: WorkerPool, done: Callable[[], bool]) -> None:
        end = time.monotonic() + 30
        while not done():
            assert time.monotonic() < end
            pool.tick(0.02)

    def close(self) -> None:
        for pool in self._made:
            pool.close()


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pools]:
    monkeypatch.setenv(MARK, mark := f"{os.getpid()}-pool")
    pools = Pools()
    yield pools
    pools.close()
    assert wait_until(lambda: not alive(mark), 5), "a process stayed behind"


@pytest.mark.parametrize("forks", [True, False])
def test_workers_answer_and_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pools: Pools, forks: bool  # noqa: FBT001
) -> None:  # fmt: skip
    Patient(tmp_path, monkeypatch)
    pool = pools.opened(forks=forks)
    assert pool.own_import_seconds == (0 if forks else 30)
    workers = [pool.start(key, ORDER, 30.0) for key in ("a", "b")]
    pools.until(pool, lambda: all(process.is_gone for process in workers))
    for key in ("a", "b"):
        assert "census" in pools.ears.events(key)
        assert pools.ears.said[key][-1]["status"] == 0
    assert [process.stopped_for for process in workers] == [None, None]
    assert all(process.pid for process in workers)


@pytest.mark.parametrize("forks", [True, False])
@pytest.mark.parametrize(("body", "number"), [(HANG, TERMINATE), (DEAF, KILL)])
def test_one_that_hangs_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pools: Pools, forks: bool,  # noqa: FBT001
    body: str, number: int,
) -> None:  # fmt: skip
    Patient(tmp_path, monkeypatch, tests={"one": body})
    pool = pools.opened(forks=forks)
    worker = pool.start("a", {"tests": ["one"], "seconds": {"one": 1.0}}, 2.0)
    pools.until(pool, lambda: worker.is_gone)
    assert pools.ears.said["a"][-1]["signal"] == number
    assert (worker.stopped_for, worker.is_unkillable) == ("deadline", False)


@pytest.mark.parametrize("kind", [ForkingSpawner, SeparateSpawner])
def test_one_that_no_signal_ends_is_given_up_and_the_others_go_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pools: Pools,
    kind: type[ForkingSpawner] | type[SeparateSpawner],
) -> None:
    """A process that is stuck in a driver: no signal reaches it."""
    sent: list[tuple[str, int]] = []
    monkeypatch.setattr(kind, "signal", lambda _self, *signals: sent.append(signals))
    Patient(tmp_path, monkeypatch, tests={"one": HANG})
    pool = pools.opened(forks=kind is ForkingSpawner)
    stuck = pool.start("a", {"tests": ["one"]}, 0.2)
    pools.until(pool, lambda: stuck.is_gone)
    assert sent == [("a", TERMINATE), ("a", KILL)]
    assert stuck.is_unkillable
    assert pools.ears.said["a"][-1] == {"event": "ended"}
    other = pool.start("b", ORDER, 30.0)
    pools.until(pool, lambda: other.is_gone)
    assert pools.ears.said["b"][-1]["status"] == 0


def test_when_the_zygote_dies_so_do_its_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pools: Pools
) -> None:
    Patient(tmp_path, monkeypatch, tests={"one": HANG, "two": "os.kill(os.getppid(), 9)\n" + HANG})
    pool = pools.opened()
    workers = [
        pool.start(key, {"tests": [name]}, 30.0) for key, name in (("a", "one"), ("b", "two"))
    ]
    pools.until(pool, lambda: all(process.is_gone for process in workers))
    assert {pools.ears.said[key][-1]["signal"] for key in ("a", "b")} == {9}
    late = pool.start("c", ORDER, 30.0)
    assert late.is_gone
    assert "has ended" in late.problem
    assert not pools.ears.has_ended("c")
    pool.stop_forking()
    late = pool.start("c", ORDER, 30.0)
    pools.until(pool, lambda: late.is_gone)
    assert pools.ears.said["c"][-1]["status"] == 0


def test_another_zygote_takes_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pools: Pools
) -> None:
    Patient(tmp_path, monkeypatch, tests={"one": HANG})
    pool = pools.opened()
    first = pool.start("a", {"tests": ["one"]}, 30.0)
    pools.until(pool, lambda: first.pid != 0)
    assert pool.renew("it had to be ended") == ""
    assert first.is_gone
    assert pools.ears.said["a"][-1] == {"event": "ended", "printed": "it had to be ended"}
    pools.until(pool, lambda: pool.state == "ready")
    second = pool.start("b", ORDER, 30.0)
    pools.until(pool, lambda: second.is_gone)
    assert pools.ears.said["b"][-1]["status"] == 0


@pytest.mark.parametrize(
    ("before", "event"),
    [("raise ImportError('no')", "import-failed"), ("import os; os._exit(3)", "ended")],
)
def test_an_import_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pools: Pools, before: str, event: str
) -> None:
    Patient(tmp_path, monkeypatch, before=before)
    pool = pools.opened()
    assert pool.state == "failed"
    assert pools.ears.events("")[-1] == event
    assert pool.start("a", ORDER, 1.0).problem


def test_an_import_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pools: Pools
) -> None:
    Patient(tmp_path, monkeypatch, before=HANG)
    pool = pools.make()
    pool.open()
    assert pool.zygote is not None
    pool.zygote.allow(0.5)
    pools.until(pool, lambda: pool.state != "importing")
    assert pool.state == "failed"
    assert pools.ears.said[""][-1]["signal"] == TERMINATE
    assert pool.zygote.stopped_for == "deadline"


def test_an_interpreter_that_is_not_there(pools: Pools) -> None:
    pool = pools.make(python="/nonsense/python")
    assert "did not start" in pool.open()
    assert pool.state == "failed"
    pool.tick(0.01)
    assert pool.start("a", ORDER, 1.0).problem


def test_sessions_are_ended_by_the_same_code_on_both_sides() -> None:
    """A worker can import nothing of the machine's, and the machine nothing of the worker's."""
    ours, theirs = Path(ours_module.__file__), Path(theirs_module.__file__)
    assert ours.read_bytes() == theirs.read_bytes()


def test_what_a_process_printed_is_kept_from_its_stack_on() -> None:
    printed = "x" * 9000 + "Current thread 0x1\n  File a\nNCCL WARN no\n"
    found = worker_exit({"signal": 15, "printed": printed}, "a stage", killed="no end")
    assert (found.status, found.kind, found.detail) == ("timed-out", "timed-out", "no end")
    assert found.data["printed"].startswith("Current thread")
    assert found.data["nccl_warnings"] == ["no"]


@pytest.mark.parametrize("answer", [r'"\ud800"', r'"{\"event\": \"\\ud800\"}"'])
def test_half_a_character_from_a_lying_zygote_ends_nothing(answer: str) -> None:
    """Nobody wrote the worker's side: any code in the target interpreter may speak for it."""
    line = f'{{"event": "said", "worker": "a", "said": {answer}}}'
    spawner = ForkingSpawner(
        LiveHost().supervise,
        [sys.executable, "-c", f"import sys; m = sys.argv[1]; print(m + {line!r} + m)"],
    )
    heard: list[tuple[str, Message]] = []
    end = time.monotonic() + 20
    while not heard and time.monotonic() < end:
        heard += spawner.events(0.1)
    spawner.close()
    (key, message), *_rest = heard
    assert key == "a"
    str(message).encode()


def test_a_worker_that_says_twice_that_it_has_ended() -> None:
    say_twice = (
        "import json, sys; m = sys.argv[-2]; "
        "e = m + json.dumps({'event': 'ended', 'status': 0}) + m; "
        "sys.stdout.write(e + e); sys.stdout.flush(); sys.stdin.read()"
    )
    spawner = SeparateSpawner(LiveHost().supervise, [sys.executable, "-c", say_twice])
    assert spawner.start("a", {}) == ""
    heard: list[tuple[str, Message]] = []
    end = time.monotonic() + 20
    while not heard and time.monotonic() < end:
        heard += spawner.events(0.1)
    spawner.close()
    assert [message["event"] for _key, message in heard] == ["ended", "ended"]
