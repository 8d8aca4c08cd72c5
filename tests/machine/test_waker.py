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

from gpucheck.cluster.commands.preflight import COMMAND
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
    process = subprocess.Popen(
        [sys.executable, "-c", text], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def gone(pid: int) -> bool:
    end = time.monotonic() + 5
    while state(pid) != "Z" and time.monotonic() < end:
        time.sleep(0.02)
    return state(pid) == "Z"


def test_a_stopped_process_is_continued_and_ends() -> None:
    with program(1.0, 0.5) as process:
        (watcher,) = children(process.pid)
        process.send_signal(signal.SIGSTOP)
        assert process.wait(10) == 0
        assert gone(watcher)


def test_a_process_that_is_stopped_again_is_killed() -> None:
    with program(0.5, 60) as process:
        process.send_signal(signal.SIGSTOP)
        end = time.monotonic() + 20
        while process.poll() is None and time.monotonic() < end:
            if state(process.pid) != "T":
                process.send_signal(signal.SIGSTOP)
            time.sleep(0.02)
        assert process.wait(1) == -signal.SIGKILL


def test_the_guard_of_a_preflight_stands_before_anything_is_imported() -> None:
    """A task that is stopped in the moment before is woken by nobody: 0.2 s of imports were."""
    text = (
        f"import sys; sys.path.insert(0, {SRC!r}); before = set(sys.modules)\n"
        "from gpucheck.machine import waker; print(*sorted(set(sys.modules) - before))"
    )
    finished = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True
    )
    assert finished.stdout.split() == ["gpucheck", "gpucheck.machine", "gpucheck.machine.waker"]


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("preflight", 300),
        ("preflight --device cpu --timeout 60 -q", 60),
        ("--lang zh --tables=x preflight --timeout=20 --timeout 25.5", 25.5),
        ("preflight --timeout", 300),
        ("preflight --timeout soon", 300),
        ("preflight --timeout=-5", 300),
        ("preflight --timeout inf", 300),
        ("preflight --timeout nan", 300),
        ("", None),
        ("check preflight", None),
        ("explain preflight", None),
        ("--lang preflight check", None),
    ],
)
def test_which_command_line_is_guarded(
    monkeypatch: pytest.MonkeyPatch, words: str, seconds: float | None
) -> None:
    asked: list[float] = []

    def start(seconds: float) -> waker.Waker:
        asked.append(seconds)
        return waker.Waker(0)

    monkeypatch.setattr(waker, "start", start)
    waker.guard(words.split())
    assert asked == ([] if seconds is None else [seconds + 6])


def test_without_a_limit_it_is_that_of_the_command() -> None:
    (option,) = (parameter for parameter in COMMAND.params if parameter.name == "timeout")
    assert option.default == waker.USUAL_SECONDS


def test_a_preflight_that_is_stopped_at_once_ends() -> None:
    """As soon as its guard stands, long before the command line is read."""
    command = [sys.executable, "-m", "gpucheck", "preflight", "--timeout", "10", "--device", "cpu"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    ) as process:
        while not children(process.pid):
            assert process.poll() is None
        process.send_signal(signal.SIGSTOP)
        (watcher,) = children(process.pid)
        try:
            assert process.wait(40) == 3
        finally:
            process.kill()
        process.communicate()
    assert gone(watcher)


def test_a_process_that_runs_is_left_alone() -> None:
    with program(0.1, 3.0) as process:
        assert process.wait(10) == 0


def test_it_ends_with_a_process_that_was_killed() -> None:
    with program(60, 60) as process:
        (watcher,) = children(process.pid)
        process.kill()
        process.wait(5)
        assert gone(watcher)


def test_it_holds_no_stream_open() -> None:
    with program(60, 60) as process:
        (watcher,) = children(process.pid)
        files = Path(f"/proc/{watcher}/fd")
        end = time.monotonic() + 5
        while any(files.iterdir()) and time.monotonic() < end:
            time.sleep(0.02)
        assert not any(files.iterdir())


def test_a_group_that_is_stopped_as_a_whole_stays_so() -> None:
    """As by Ctrl-Z: who stopped it continues it."""
    with program(0.5, 0.2) as process:
        os.killpg(process.pid, signal.SIGSTOP)
        time.sleep(3.0)
        assert state(process.pid) == "T"
        os.killpg(process.pid, signal.SIGCONT)
        assert process.wait(5) == 0
