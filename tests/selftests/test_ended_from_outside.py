"""gpucheck is told to go, or killed: nothing that it has started stays behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fake_patient import Patient, by_name
from left_behind import MARK, alive, heed_signals, wait_until

pytestmark = pytest.mark.process

HANG = "time.sleep(60)"
RUN = """
import sys
from gpucheck.selftests import launcher
if {forks} is False:
    launcher.Launcher.__init__.__kwdefaults__["forks"] = False
from gpucheck.cli import main
main(["selftest", "--tests", "import-torch", "--python", sys.executable])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("forks", [True, False])
@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)],
)
def test_nothing_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, status: int, forks: bool  # noqa: FBT001
) -> None:  # fmt: skip
    at_work = tmp_path / "at-work"
    Patient(tmp_path, monkeypatch, ones=f"import time; open({str(at_work)!r}, 'w'); {HANG}")
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setenv("TMPDIR", str(room))
    monkeypatch.setenv(MARK, mark := f"{os.getpid()}-{number}-{forks}")
    command = [sys.executable, "-c", RUN.format(forks=forks)]
    child = subprocess.Popen(command, preexec_fn=heed_signals)  # noqa: PLW1509  # no threads here
    assert wait_until(at_work.exists)
    assert len(alive(mark)) > 1
    child.send_signal(number)
    assert child.wait(30) == status
    assert wait_until(lambda: not alive(mark), 5), "a process stayed behind"
    folders = list(room.iterdir())
    assert len(folders) == (1 if number == signal.SIGKILL else 0)


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_what_a_worker_has_started_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compiler, say; it is in the worker's process group, which the zygote kills."""
    at_work = tmp_path / "at-work"
    start = f"import subprocess; subprocess.run(['sh', '-c', 'touch {at_work}; sleep 60'])"
    Patient(tmp_path, monkeypatch, ones=start)
    monkeypatch.setenv(MARK, mark := f"{os.getpid()}-started")
    for number in (signal.SIGTERM, signal.SIGKILL):
        at_work.unlink(missing_ok=True)
        child = subprocess.Popen([sys.executable, "-c", RUN.format(forks=True)])
        assert wait_until(at_work.exists)
        child.send_signal(number)
        child.wait(30)
        assert wait_until(lambda: not alive(mark)), "what a worker had started stayed behind"


STUBBORN = """
import subprocess
code = "import os, signal, time; signal.signal(15, 1); open({at_work!r}, 'w'); time.sleep(60)"
subprocess.Popen([sys.executable, "-c", code], preexec_fn=os.setpgrp)
while not os.path.exists({at_work!r}): time.sleep(0.01)
{then}
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("forks", [True, False])
@pytest.mark.parametrize(
    ("then", "status"),
    [("time.sleep(60)", "timed-out"), ("os._exit(3)", "crashed"), ("pass", "passed")],
)
def test_a_program_of_a_worker_that_ignores_sigterm_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str, status: str, forks: bool  # noqa: FBT001
) -> None:  # fmt: skip
    """It is in a process group of its own, as the commands of ninja are."""
    body = STUBBORN.format(at_work=str(tmp_path / "at-work"), then=then)
    patient = Patient(tmp_path, monkeypatch, tests={"one": body})
    monkeypatch.setenv(MARK, mark := f"{os.getpid()}-{status}-{forks}")
    seconds = 1.0 if status == "timed-out" else 20.0  # a busy machine is slow to start a program
    found = by_name(patient.examine(seconds=seconds, forks=forks), "one")
    assert found.status == status, found
    monkeypatch.delenv(MARK)
    assert wait_until(lambda: not alive(mark), 10), "a program stayed behind"


def test_a_signal_that_is_ignored_stays_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under ``nohup``."""
    at_work = tmp_path / "at-work"
    Patient(tmp_path, monkeypatch, ones=f"import time; open({str(at_work)!r}, 'w'); time.sleep(1)")
    code = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n" + RUN.format(forks=True)
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    assert wait_until(at_work.exists)
    child.send_signal(signal.SIGHUP)
    assert child.wait(60) == 0
