"""Ends forked children with their parent, even if SIGKILL ends it (Linux).

Each child reads from a pipe whose other end only the parent holds, and has asked the kernel to send
it SIGKILL when that end is closed. ``prctl`` could do the same, but it needs ctypes, whose import
takes a millisecond in every child.
"""

import contextlib
import os
import signal
import sys

if sys.platform == "linux":
    import fcntl  # here once, rather than in every child

_ends: list[int] = []
"""The child's end and the parent's end; one pipe for all children of this process.

With several, each child would hold the parent's end of the others.
"""


def prepare() -> None:
    """Make the pipe; to be called in the parent, before a fork."""
    if sys.platform == "linux" and not _ends:
        _ends.extend(os.pipe())


def end_with(parent: int) -> None:
    """Have this process, a new child, killed when its parent ends; exit if it has ended already."""
    if sys.platform != "linux" or not _ends:
        return
    theirs, ours = _ends
    _ends.clear()  # children of its own get a pipe of their own
    os.close(ours)
    with contextlib.suppress(OSError):
        # Opened anew: whom a signal is for belongs to what was opened, which a fork only shares.
        own = os.open(f"/proc/self/fd/{theirs}", os.O_RDONLY | os.O_NONBLOCK)
        fcntl.fcntl(own, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(own, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(own, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.close(theirs)
    if os.getppid() != parent:
        os._exit(1)
