"""A program under supervision: heard while it runs, and never waited for."""

import os
import sys
import threading
import time
from pathlib import Path
from typing import IO

import pytest

from gpucheck.machine import supervised
from gpucheck.machine.supervised import KILL, TERMINATE, Supervised, is_running, start, wait

pytestmark = pytest.mark.process


def program(code: str) -> Supervised:
    answer = start([sys.executable, "-S", "-c", code], os.environ)
    assert answer.value is not None
    return answer.value


def ended(child: Supervised) -> int:
    end = time.monotonic() + 10
    while (status := child.status()) is None and time.monotonic() < end:
        wait([child], 0.1)
    assert status is not None
    return status


def vanishes(pid: int) -> bool:
    """Whether the process is gone within two seconds."""
    end = time.monotonic() + 2
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("selects", [True, False])
def test_it_is_written_to_and_heard(
    monkeypatch: pytest.MonkeyPatch, selects: bool  # noqa: FBT001
) -> None:  # fmt: skip
    monkeypatch.setattr(supervised, "_SELECTS", selects)
    child = program("import sys; print(sys.stdin.readline().upper()); print('no', file=sys.stderr)")
    child.send(b"hello\n")
    assert ended(child) == 0
    assert child.stdout() == b"HELLO\n\n"
    assert child.stdout() == b""
    assert child.printed() == "no\n"
    child.abandon()


def test_only_the_end_of_what_it_prints_is_kept() -> None:
    child = program("import sys; sys.stderr.write('x' * 500000 + 'end')")
    assert ended(child) == 0
    assert child.printed().endswith("end")
    assert len(child.printed()) <= 32 * 1024
    child.abandon()


def test_a_signal_ends_its_whole_group() -> None:
    child = program(
        "import os, time\npid = os.fork()\nif pid: print(pid, flush=True)\ntime.sleep(60)"
    )
    text = b""
    while b"\n" not in text:
        wait([child], 1)
        text += child.stdout()
    child.signal(TERMINATE)
    assert ended(child) == -TERMINATE
    child.abandon()
    assert vanishes(int(text))


def test_one_that_holds_the_pipes_open_is_not_waited_for() -> None:
    child = program("import os, time\nif os.fork() == 0:\n    os.setsid(); time.sleep(30)")
    start_time = time.monotonic()
    assert ended(child) == 0
    assert time.monotonic() - start_time < 20
    child.abandon()


def test_one_whose_offspring_goes_on_writing_is_not_read_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process in another session may hold the pipe, and fill it as fast as it is read."""
    child = program("")
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    reads = iter([b"x" * 65536] * 1000)
    monkeypatch.setattr("gpucheck.machine.supervised.os.read", lambda _handle, _size: next(reads))
    assert child.status() == 0
    monkeypatch.undo()
    assert 0 < len(child.stdout()) < 4 * 2**20
    child.abandon()


LEAVES_BEHIND = (
    "import subprocess, sys\n"
    "left = subprocess.Popen([sys.executable, '-S', '-c', {code!r}], start_new_session=True)\n"
    "print(left.pid, flush=True)"
)
"""A program that ends; what it has started holds its pipes."""


@pytest.fixture
def pumped(monkeypatch: pytest.MonkeyPatch) -> list[IO[bytes]]:
    """Return the streams that threads read, as on Windows, whose pipes cannot be selected."""
    streams: list[IO[bytes]] = []
    pump = Supervised._pump  # noqa: SLF001

    def late(self: Supervised, name: str, stream: IO[bytes]) -> None:
        streams.append(stream)
        time.sleep(0.4)
        pump(self, name, stream)

    monkeypatch.setattr(supervised, "_SELECTS", False)
    monkeypatch.setattr(Supervised, "_pump", late)
    return streams


def are_closed(streams: list[IO[bytes]]) -> bool:
    """Whether the streams are closed within five seconds."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        if streams and all(stream.closed for stream in streams):
            return True
        time.sleep(0.01)
    return False


def test_the_last_words_are_heard_where_threads_read(pumped: list[IO[bytes]]) -> None:
    child = program("print('x' * 40000 + 'end')")
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert child.status() == 0
    assert child.stdout().endswith(b"xend\n")
    child.abandon()
    assert are_closed(pumped)


