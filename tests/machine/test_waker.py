"""A stopped process is woken when its time is over, and nothing is left behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from outside_faults import children, state

from gpucheck.machine import waker

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="states are read from /proc"),
]
SRC = str(Path(waker.__file__).parents[2])
_PROGRAM = """
import sys, time
sys.path.insert(0, {src!r})
from gpucheck.machine import waker
made = waker.start({seconds})
print("ready", flush=True)
end = time.monotonic() + {life}
while time.monotonic() < end:
    time.sleep(0.02)
made.end()
"""


@contextmanager
def program(seconds: float, life: float) -> "Iterator[subprocess.Popen[str]]":
    """A program that is woken after some seconds, and would end by itself after its life."""
    text = _PROGRAM.format(src=SRC, seconds=seconds, life=life)
    one = subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert one.stdout is not None
    assert one.stdout.readline() == "ready\n"
    try:
        yield one
    finally:
        one.kill()
        one.communicate()


def gone(pid: int) -> bool:
    end = time.monotonic() + 5
    while state(pid) != "Z" and time.monotonic() < end:
        time.sleep(0.02)
    return state(pid) == "Z"


def test_a_stopped_process_is_continued_and_ends() -> None:
    with program(1.0, 0.5) as one:
        (watcher,) = children(one.pid)
        one.send_signal(signal.SIGSTOP)
        assert one.wait(10) == 0
        assert gone(watcher)


def test_a_process_that_is_stopped_again_is_killed() -> None:
    with program(0.5, 60) as one:
        one.send_signal(signal.SIGSTOP)
        end = time.monotonic() + 20
        while one.poll() is None and time.monotonic() < end:
            if state(one.pid) != "T":
                one.send_signal(signal.SIGSTOP)
            time.sleep(0.02)
        assert one.wait(1) == -signal.SIGKILL


def test_a_process_that_runs_is_left_alone() -> None:
    with program(0.1, 3.0) as one:
        assert one.wait(10) == 0


def test_it_ends_with_a_process_that_was_killed() -> None:
    with program(60, 60) as one:
        (watcher,) = children(one.pid)
        one.kill()
        one.wait(5)
        assert gone(watcher)


def test_it_holds_no_stream_open() -> None:
    with program(60, 60) as one:
        (watcher,) = children(one.pid)
        files = Path(f"/proc/{watcher}/fd")
        end = time.monotonic() + 5
        while any(files.iterdir()) and time.monotonic() < end:
            time.sleep(0.02)
        assert not any(files.iterdir())


def test_a_group_that_is_stopped_as_a_whole_stays_so() -> None:
    """As by Ctrl-Z: who stopped it continues it."""
    with program(0.5, 0.2) as one:
        os.killpg(one.pid, signal.SIGSTOP)
        time.sleep(3.0)
        assert state(one.pid) == "T"
        os.killpg(one.pid, signal.SIGCONT)
        assert one.wait(5) == 0
