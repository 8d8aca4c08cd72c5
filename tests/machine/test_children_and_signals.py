"""A signal in the moment in which a child is made: the child is killed, and is no second parent."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpucheck.machine.children import Children, Done, Said, Tell

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


def test_a_child_is_known_before_a_handler_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def signalled(pid: int) -> None:
        if pid:
            made.append(pid)
            os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(os, "fork", _fork_and(signalled))
    children = Children()
    with pytest.raises(Told):
        children.start("hangs", lambda _tell: time.sleep(60), time.monotonic() + 60)
    assert children.names() == ["hangs"]
    children.stop()
    end = time.monotonic() + 10
    while _is_alive(made[0]) and time.monotonic() < end:
        time.sleep(0.01)
        os.waitpid(made[0], os.WNOHANG)
    assert not _is_alive(made[0])


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
    said = next(event for event in heard if isinstance(event, Said))
    assert said.data == str(sorted(before)).encode()