def test_a_stream_that_a_thread_reads_is_closed_by_that_thread(pumped: list[IO[bytes]]) -> None:
    """The C runtime of Windows locks a descriptor while it is read: closing it would wait."""
    child = program(LEAVES_BEHIND.format(code="import time; time.sleep(60)"))
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    begun = time.monotonic()
    assert [child.status() for _ in range(9)] == [0] * 9
    assert time.monotonic() - begun < 4  # it waits for the threads once
    left = int(child.stdout())
    child.abandon()
    time.sleep(0.1)
    assert [stream.closed for stream in pumped] == [False, False]
    os.kill(left, KILL)
    assert are_closed(pumped)


def test_offspring_that_goes_on_writing_is_not_read_for_ever_where_threads_read(
    pumped: list[IO[bytes]],
) -> None:
    code = "import time\nwhile True: print('x' * 999, flush=True); time.sleep(0.01)"
    child = program(LEAVES_BEHIND.format(code=code))
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert child.status() == 0
    left = int(child.stdout().split()[0])
    child.abandon()
    # Its stdout breaks once nobody reads that, and so it ends.
    assert vanishes(left)
    assert are_closed(pumped)


def test_what_still_runs_is_killed_when_it_is_abandoned() -> None:
    child = program("import time; time.sleep(60)")
    child.abandon()
    assert child.status() == -KILL


def test_writing_to_one_that_has_ended_is_no_fault() -> None:
    child = program("")
    ended(child)
    child.send(b"x" * 100_000)
    child.abandon()


@pytest.mark.parametrize("can_wait", [True, False])
def test_one_that_does_not_read_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, can_wait: bool  # noqa: FBT001
) -> None:  # fmt: skip
    """A pipe takes 64 KiB. Windows has no pipes that refuse more instead of waiting."""
    monkeypatch.setattr(supervised, "_CAN_WAIT", can_wait)
    child = program("import time; time.sleep(60)")
    begun = time.monotonic()
    watchdog = threading.Timer(15, os.kill, (child.pid, KILL))
    watchdog.start()
    for _ in range(10):
        child.send(b"x" * 200_000)
        wait([child], 0.01)
    child.hang_up()
    child.abandon()
    watchdog.cancel()
    assert time.monotonic() - begun < 10  # seconds


@pytest.mark.parametrize("can_wait", [True, False])
def test_one_that_reads_late_gets_everything(
    monkeypatch: pytest.MonkeyPatch, can_wait: bool  # noqa: FBT001
) -> None:  # fmt: skip
    monkeypatch.setattr(supervised, "_CAN_WAIT", can_wait)
    child = program(
        "import sys, time; time.sleep(0.3)\n"
        "print(sum(len(sys.stdin.readline()) for _ in range(3)), flush=True)"
    )
    for _ in range(3):
        child.send(b"x" * 199_999 + b"\n")
    assert ended(child) == 0
    assert child.stdout() == b"600000\n"
    child.abandon()


def test_one_that_leaves_too_much_unread_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "_MOST_UNREAD", 300_000)
    child = program("import sys, time; time.sleep(0.3); print(len(sys.stdin.read()))")
    for _ in range(5):
        child.send(b"x" * 100_000)
    assert ended(child) == 0
    assert 0 < int(child.stdout()) < 400_000
    child.abandon()


def test_one_that_cannot_be_started_is_a_problem() -> None:
    answer = start(["/nonsense/python"], {})
    assert answer.value is None
    assert "did not start" in answer.problem


def test_one_that_dies_late_is_no_zombie_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    child = program("import time; time.sleep(60)")
    with monkeypatch.context() as patched:
        patched.setattr(Supervised, "signal", lambda _self, _number: None)
        patched.setattr(supervised, "end_session", lambda _pid: None)
        child.abandon()
    assert not vanishes(child.pid)
    os.kill(child.pid, KILL)
    end = time.monotonic() + 5
    while is_running(child.pid) and time.monotonic() < end:
        time.sleep(0.01)
    assert Path(f"/proc/{child.pid}").exists(), "somebody has waited for it already"
    another = program("")
    ended(another)
    another.abandon()
    assert vanishes(child.pid)
