"""Items worked on by several processes: in order, and a process that is killed costs one item."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from left_behind import MARK, alive, heed_signals, wait_until

from gpucheck.ticket import processes
from gpucheck.ticket.processes import LostItem, in_processes

pytestmark = pytest.mark.process


def nothing() -> None:
    pass


def doubled(item: int, *, deadly: frozenset[int] = frozenset()) -> int:
    if item in deadly:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * item


def refuses(item: int) -> int:
    message = f"item {item}"
    raise ValueError(message)


def waits(item: int, *, folder: Path) -> int:
    (folder / str(os.getpid())).touch()
    time.sleep(60)
    return item


def killed_once(item: int, *, mark: Path) -> int:
    if item == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * item


def test_answers_come_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_AHEAD", 20)
    found = list(in_processes(doubled, range(200), 3, nothing))
    assert found == [(item, 2 * item) for item in range(200)]


def test_an_item_that_kills_its_process_costs_no_other_its_answer() -> None:
    deadly = frozenset({0, 20, 99})
    found = list(in_processes(partial(doubled, deadly=deadly), range(100), 2, nothing))
    assert found == [(item, LostItem.KILLED if item in deadly else 2 * item) for item in range(100)]


def test_a_process_that_is_killed_once_costs_nothing(tmp_path: Path) -> None:
    work = partial(killed_once, mark=tmp_path / "killed")
    assert list(in_processes(work, range(40), 2, nothing)) == [(at, 2 * at) for at in range(40)]
    assert (tmp_path / "killed").exists()


def test_where_every_process_is_killed_it_ends_soon() -> None:
    work = partial(doubled, deadly=frozenset(range(10_000)))
    found = [lost for _item, lost in in_processes(work, range(10_000), 2, nothing)]
    assert set(found) == {LostItem.KILLED, LostItem.NOT_TRIED}
    assert found.count(LostItem.KILLED) <= processes._MOST_KILLED + 2  # noqa: SLF001  # as it says


def test_a_fault_of_the_work_is_that_of_the_whole() -> None:
    with pytest.raises(ValueError, match="item 0"):
        list(in_processes(refuses, range(10), 2, nothing))


def test_no_process_is_left_when_nobody_wants_more(tmp_path: Path) -> None:
    found = in_processes(doubled, range(1000), 2, partial(_note, tmp_path))
    assert next(found) == (0, 0)
    found.close()
    made = [int(path.name) for path in tmp_path.iterdir()]
    assert made
    assert not any(Path(f"/proc/{pid}").exists() for pid in made)


def _note(folder: Path) -> None:
    (folder / str(os.getpid())).touch()


INTERRUPTED = """
import sys
from functools import partial
from pathlib import Path
from test_processes import nothing, waits
from gpucheck.cli import _leaving_on_signals
from gpucheck.ticket.processes import in_processes
try:
    with _leaving_on_signals():
        list(in_processes(partial(waits, folder=Path(sys.argv[1])), range(100), 2, nothing))
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of Unix")
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"]
)
def test_a_signal_for_all_of_them_ends_them_without_a_word(
    number: int, status: int, tmp_path: Path
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)], stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(Path(__file__).parent), *sys.path))},
        start_new_session=True, preexec_fn=heed_signals,  # noqa: PLW1509
    ) as parent:  # fmt: skip
        end = time.monotonic() + 30
        while len(made := list(tmp_path.iterdir())) < 2 and time.monotonic() < end:
            time.sleep(0.01)
        os.killpg(parent.pid, number)
        try:
            _out, errors = parent.communicate(timeout=30)
        finally:
            parent.kill()
    assert (parent.returncode, errors) == (status, "")
    assert len(made) == 2
    assert not any(Path(f"/proc/{path.name}").exists() for path in made)


IDLE = """
import sys, time
from functools import partial
from pathlib import Path
from test_processes import _note, doubled
from gpucheck.ticket.processes import in_processes
found = in_processes(doubled, range(100), 3, partial(_note, Path(sys.argv[1])))
next(found)
print("ready", flush=True)
time.sleep(60)
"""
SEVERAL = 400
"""Tickets, of which each takes a moment."""


@contextlib.contextmanager
def _started(words: list[str], mark: str) -> "Iterator[subprocess.Popen[str]]":
    """Start a command; in the end kill what is left of it."""
    with subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, text=True, start_new_session=True,
        env={
            **os.environ, MARK: mark,
            "PYTHONPATH": os.pathsep.join((str(Path(__file__).parent), *sys.path)),
        },
    ) as parent:  # fmt: skip
        try:
            yield parent
        finally:
            for pid in alive(mark):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the processes of Linux")
def test_processes_without_work_end_with_their_parent(tmp_path: Path) -> None:
    """The end of their pipe tells them: no other process may hold its other end open."""
    mark = os.urandom(8).hex()
    with _started(["-c", IDLE, str(tmp_path)], mark) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        assert wait_until(lambda: len(list(tmp_path.iterdir())) == 3)
        parent.kill()
        parent.wait()
        assert wait_until(lambda: not alive(mark), 10)


@pytest.mark.skipif(sys.platform != "linux", reason="a signal at the parent's death")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGUSR1, signal.SIGALRM])
@pytest.mark.parametrize("state", ["at work", "stopped"])
def test_processes_at_work_end_with_a_parent_that_is_killed(
    tmp_path: Path, number: int, state: str
) -> None:
    for at in range(SEVERAL):
        (tmp_path / f"{at}.txt").write_text("CUDA error: an illegal memory access\n" * 4000)
    mark = os.urandom(8).hex()
    words = ["-m", "gpucheck", "triage", "--batch", str(tmp_path), "--jobs", "3"]
    with _started(words, mark) as parent:
        assert wait_until(lambda: len(alive(mark)) == 4)
        time.sleep(0.5)  # so that they are at work
        if state == "stopped":  # as Ctrl-Z does
            os.killpg(parent.pid, signal.SIGSTOP)
            os.kill(parent.pid, signal.SIGCONT)
        os.kill(parent.pid, number)
        assert parent.wait(20) == -number
        assert wait_until(lambda: not alive(mark), 10)
