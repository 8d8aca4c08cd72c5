"""Ends a child that may hang in a driver with its parent, even if SIGKILL ends that (Linux)."""

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


def end_with_parent() -> None:
    """Have this child killed when its parent ends; anything but such a child stays as it is.

    For children that load a driver, which import ctypes anyway: its import takes a millisecond.
    """
    if sys.platform != "linux" or not _parents:
        return
    import ctypes  # noqa: PLC0415

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != _parents[0]:
        os._exit(1)
