"""How a worker ends: with its parent, with all it has started, and saying where it was."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import select
import signal

_SET_PDEATHSIG = 1
"""Of prctl(2)."""
_NONE, _KILL = 0, 9
_SESSION = 2
"""Where the session stands after the state in ``/proc/PID/stat``."""
_ROUNDS = 5
"""So often is looked again for what was started while the others were killed."""


def die_with_parent(parent: int = 0) -> None:
    """Have the kernel kill this process when its parent has ended (Linux).

    Args:
        parent: its process id: when that one has ended before the kernel was told, nobody waits
            for this process any more, and it ends at once. 0 when it is not known.
    """
    _set_death_signal(_KILL)
    if parent and os.getppid() != parent:
        os._exit(1)


def outlive_parent() -> None:
    """Take that back: this process sees the end of its stdin and ends others before itself."""
    _set_death_signal(_NONE)


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
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _session(pid: int) -> int:
    """Return the session of a process that runs; 0 when it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, *fields = file.read(4096).rpartition(b")")[2].split()
        return 0 if state in b"ZX" else int(fields[_SESSION])
    except (OSError, ValueError, IndexError):
        return 0


def exit_without_writer() -> None:
    """Leave when nobody holds the other end of stdin: who gave the order has ended since."""
    if not hasattr(select, "poll"):
        return
    watched = select.poll()
    watched.register(0, 0)
    if any(event & select.POLLHUP for _handle, event in watched.poll(0)):
        os._exit(1)


def _set_death_signal(number: int) -> None:
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, number)


def show_stack_when_killed() -> None:
    """Let SIGTERM and crashes leave the Python stack on stderr, even out of a blocked C call."""
    with contextlib.suppress(Exception):
        faulthandler.enable(file=2)
        if hasattr(faulthandler, "register"):
            faulthandler.register(signal.SIGTERM, file=2, chain=True)
