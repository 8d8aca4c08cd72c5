"""Wakes this process if a signal has stopped it and its time is over.

A stopped process cannot keep its own deadlines, and a launcher would wait for it for ever. So a
forked child sleeps until the time is over. If its parent is stopped then (state ``T``), it
continues the parent, which sees that it is late and ends. It kills a parent that is stopped again.
It is in the parent's process group: Ctrl-Z, and a scheduler that suspends the job, stop both.
"""

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import NoReturn

_SET_PDEATHSIG = 1
"""Of prctl(2)."""
_STOPPED = b"T"
_APART = 2.0
"""Seconds for a process that was continued to end."""
_PATIENCE = 5.0
"""Seconds between two looks at whether the parent still runs, where the kernel does not say."""
_MOST_FILES = 65536


_LATE = 6.0
"""Seconds after the end of a run: a second more than it gets before it ends itself by force."""


class Waker:
    """The child that wakes this process; made by :func:`start`."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def end(self) -> None:
        """End it: this process ends by itself."""
        if self._pid:
            with contextlib.suppress(OSError):
                os.kill(self._pid, signal.SIGKILL)
                os.waitpid(self._pid, 0)
            self._pid = 0


@contextlib.contextmanager
def beside(end: float) -> Iterator[None]:
    """Have this process woken if it is stopped when a run that ends then is over.

    ``end`` is a time of ``time.monotonic()``. See :func:`start`.
    """
    waker = start(end + _LATE - time.monotonic())
    try:
        yield
    finally:
        waker.end()


def start(seconds: float) -> Waker:
    """Have this process woken if it is stopped after so many seconds (Linux).

    To be called before the first thread is started, because it forks.
    """
    if sys.platform != "linux":
        return Waker(0)
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        return Waker(0)  # a limit on processes, which the run itself reports
    if pid == 0:
        _be_waker(parent, time.monotonic() + seconds)
    return Waker(pid)


def _be_waker(parent: int, when: float) -> NoReturn:
    try:
        _let_go()
        while (left := when - time.monotonic()) > 0 and os.getppid() == parent:
            time.sleep(min(left, _PATIENCE))
        for number in (signal.SIGCONT, signal.SIGKILL):
            while os.getppid() == parent and not _is_stopped(parent):
                time.sleep(_APART)
            if os.getppid() == parent:
                os.kill(parent, number)
                time.sleep(_APART)
    finally:
        os._exit(0)


def _let_go() -> None:
    """End with the parent, at no signal for its group, and hold none of its files open."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, int(signal.SIGKILL))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.closerange(0, _MOST_FILES)


def _is_stopped(pid: int) -> bool:
    try:
        handle = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return False
    try:
        return os.read(handle, 4096).rpartition(b")")[2].split()[:1] == [_STOPPED]
    finally:
        os.close(handle)
