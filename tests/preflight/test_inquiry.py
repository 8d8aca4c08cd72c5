"""A program that is asked for an answer, and is ended in a way that lets it clean up."""

import os
import sys
import time

import pytest

from gpucheck.cluster.task import node_facts
from gpucheck.cluster.task.node_facts import Inquiry
from gpucheck.machine.supervised import Supervised, is_running, start

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(os.name != "posix", reason="SIGTERM of Unix"),
]

CLEANS_UP = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("cleaned up", flush=True), sys.exit(0)))
print("ready", flush=True)
time.sleep(60)
"""
STAYS = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(60)
"""


def asked(code: str) -> tuple[Inquiry, Supervised]:
    """Start a program, and wait until it is ready."""
    child = start([sys.executable, "-c", code], dict(os.environ)).value
    assert child is not None
    found = Inquiry(child, time.monotonic() + 60, 1000)
    while found.answer != b"ready\n":
        assert not found.tick()
        time.sleep(0.01)
    return found, child


def test_a_program_that_is_closed_can_clean_up() -> None:
    found, child = asked(CLEANS_UP)
    found.close()
    assert found.answer == b"ready\ncleaned up\n"
    assert found.status is None
    assert not is_running(child.pid)


def test_a_program_whose_time_is_over_can_clean_up_and_nobody_waits_for_it() -> None:
    found, child = asked(CLEANS_UP)
    found._end = time.monotonic()  # noqa: SLF001  # sixty seconds are long
    began = time.monotonic()
    assert not found.tick()
    assert time.monotonic() - began < 0.5
    while not found.tick():
        time.sleep(0.01)
    assert found.answer == b"ready\ncleaned up\n"
    assert found.status is None
    assert not is_running(child.pid)


def test_a_program_that_does_not_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_facts, "_FAREWELL", 0.2)
    found, child = asked(STAYS)
    began = time.monotonic()
    found.close()
    assert time.monotonic() - began < 5
    assert found.status is None
    assert not is_running(child.pid)
