"""How a worker ends: with its parent, and not without saying where it was."""

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
