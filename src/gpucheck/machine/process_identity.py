"""Which process this is, for others on the same machine that want to see whether it still runs.

A number alone names no process: it is given out again, and it means another process in each
container. So the identity has the kernel's start, the namespaces and the start of the process.
"""

import contextlib
import os
import sys
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from gpucheck import _about
from gpucheck.facts.numbers import whole_number

_STARTED = 18
"""The position of a process's start behind its state in ``/proc/PID/stat``."""
_ENDED = ("Z", "X")
_Mark = Annotated[str, Meta(max_length=100)]


class ProcessIdentity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A process; ``place`` is "" where the system does not tell enough."""

    pid: Annotated[int, Meta(ge=0, le=2**53)] = 0
    started: Annotated[int, Meta(ge=0, le=2**53)] = 0
    """When it was started, in ticks of the kernel."""
    place: _Mark = ""
    """The start of the kernel, and the namespaces for processes and for the network."""


def own() -> ProcessIdentity:
    """Return the identity of this process."""
    pid = os.getpid()
    found = _stat(pid)
    return ProcessIdentity(pid, found[1], _place()) if found is not None else ProcessIdentity()


def state(identity: ProcessIdentity) -> str | None:
    """Return the letter of a process's state, "" if it has ended.

    None: it cannot be seen from here, because it runs elsewhere or in another container.
    """
    if not identity.place or identity.place != _place():
        return None
    found = _stat(identity.pid)
    if found is None or found[1] != identity.started or found[0] in _ENDED:
        return ""
    return found[0]


def _place() -> str:
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        spaces = [str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in ("pid", "net")]
        return " ".join([boot, *spaces])[:100]
    return ""


def _stat(pid: int) -> tuple[str, int] | None:
    """Return the state of a process, and when it was started; None if there is none."""
    with contextlib.suppress(OSError, IndexError):
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
        state_letter, *fields = text.rpartition(")")[2].split() or [""]
        started = whole_number(fields[_STARTED])
        if started is not None:
            return state_letter, started
    return None


# How gpucheck starts itself once more, in a process of its own.


def own_command() -> list[str]:
    """Return the words before a command's name, for the way in which this process was started.

    A ``gpucheck.pyz`` is not installed, so ``-m gpucheck`` would not find it.
    """
    return [sys.executable, *([_about.bundle] if _about.bundle else ["-m", "gpucheck"])]
