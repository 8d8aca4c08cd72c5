"""Which process it is, and what became of it: told only to who shares its kernel and namespaces."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from gpucheck.machine import process_identity
from gpucheck.machine.process_identity import ProcessIdentity, _stat, own, state

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(sys.platform != "linux", reason="it is read from /proc"),
]
_SAY = "from gpucheck.machine.process_identity import own; import msgspec, sys, time\n"
_SAY += "sys.stdout.write(msgspec.json.encode(own()).decode() + '\\n'); sys.stdout.flush()\n"
_SAY += "time.sleep(60)"


def is_soon(identity: ProcessIdentity, *wanted: str) -> bool:
    end = time.monotonic() + 5
    while state(identity) not in wanted and time.monotonic() < end:
        time.sleep(0.01)
    return state(identity) in wanted


def test_a_process_is_followed_to_its_end() -> None:
    child = subprocess.Popen([sys.executable, "-c", _SAY], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None
        identity = msgspec.json.decode(child.stdout.readline(), type=ProcessIdentity)
        assert identity.pid == child.pid
        assert is_soon(identity, "S", "R")
        child.send_signal(signal.SIGSTOP)
        assert is_soon(identity, "T")
    finally:
        child.kill()
    assert is_soon(identity, ""), "a zombie has ended, too"
    child.communicate()
    assert state(identity) == ""


def test_its_number_alone_is_not_the_process() -> None:
    mine = own()
    assert (mine.pid, state(mine)) == (os.getpid(), "R")
    assert state(msgspec.structs.replace(mine, started=mine.started + 1)) == ""


def test_another_machine_or_container_sees_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = own()
    assert state(msgspec.structs.replace(mine, place=mine.place + "0")) is None
    assert state(ProcessIdentity()) is None
    monkeypatch.setattr(process_identity, "_place", lambda: "")
    assert state(mine) is None


def test_an_empty_file_of_a_process_is_no_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    empty = tmp_path / "stat"
    empty.touch()
    monkeypatch.setattr(process_identity, "Path", lambda _path: empty)
    assert _stat(os.getpid()) is None
