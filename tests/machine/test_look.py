"""What is seen of real processes before they are ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from gpucheck.machine.supervised import CONTINUE, TERMINATE
from gpucheck.machine.worker_pool import look
from gpucheck.machine.worker_pool.look import Looks
from gpucheck.machine.worker_pool.process import WorkerProcess

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="it is read from /proc"),
]


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"]) as process:
        yield process
        process.kill()


def until(pid: int, state: str) -> None:
    end = time.monotonic() + 20
    while (seen := look.look(pid)) is not None and seen.state != state:
        assert time.monotonic() < end, seen
        time.sleep(0.01)


def test_a_process_that_sleeps_is_stopped_and_ends(sleeper: "subprocess.Popen[bytes]") -> None:
    until(sleeper.pid, "S")
    seen = look.look(sleeper.pid)
    assert seen is not None
    assert seen.cpu >= 0
    assert seen.files is not None
    assert 0 < seen.files < 100
    assert seen.file_limit is None or seen.file_limit > seen.files
    os.kill(sleeper.pid, signal.SIGSTOP)
    until(sleeper.pid, "T")
    sleeper.kill()
    sleeper.wait()
    assert look.look(sleeper.pid) is None
    assert look.look(0) is None


def test_a_stopped_process_is_seen_twice_and_continued_to_its_end(
    sleeper: "subprocess.Popen[bytes]",
) -> None:
    process = WorkerProcess("a", 0.2, time.monotonic() + 60, 5.0, looks=True)
    process.pid = sleeper.pid
    os.kill(sleeper.pid, signal.SIGSTOP)
    until(sleeper.pid, "T")
    sent: list[int] = []
    begun = time.monotonic()

    def send(number: int) -> None:
        sent.append(number)
        os.kill(sleeper.pid, number)

    while not process.is_signalled:
        assert not process.push(send)
        time.sleep(0.01)
    assert time.monotonic() - begun >= look.APART
    assert sent == [TERMINATE, CONTINUE]
    assert sleeper.wait(10) == -TERMINATE
    assert process.looks is not None
    assert [
        process_look.state for process_look in process.looks.worker if process_look is not None
    ] == ["T", "T"]
    assert process.looks.zygote == (None, None)


def test_a_phase_that_begins_makes_what_was_seen_void(sleeper: "subprocess.Popen[bytes]") -> None:
    looks, begun = Looks(), list[bool]()
    for act in (looks.restart, lambda pid: looks.begin(pid, 0)) * 2:
        act(sleeper.pid)
        begun.append(looks.is_begun)
    assert begun == [False, True] * 2
    looks.finish(sleeper.pid, 0)
    assert looks.cpu is not None


def test_the_wait_for_a_processor_is_counted_from_the_begin_of_a_phase(
    sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = iter([5.0, 6.0, 9.5])
    monkeypatch.setattr(look, "waited_for_processor", lambda _pid: next(waited))
    looks = Looks()
    assert looks.waited is None
    looks.restart(sleeper.pid)
    looks.begin(sleeper.pid, 0)
    looks.finish(sleeper.pid, 0)
    assert looks.waited == 4.5


def test_a_process_without_a_number_has_used_nothing(sleeper: "subprocess.Popen[bytes]") -> None:
    looks = Looks()
    looks.restart(0)
    looks.finish(sleeper.pid, 0)
    assert looks.cpu is not None
    assert looks.waited is not None


def test_where_nothing_is_seen_nothing_is_waited_for() -> None:
    process = WorkerProcess("a", 0.0, time.monotonic() + 60, 5.0, looks=True)
    sent: list[int] = []
    assert not process.push(sent.append)
    assert sent == [TERMINATE]
