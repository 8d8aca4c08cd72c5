"""A signal while a child is made, or while children are ended: each ends, none is a parent."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from left_behind import heed_signals

from gpucheck.machine import process_end
from gpucheck.machine.children import Children, Done, Said, Tell
from gpucheck.machine.supervised import is_running

pytestmark = pytest.mark.process


class Told(Exception):  # noqa: N818  # what a handler raises, as Ctrl-C does
    pass


@pytest.fixture(autouse=True)
def _handled() -> Iterator[None]:
    def tell(_number: int, _frame: object) -> None:
        raise Told

    before = signal.signal(signal.SIGTERM, tell)
    yield
    signal.signal(signal.SIGTERM, before)


def _tell_this_thread() -> None:
    """Whoever runs the tests may have threads of its own, which hold no signal back."""
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)


def _fork_and(then: Callable[[int], None]) -> Callable[[], int]:
    """Return a fork after which something happens at once, with what it has returned."""
    fork = os.fork

    def forked() -> int:
        pid = fork()
        then(pid)
        return pid

    return forked


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _left_of(pids: list[int]) -> list[int]:
    """Return which of these children still live, and reap the others."""
    end = time.monotonic() + 10
    while (left := [pid for pid in pids if _is_alive(pid)]) and time.monotonic() < end:
        time.sleep(0.01)
        for pid in left:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
    return left


def test_a_child_is_known_before_a_handler_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def signalled(pid: int) -> None:
        if pid:
            made.append(pid)
            _tell_this_thread()

    monkeypatch.setattr(os, "fork", _fork_and(signalled))
    children = Children()
    with pytest.raises(Told):
        children.start("hangs", lambda _tell: time.sleep(60), time.monotonic() + 60)
    assert children.names() == ["hangs"]
    children.stop()
    assert _left_of(made) == []


def test_a_signal_does_not_interrupt_the_end_of_the_children(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []
    kill_group = os.killpg

    def kill_and_tell(pid: int, number: int) -> None:
        _tell_this_thread()
        kill_group(pid, number)  # it may not lead its group yet

    monkeypatch.setattr(os, "fork", _fork_and(made.append))
    children = Children()
    for name in ("one", "two", "three"):
        children.start(name, lambda _tell: time.sleep(60), time.monotonic() + 60)
    monkeypatch.setattr(os, "killpg", kill_and_tell)
    with pytest.raises(Told):
        children.stop()
    assert _left_of(made) == []
    assert children.names() == []


_FIRST_THEN_OTHERS = """
import os, signal
signal.signal(signal.SIGTERM, signal.SIG_DFL)
try:
    {begin}
finally:
    os.kill(os.getpid(), signal.SIGHUP)
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)
    print("cleaned up")
"""
_ALL_AT_ONCE = """
import os, signal
import gpucheck.cli as it
try:
    with it._leaving_on_signals():
        all_of_them = signal.SIGHUP, signal.SIGINT, signal.SIGTERM
        signal.pthread_sigmask(signal.SIG_BLOCK, all_of_them)
        for number in all_of_them:
            os.kill(os.getpid(), number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, all_of_them)
finally:
    print("cleaned up")
"""


@pytest.mark.parametrize(
    ("begin", "status"),
    [
        (
            """import gpucheck.cli as it
    with it._leaving_on_signals(): os.kill(os.getpid(), 15)""",
            143,
        ),
        ("import gpucheck.programs.examiner as it\n    it._leave(15, None)", 1),
    ],
    ids=["command", "examiner"],
)
def test_further_signals_do_not_interrupt_the_cleanup(begin: str, status: int) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _FIRST_THEN_OTHERS.format(begin=begin)],
        capture_output=True, text=True, timeout=60, check=False, preexec_fn=heed_signals,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (status, "cleaned up\n", "")


def test_signals_that_come_at_once_end_it_once() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", _ALL_AT_ONCE], capture_output=True, text=True, timeout=60,
        check=False, preexec_fn=heed_signals,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (129, "cleaned up\n", "")


_IN_A_CALLBACK = """
import os, signal, sys, time
import gpucheck.cli as it
it._SOON = {soon}
class Dies:
    def __del__(self):
        os.kill(os.getpid(), {number})
        time.sleep(0.01)
try:
    with it._leaving_on_signals():
        Dies()
        time.sleep(300)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.parametrize("soon", [0.01, 0.0])  # at once: while the hook still runs, as under load
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_callback_of_python_is_not_lost(number: int, soon: float) -> None:
    code = _IN_A_CALLBACK.format(number=int(number), soon=soon)
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False,
        preexec_fn=heed_signals,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout, ran.stderr) == (128 + number, "", "")


def test_a_child_never_runs_its_parents_handlers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    parent = os.getpid()

    def signalled(pid: int) -> None:
        if not pid:
            os.kill(os.getpid(), signal.SIGTERM)

    def work(tell: Tell) -> None:
        (tmp_path / "worked").touch()
        tell.answer(b"")

    monkeypatch.setattr(os, "fork", _fork_and(signalled))
    children = Children()
    try:
        children.start("told", work, time.monotonic() + 20)
        heard = [event for _ in range(40) for event in children.wait(time.monotonic() + 0.05)]
    except Told:
        if os.getpid() != parent:  # this is the child, in its parent's code
            os._exit(0)
        raise
    (done,) = heard
    assert isinstance(done, Done)
    assert (done.status, str(done.problem)) == ("crashed", "killed by SIGTERM")
    assert not (tmp_path / "worked").exists()


_TWO_THAT_HANG = """
import ctypes, sys, time
from gpucheck.machine import LiveHost, nvml
from gpucheck.machine.children import Children

def hang(tell):
    nvml.ask = lambda host: ctypes.CDLL(None).pause()
    LiveHost().nvml()

children = Children()
for name in ("one", "two"):
    children.start(name, hang, time.monotonic() + 60)
print(*[child._pid for child in children._under_way.values()], flush=True)
while children.names():
    children.wait(time.monotonic() + 0.2)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="what the kernel of Linux does")
def test_children_in_a_driver_end_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _TWO_THAT_HANG], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        made = [int(word) for word in parent.stdout.readline().split()]
        assert len(made) == 2
        time.sleep(0.2)  # they hang by now
        assert all(is_running(pid) for pid in made)
        parent.kill()
    end = time.monotonic() + 10
    while any(is_running(pid) for pid in made) and time.monotonic() < end:
        time.sleep(0.01)
    left = [pid for pid in made if is_running(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def test_a_child_whose_parent_is_gone_does_not_begin() -> None:
    pid = os.fork()
    if pid == 0:
        try:
            process_end.end_with_parent()  # no child of ours: nothing happens
            process_end.is_child_of(1 << 30)
            process_end.end_with_parent()
        finally:
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 1


def test_signals_are_held_back_no_longer() -> None:
    children = Children()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    heard: list[object] = []

    def work(tell: Tell) -> None:
        tell.answer(str(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()))).encode())

    children.start("asks", work, time.monotonic() + 20)
    while children.names():
        heard += children.wait(time.monotonic() + 0.25)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before
    output = next(event for event in heard if isinstance(event, Said))
    assert output.data == str(sorted(before)).encode()
