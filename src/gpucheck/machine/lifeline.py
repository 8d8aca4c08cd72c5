"""Ends a child with its parent, even if that is killed or the child is stopped (Linux).

A child that hangs in a driver, and one of many that share a long work, would stay for ever.
"""

import contextlib
import os
import signal
import sys

_SET_PDEATHSIG = 1
"""Of prctl(2)."""
_parents: list[int] = []
"""In a child: who forked it."""


def is_child_of(parent: int) -> None:
    """Note in a new child who its parent is."""
    _parents[:] = [parent]


def follow_parent() -> None:
    """Have this process killed when the one that started it ends."""
    is_child_of(os.getppid())
    end_with_parent()


def end_with_parent() -> None:
    """Have this child killed when its parent ends; anything but such a child stays as it is.

    A quick probe does without: importing ctypes takes a millisecond.
    """
    if sys.platform != "linux" or not _parents:
        return
    import ctypes  # noqa: PLC0415

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != _parents[0]:
        os._exit(1)
