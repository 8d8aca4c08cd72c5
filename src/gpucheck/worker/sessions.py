"""The processes of a session: a child that has ended leaves some of them behind.

This file exists twice, byte for byte: in the package of the machine and in the worker's. A worker
runs in the target interpreter, where nothing else of gpucheck can be imported.
"""

from __future__ import annotations

import contextlib
import os

_KILL = 9
_SESSION = 2
"""The position of the session after the state in ``/proc/PID/stat``."""
_ROUNDS = 5
"""How often to look again for what was started while the others were killed."""


def has_ended(pid: int) -> bool:
    """Whether a child has ended; its number stays its own until it is waited for (Linux)."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except (ChildProcessError, AttributeError):
        return False


def end_session(leader: int) -> None:
    """Kill every process of the session of a child that has not been waited for yet (Linux).

    Signals to its process group miss the commands of ninja, which gives each a group of its own,
    and a compiler that ignores SIGTERM outlives a leader that does not.
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
    """Return the session of a running process; 0 when it has ended."""
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
