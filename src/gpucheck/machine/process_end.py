"""How a child or a program ended: with its parent, or with which exit status."""

import contextlib
import os
import signal
import sys

from gpucheck.language import Sentence, say

# Ends a child with its parent, even if that is killed or the child is stopped (Linux).
#
# A child that hangs in a driver, and one of many that share a long work, would stay for ever.

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


# How a program ended: its exit status, with the codes by which Windows ends one, or a signal.
#
# Sources: Microsoft's list "[MS-ERREF] 2.3.1 NTSTATUS Values", and its header ``ntstatus.h`` (as in
# the crate ``windows-sys``) for the heap. POSIX has no exit status above 255.

_MEANINGS: dict[int, Sentence] = {
    0xC0000005: say("access violation"),
    0xC000001D: say("illegal instruction"),
    0xC000007B: say("a DLL is damaged or not for this system"),
    0xC00000FD: say("stack overflow"),
    0xC0000135: say("a DLL was not found"),
    0xC0000139: say("a DLL lacks a function that is needed"),
    0xC000013A: say("ended by Ctrl-C"),
    0xC0000142: say("a DLL could not be initialised"),
    0xC0000374: say("the heap was damaged"),
    0xC0000409: say("fail fast, or a buffer overrun on the stack"),
}
_ERROR = 0xC
"""The first hexadecimal digit: an error, and a code of Microsoft."""


def exit_status(status: object) -> object:
    """Return the exit status as users know it: in hexadecimal digits if Windows ended the program.

    Python returns such a code as a positive number: 3221225477 is an access violation. Anything
    else, which a lying worker may have sent, is returned as it is.
    """
    if not isinstance(status, int) or status >> 28 != _ERROR:
        return status
    code = f"0x{status:08X}"
    if status not in _MEANINGS:
        return code
    return say("{code} ({meaning})", code=code, meaning=_MEANINGS[status])


def signal_name(number: int) -> str:
    """Return the name, or ``signal 40`` for one that has none: the real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
