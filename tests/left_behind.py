"""Finds processes that a run has left behind, by a mark in their environment."""

import contextlib
import signal
import time
from collections.abc import Callable
from pathlib import Path

MARK = "GPUCHECK_TEST_RUN"
"""The variable that holds the mark."""


def alive(mark: str) -> list[int]:
    """Return the processes that have the mark in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found


def wait_until(done: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Wait until it is done, at most so long; say whether it is."""
    end = time.monotonic() + seconds
    while not done() and time.monotonic() < end:
        time.sleep(0.02)
    return done()


def heed_signals() -> None:
    """Whoever runs the tests may ignore these (nohup, a shell's "&"), and children inherit that."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
