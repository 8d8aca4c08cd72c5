"""How many packets the connections of a process had to send again, as Linux counts them.

Whoever sends over TCP counts what it sends twice. Some of that was never lost: it came late, and
the other end says so (DSACK). The rest got lost on the way.
"""

import contextlib
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterator

import msgspec

_SOCK_DIAG = 4
"""The protocol of netlink, and below its one request, and what is asked for (sock_diag(7))."""
# SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST | NLM_F_DUMP, INET_DIAG_INFO.
_BY_FAMILY, _DUMP, _INFO = 20, 0x301, 2
_REQUEST = struct.Struct("=IHHIIBBBBI48x")
_HEADER = struct.Struct("=IH10x")
_DONE = (2, 3)
"""The types of an error and of the end."""
_ADDRESSES, _INODE, _ATTRIBUTES = (8, 24), 68, 72
"""Where in an answer these are: the own and the other address, the number of the socket."""
_AGAIN, _SENT, _LATE, _WAITING = 100, 156, 216, 24
"""Where in ``struct tcp_info``: segments sent again, all of them with data, those that had arrived
already (Linux 5.1), and those that are not acknowledged."""
_ALL_STATES = 0xFFFFFFFF  # a bit for each state of a connection
_MOST = 4 * 1024 * 1024
"""Bytes of answers: a host with tens of thousands of connections holds nothing up."""
_SECONDS = 0.2  # chosen: the kernel answers at once; a supervisor must not wait for it


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
            for answer in _answers(int(family)):
                here, there = (_address(answer, at, int(family)) for at in _ADDRESSES)
                info = _info(answer)
                if _number(answer, _INODE) not in inodes or here == there or len(info) <= _LATE:
                    continue
                again, sent, late, waiting = (
                    _number(info, at) for at in (_AGAIN, _SENT, _LATE, _WAITING)
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


def _answers(family: int) -> Iterator[bytes]:
    """Yield what the kernel says of each TCP connection of this host, or container."""
    kernel = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, _SOCK_DIAG)
    with kernel:
        kernel.settimeout(_SECONDS)
        request = (_REQUEST.size, _BY_FAMILY, _DUMP, 1, 0, family, socket.IPPROTO_TCP)
        kernel.sendto(_REQUEST.pack(*request, 1 << (_INFO - 1), 0, _ALL_STATES), (0, 0))
        left = _MOST
        while left > 0:
            data = kernel.recv(65536)
            left -= len(data)
            while data:
                length, kind = _HEADER.unpack_from(data)
                if kind in _DONE or length < _HEADER.size:
                    return
                yield data[_HEADER.size : length]
                data = data[(length + 3) & ~3 :]


def _address(answer: bytes, at: int, family: int) -> str:
    if family == socket.AF_INET:
        return str(ipaddress.IPv4Address(answer[at : at + 4]))
    found = ipaddress.IPv6Address(answer[at : at + 16])
    return str(found.ipv4_mapped or found)


def _info(answer: bytes) -> bytes:
    """Return the ``struct tcp_info`` of an answer, b"" if it has none."""
    rest = answer[_ATTRIBUTES:]
    while len(rest) > 4:  # noqa: PLR2004  # the header of an attribute
        length, kind = struct.unpack_from("=HH", rest)
        if kind == _INFO:
            return rest[4:length]
        rest = rest[max(4, (length + 3) & ~3) :]
    return b""


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], sys.byteorder)
