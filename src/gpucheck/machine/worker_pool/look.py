"""What the kernel reports about a worker before gpucheck ends it (on Linux only).

It reads only files in ``/proc`` that can be read in every state of the process without blocking.
They are read twice, a second apart, because a state that both looks show is not a passing one.
"""

import contextlib
import os
import time

import msgspec

from gpucheck.facts.numbers import whole_number
from gpucheck.machine.children import waited_for_processor
from gpucheck.machine.worker_pool.lost_packets import LostPackets, lost_packets

APART = 1.0
"""Seconds between the two looks."""
_LONGEST = 4096
_OPEN_FILES = "Max open files"
_CPU = 11
"""The position of the processor time in user mode after the state in ``/proc/PID/stat``."""
_TICKS = float(os.sysconf("SC_CLK_TCK")) if hasattr(os, "sysconf") else 100.0


class ProcessLook(msgspec.Struct, frozen=True, kw_only=True):
    """One look: the letter of the state, processor time in seconds, and place in the kernel.

    ``waited`` is for how long it was ready and got no processor, 0 if that is unknown. ``wchan``,
    ``syscall`` and ``kernel`` are "" where the system does not show them. ``files`` is
    the number of its open files, ``file_limit`` how many it may open; None where that is unknown.
    """

    state: str
    cpu: float
    waited: float = 0.0
    wchan: str = ""
    syscall: str = ""
    kernel: str = ""
    files: int | None = None
    file_limit: int | None = None


class Looks:
    """The two looks at a worker and at the process that forked it.

    Attributes:
        worker: the first and the last look at the worker; None if nothing could be read.
        zygote: the same for the process that forked the worker.
        lost_packets: what the worker's connections had lost when it was late, or at the first look:
            those whose other ends are ended first are closed by then.
        has_counted: whether that was asked in this phase of its work.
    """

    def __init__(self) -> None:
        self.worker: tuple[ProcessLook | None, ProcessLook | None] = (None, None)
        self.zygote: tuple[ProcessLook | None, ProcessLook | None] = (None, None)
        self.lost_packets: list[LostPackets] = []
        self.has_counted = False
        self._begun: float | None = None
        self._cpu: float | None = None
        self._waited = 0.0

    @property
    def is_begun(self) -> bool:
        """Whether the first look was taken."""
        return self._begun is not None

    @property
    def is_due(self) -> bool:
        """Whether the last look is due: a second has passed, or nothing can be read."""
        if self.worker[0] is None and self.zygote[0] is None:
            return True
        return self._begun is not None and time.monotonic() - self._begun >= APART

    @property
    def cpu(self) -> float | None:
        """The seconds of processor time that it has used since ``restart``; None if unknown."""
        last = self.worker[1]
        if last is None or self._cpu is None:
            return None
        return max(0.0, round(last.cpu - self._cpu, 2))

    @property
    def waited(self) -> float | None:
        """For how long it was ready and got no processor, since ``restart``; None if unknown."""
        last = self.worker[1]
        return None if last is None else max(0.0, round(last.waited - self._waited, 2))

    def restart(self, pid: int) -> None:
        """Forget the looks and note the processor time, because a phase of its work begins.

        A process that has no number yet has used none.
        """
        self._begun = None
        self.has_counted = False
        found = _stat(pid)
        self._cpu = found[1] if found is not None else 0.0 if pid <= 0 else None
        self._waited = waited_for_processor(pid) if pid > 0 else 0.0

    def count(self, pid: int) -> None:
        """Ask what its connections have lost; what an end that has closed them lost stays."""
        self.has_counted = True
        self.lost_packets = lost_packets(pid) or self.lost_packets

    def begin(self, pid: int, zygote: int) -> None:
        """Take the first look."""
        self._begun = time.monotonic()
        self.worker = (look(pid), None)
        self.zygote = (look(zygote), None)
        self.count(pid)

    def finish(self, pid: int, zygote: int) -> None:
        """Take the last look."""
        self.worker = (self.worker[0], look(pid))
        self.zygote = (self.zygote[0], look(zygote))


def look(pid: int) -> ProcessLook | None:
    """Look at a process; None if it has ended, or the system has no ``/proc``."""
    found = _stat(pid)
    if found is None:
        return None
    state, cpu = found
    return ProcessLook(
        state=state,
        cpu=cpu,
        waited=waited_for_processor(pid),
        wchan=_read(pid, "wchan"),
        syscall=_read(pid, "syscall"),
        kernel=_read(pid, "stack"),
        files=_open_files(pid),
        file_limit=_file_limit(pid),
    )


def _open_files(pid: int) -> int | None:
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            return sum(1 for _entry in entries)
    except OSError:
        return None


def _file_limit(pid: int) -> int | None:
    """Return the soft limit on open files; None if it is unknown, or there is none."""
    for line in _read(pid, "limits").splitlines():
        if line.startswith(_OPEN_FILES):
            soft = line[len(_OPEN_FILES) :].split()[:1]
            return whole_number(soft[0]) if soft else None
    return None


def _stat(pid: int) -> tuple[str, float] | None:
    """Return the state of a process and its processor time in seconds."""
    if pid <= 0:
        return None
    state, *fields = _read(pid, "stat").rpartition(")")[2].split() or [""]
    try:
        user, system = (int(field) for field in fields[_CPU - 1 : _CPU + 1])
    except ValueError:
        return None
    return state, (user + system) / _TICKS


def _read(pid: int, name: str) -> str:
    with contextlib.suppress(OSError):
        handle = os.open(f"/proc/{pid}/{name}", os.O_RDONLY)
        try:
            return os.read(handle, _LONGEST).decode("ascii", "replace").strip()
        finally:
            os.close(handle)
    return ""
