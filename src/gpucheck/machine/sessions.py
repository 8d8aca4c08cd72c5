"""Ends the processes that a child leaves behind in its session.

Two packages have identical copies of this file: ``machine`` and ``worker``. A worker runs in the
target interpreter and cannot import the rest of gpucheck.
"""

from __future__ import annotations

import contextlib
import os

_KILL = 9  # SIGKILL; Windows' module signal has no such name
_SESSION = 2
"""The position of the session after the state in ``/proc/PID/stat``."""
_ROUNDS = 5
"""How often to look again for what was started while the others were killed."""


def has_ended(pid: int) -> bool:
    """Whether a child has ended; it is not reaped, so its process id is not reused yet (Linux)."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except (ChildProcessError, AttributeError):
        return False


def end_session(leader: int) -> None:
    """Kill every process in the session of a child that has not been reaped yet (Linux).

    A signal to the process group is not enough. ninja gives each of its commands a group of its
    own, and a compiler that ignores SIGTERM outlives its group leader.
    """
    for _round in range(_ROUNDS):
        found = [pid for pid in _processes() if pid != leader and _session(pid) == leader]
        for pid in (leader, *found):
            with contextlib.suppress(OSError):
                os.kill(pid, _KILL)
        if not found:
            return


def _processes() -> list[int]:
    try:
        with os.scandir("/proc") as entries:
            return [int(entry.name) for entry in entries if entry.name.isdecimal()]
    except OSError:
        return []


def _session(pid: int) -> int:
    """Return the session of a running process; 0 if it has ended."""
    try:
        state, *fields = _stat(pid).rpartition(b")")[2].split()
        return 0 if state in b"ZX" else int(fields[_SESSION])
    except (OSError, ValueError, IndexError):
        return 0


def _stat(pid: int) -> bytes:
    handle = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    try:
        return os.read(handle, 4096)
    finally:
        os.close(handle)
