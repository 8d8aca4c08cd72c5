"""What the kernel reports about a worker before gpucheck ends it (on Linux only).

It reads only files in ``/proc`` that can be read in every state of the process without blocking.
They are read twice, a second apart, because a state that both looks show is not a passing one.
"""

import contextlib
import ipaddress
import os
import socket
import struct
import sys
import time
from collections.abc import Iterator

import msgspec

from gpucheck.facts.numbers import whole_number
from gpucheck.machine.children import waited_for_processor

APART = 1.0
"""Seconds between the two looks."""
_LONGEST = 4096  # bytes; chosen: a page, in which everything stands that is read of these files
_OPEN_FILES = "Max open files"
_CPU = 11
"""The position of the processor time in user mode after the state in ``/proc/PID/stat``."""
_TICKS = float(os.sysconf("SC_CLK_TCK")) if hasattr(os, "sysconf") else 100.0

_SOCK_DIAG = 4
"""The protocol of netlink, and below its one request, and what is asked for (sock_diag(7))."""
# SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, INET_DIAG_INFO.
_BY_FAMILY, _DUMP, _INFO = 20, 0x301, 2
_NETLINK_REQUEST = struct.Struct("=IHHIIBBBBI48x")
_NETLINK_HEADER = struct.Struct("=IH10x")
_NETLINK_DONE = (2, 3)
"""The types of an error and of the end."""
_ADDRESSES, _INODE, _ATTRIBUTES = (8, 24), 68, 72
"""Where in an answer these are: the own and the other address, the number of the socket."""
_AGAIN, _SENT, _LATE, _WAITING = 100, 156, 216, 24
"""Where in ``struct tcp_info``: segments sent again, all of them with data, those that had arrived
already (Linux 5.1), and those that are not acknowledged."""
_ALL_STATES = 0xFFFFFFFF  # a bit for each state of a connection
_MOST_ANSWERED = 4 * 1024 * 1024
"""Bytes of answers: a host with tens of thousands of connections holds nothing up."""
_NETLINK_SECONDS = 0.2  # chosen: the kernel answers at once; a supervisor must not wait for it


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


# Whoever sends over TCP counts what it sends twice. Some of that was never lost: it came late, and
# the other end says so (DSACK). The rest got lost on the way.
class LostPackets(msgspec.Struct, frozen=True, array_like=True):
    """The connections of a process from one address to another."""

    here: str
    there: str
    sent: int
    """Packets with data; each time that one was sent counts."""
    lost: int
    waiting: int
    """Packets that were sent and not acknowledged so far."""


def lost_packets(pid: int) -> list[LostPackets]:
    """Return what the connections of a process to other hosts have lost; [] if that is unknown."""
    inodes = _sockets(pid)
    found: dict[tuple[str, str], list[int]] = {}
    for family in (socket.AF_INET, socket.AF_INET6) if inodes else ():
        with contextlib.suppress(OSError, struct.error):
            for answer in _netlink_answers(int(family)):
                here, there = (_address(answer, at, int(family)) for at in _ADDRESSES)
                info = _tcp_info(answer)
                if _number_at(answer, _INODE) not in inodes or here == there or len(info) <= _LATE:
                    continue
                again, sent, late, waiting = (
                    _number_at(info, at) for at in (_AGAIN, _SENT, _LATE, _WAITING)
                )
                counts = found.setdefault((here, there), [0, 0, 0])
                for at, count in enumerate((sent, max(0, again - late), waiting)):
                    counts[at] += count
    return [LostPackets(*ends, *counts) for ends, counts in sorted(found.items())]


def _sockets(pid: int) -> set[int]:
    """Return the numbers of the sockets that a process has open."""
    found = set()
    with contextlib.suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                kind, _, number = os.readlink(entry.path).partition(":[")  # noqa: PTH115  # no path
                if kind == "socket":
                    found.add(int(number.rstrip("]")))
    return found


def _netlink_answers(family: int) -> Iterator[bytes]:
    """Yield what the kernel says of each TCP connection of this host, or container."""
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, _SOCK_DIAG)
    with kernel:
        kernel.settimeout(_NETLINK_SECONDS)
        request = (_NETLINK_REQUEST.size, _BY_FAMILY, _DUMP, 1, 0, family, socket.IPPROTO_TCP)
        kernel.sendto(_NETLINK_REQUEST.pack(*request, 1 << (_INFO - 1), 0, _ALL_STATES), (0, 0))
        left = _MOST_ANSWERED
        while left > 0:
            data = kernel.recv(65536)
            left -= len(data)
            while data:
                length, kind = _NETLINK_HEADER.unpack_from(data)
                if kind in _NETLINK_DONE or length < _NETLINK_HEADER.size:
                    return
                yield data[_NETLINK_HEADER.size : length]
                data = data[(length + 3) & ~3 :]


def _address(answer: bytes, at: int, family: int) -> str:
    if family == socket.AF_INET:
        return str(ipaddress.IPv4Address(answer[at : at + 4]))
    found = ipaddress.IPv6Address(answer[at : at + 16])
    return str(found.ipv4_mapped or found)


def _tcp_info(answer: bytes) -> bytes:
    """Return the ``struct tcp_info`` of an answer, b"" if it has none."""
    rest = answer[_ATTRIBUTES:]
    while len(rest) > 4:  # noqa: PLR2004  # the header of an attribute
        length, kind = struct.unpack_from("=HH", rest)
        if kind == _INFO:
            return rest[4:length]
        rest = rest[max(4, (length + 3) & ~3) :]
    return b""


def _number_at(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], sys.byteorder)
