"""Ends a worker when its parent ends, and prints the stack of a worker that is killed."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import select
import signal

_SET_PDEATHSIG = 1
"""Of prctl(2)."""
_NONE, _KILL = 0, 9  # signals, as PR_SET_PDEATHSIG takes them


def die_with_parent(parent: int = 0) -> None:
    """Have the kernel kill this process when its parent has ended (Linux).

    Args:
        parent: the parent's process id, 0 if it is unknown. If the parent ended before this call,
            this process exits at once, because nobody waits for it.
    """
    _set_death_signal(_KILL)
    if parent and os.getppid() != parent:
        os._exit(1)


def outlive_parent() -> None:
    """Undo ``die_with_parent``: at the end of stdin this process ends its workers before itself."""
    _set_death_signal(_NONE)


def exit_without_writer() -> None:
    """Exit if nobody holds the other end of stdin: the process that sent the order has ended."""
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
    """Print the Python stack on stderr at SIGTERM and at a crash, even during a blocked C call."""
    with contextlib.suppress(Exception):
        faulthandler.enable(file=2)
        if hasattr(faulthandler, "register"):
            faulthandler.register(signal.SIGTERM, file=2, chain=True)
