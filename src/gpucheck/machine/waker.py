"""Wakes this process if a signal has stopped it and its time is over.

A stopped process cannot keep its own deadlines, and a launcher would wait for it for ever. So a
forked child sleeps until the time is over. If its parent is stopped then (state ``T``), it
continues the parent, which sees that it is late and ends. It kills a parent that is stopped again.
It is in the parent's process group: Ctrl-Z, and a scheduler that suspends the job, stop both.

Nobody wakes a process that is stopped before it has forked this child. So the command line forks
it first, and this module imports what Python has imported by then, and little else.
"""

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
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


USUAL_SECONDS = 300.0
"""The time limit of a pre-flight without ``--timeout``."""
_LONGEST = 1e6


class Waker:
    """The child that wakes this process; made by :func:`start`. It ends with the ``with``."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    def __enter__(self) -> None:
        """Let it wait."""

    def __exit__(self, *_error: object) -> None:
        self.end()

    def end(self) -> None:
        """End it: this process ends by itself."""
        pid, self._pid = self._pid, 0
        if pid:
            try:
                os.kill(pid, 9)
                os.waitpid(pid, 0)
            except OSError:  # it has ended
                pass


_first = Waker(0)
_begun: list[float] = []
"""When :func:`guard` was called, a time of ``time.monotonic()``."""


def guard(words: "Sequence[str]") -> None:
    """Have this process woken if its command line is that of a pre-flight.

    The options are not read yet: what is wrong with the time limit is refused later.
    """
    global _first  # noqa: PLW0603  # the one child of the whole process
    at = 0
    while words[at : at + 1] and words[at].startswith("-"):
        at += 1 if "=" in words[at] else 2  # --lang zh, --tables DIR
    _begun[:] = [time.monotonic()]
    if words[at : at + 1] == ["preflight"]:
        _first = start(_limit(words) + _LATE)


def _limit(words: "Sequence[str]") -> float:
    limit = ""
    for word, following in zip(words, (*words[1:], ""), strict=True):
        option, equals, value = word.partition("=")
        if option == "--timeout":
            limit = value if equals else following
    try:
        seconds = float(limit)
    except ValueError:
        return USUAL_SECONDS
    return seconds if 0 <= seconds <= _LONGEST else USUAL_SECONDS


def begun() -> float:
    """Return when this command began: one that was stopped meanwhile has no more time for that."""
    return _begun[0] if _begun else time.monotonic()


def beside(end: float) -> Waker:
    """Have this process woken if it is stopped when a run that ends then is over.

    ``end`` is a time of ``time.monotonic()``. It takes the place of :func:`guard`.
    """
    waker = start(end + _LATE - time.monotonic())
    _first.end()
    return waker


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


def _be_waker(parent: int, when: float) -> "NoReturn":
    import signal  # noqa: PLC0415  # the parent does not wait for it

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
    import contextlib  # noqa: PLC0415
    import ctypes  # noqa: PLC0415
    import signal  # noqa: PLC0415

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):  # it looks every few seconds as well
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, int(signal.SIGKILL))
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
