"""How this rank kept its collectives waiting, and for whom it waited in them.

The rank that comes last to a collective waits least in it, and was busy elsewhere the longest. Both
are measured, and so is the time in which the machine itself gave it no processor: another program's
load accuses no rank.
"""

from __future__ import annotations

import os
import time
from typing import Any, Dict

Message = Dict[str, Any]

_MOST = 24
"""Collectives that are noted, from the second on: before the first one the ranks do not come at
the same time."""
_NANOSECONDS = 1e9  # a second of /proc/self/schedstat
_THREADS = "/proc/self/task"
_LONGEST = 4096  # bytes; the file has three numbers


class PaceWatch:
    """Notes, for each collective, the time before it was begun and the time until it ended."""

    def __init__(self) -> None:
        self._own: list[float] = []
        self._waited: list[float] = []
        self._delayed: list[float] = []
        self._count = 0
        self._mark, self._mark_delay = time.perf_counter(), delay()

    def began(self) -> None:
        """Note that the next collective has been begun; what was before it was this rank's own."""
        now, waiting = time.perf_counter(), delay()
        if self._notes():
            self._own.append(now - self._mark)
            self._delayed.append(_since(self._mark_delay, waiting))
        self._mark, self._mark_delay = now, waiting

    def ended(self) -> None:
        """Note that the collective has ended, on the device as well."""
        now, waiting = time.perf_counter(), delay()
        if self._notes():
            self._waited.append(now - self._mark)
        self._count += 1
        self._mark, self._mark_delay = now, waiting

    def timings(self) -> Message:
        """Return what was noted: the seconds of each collective."""
        count = len(self._waited)
        return {
            "own": [round(seconds, 4) for seconds in self._own[:count]],
            "waited": [round(seconds, 4) for seconds in self._waited],
            "delayed": [round(seconds, 4) for seconds in self._delayed[:count]],
        }

    def _notes(self) -> bool:
        return 0 < self._count <= _MOST


class Busy:
    """How much of a time the threads of this process were ready and got no processor."""

    def __init__(self) -> None:
        self._begun, self._delay = time.perf_counter(), delay(every=True)

    def share(self) -> float | None:
        """Return it as a share of the time since the beginning; None if the system says nothing."""
        if self._delay is None:
            return None
        passed = max(time.perf_counter() - self._begun, 1e-9)
        return min(1.0, _since(self._delay, delay(every=True)) / passed)


def delay(*, every: bool = False) -> float | None:
    """Return the seconds in which the main thread was ready and got no processor.

    None if the system does not say. In ``/proc/PID/task/TID/schedstat`` it is the second number
    (Linux, Documentation/scheduler/sched-stats.rst).

    Args:
        every: the sum of all threads instead.
    """
    pid = str(os.getpid())
    try:
        threads = os.listdir(_THREADS) if every else [pid]
    except OSError:
        return None
    found = [_of_thread(thread) for thread in threads]
    known = [seconds for seconds in found if seconds is not None]
    return sum(known) if known else None


def _of_thread(thread: str) -> float | None:
    words = _read(_THREADS + "/" + thread + "/schedstat").split()
    try:
        return int(words[1]) / _NANOSECONDS
    except (IndexError, ValueError):
        return None


def _since(before: float | None, now: float | None) -> float:
    return max(0.0, now - before) if before is not None and now is not None else 0.0


def _read(path: str) -> str:
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return os.read(handle, _LONGEST).decode("ascii", "replace")
    except OSError:
        return ""
    finally:
        os.close(handle)
