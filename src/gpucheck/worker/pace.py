"""What is known of a collective that takes long: flight recorder, who waited for whom."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from typing import Any, Callable, Dict, Tuple

# What PyTorch's flight recorder knows of a collective that takes long: which this rank began.
#
# The recorder keeps the last collectives of a process in memory. torch gives them as JSON, those of
# NCCL from 2.5 on, those of gloo in later releases (2.13 was tried). It is asked once for each step
# of the work, by a thread, after half of the time that the step may take: a rank that hangs cannot
# ask by itself.

Message = Dict[str, Any]
Torch = Any  # the module, of any version
Send = Callable[[Message], None]
Where = Callable[[], Tuple[str, int]]

_SIZE = "64"
"""Collectives that are kept, if the user has not said how many."""
_VARIABLES = ("TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE")
"""Its name in newer releases, and the name before it."""
_DUMPS = {
    "nccl": ("_dump_nccl_trace_json", "_dump_fr_trace_json"),
    "gloo": ("_dump_fr_trace_json",),
}
_TICK = 0.25  # seconds; chosen: so exactly is it known when a rank began to be late
_PHASES = ("connect", "enter", "leave")
_FLIGHT_LONGEST = 100  # chosen: names of operations; task 0 reads them


def prepare() -> None:
    """Switch the recorder on; it reads this when it keeps its first collective."""
    for name in _VARIABLES:
        os.environ.setdefault(name, _SIZE)


def watch(torch: Torch, backend: str, seconds: float, where: Where, send: Send) -> None:
    """Start the thread that reports what was recorded, if this torch can tell.

    Args:
        torch: the module.
        backend: of the process group.
        seconds: how long a collective may take.
        where: returns the phase and the number of the collective.
        send: to the supervisor.
    """
    native = getattr(torch._C, "_distributed_c10d", None)  # noqa: SLF001  # no other name
    found = (getattr(native, name, None) for name in _DUMPS.get(backend, ()))
    dump = next((recorder for recorder in found if recorder is not None), None)
    if dump is not None:
        given = (dump, seconds / 2, where, send)
        threading.Thread(target=_report, args=given, daemon=True).start()


def _report(dump: Callable[[], Any], seconds: float, where: Where, send: Send) -> None:
    with contextlib.suppress(Exception):
        # SIGTERM makes the main thread print its stack, not this one.
        if hasattr(signal, "pthread_sigmask"):  # not on Windows
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        last, since, reported = where(), time.monotonic(), False
        while last[0] != "done":
            time.sleep(_TICK)
            now = where()
            if now != last:
                last, since, reported = now, time.monotonic(), False
            elif not reported and now[0] in _PHASES and time.monotonic() - since > seconds:
                reported = True
                send({"event": "flight", **read(dump())})


def read(text: Any) -> Message:  # noqa: ANN401  # str or bytes
    """Return the last collective of a record and the last that was completed; 0 is none."""
    entries = [entry for entry in json.loads(text).get("entries") or () if not entry.get("is_p2p")]
    last = entries[-1] if entries else {}
    done = [entry for entry in entries if entry.get("retired") or entry.get("state") == "completed"]
    return {
        "begun": int(last.get("collective_seq_id") or 0),
        "completed": max((int(entry["collective_seq_id"]) for entry in done), default=0),
        "operation": str(last.get("profiling_name", ""))[:_FLIGHT_LONGEST],
        "state": str(last.get("state", ""))[:_FLIGHT_LONGEST],
    }


# How this rank kept its collectives waiting, and for whom it waited in them.
#
# The rank that comes last to a collective waits least in it, and was busy elsewhere the longest.
# Both are measured, and so is the time in which the machine itself gave it no processor: another
# program's load accuses no rank.

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
