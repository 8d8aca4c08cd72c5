"""The ports of RDMA adapters (InfiniBand and RoCE) as sysfs shows them, and their counters.

The kernel's ``Documentation/ABI/stable/sysfs-class-infiniband`` explains every file. Nobody needs
root for them. A counter may ask the adapter's firmware, which may hang, so counters are read by a
process of its own.
"""

import time
from collections.abc import Callable, Mapping, Sequence

from gpucheck.cluster.model import PHYSICAL_COUNTERS, TRANSPORT_COUNTERS, RdmaPort
from gpucheck.cluster.task.inquiry import Inquiry
from gpucheck.facts import Answer
from gpucheck.facts.numbers import whole_number
from gpucheck.machine import Host
from gpucheck.machine.supervised import Supervised

_PORTS = "/sys/class/infiniband/*/ports/*"
_MOST_PORTS = 64
_PATIENCE = 2.0
"""Seconds that a look at the counters may take."""
_LONGEST = 256 * 1024
_DIGITS = 16

Counters = dict[str, dict[str, int]]
"""The values of the counters by port and name."""


def read_ports(host: Host) -> dict[str, RdmaPort]:
    """Return state, physical state, rate and link layer of each port, by ``mlx5_0/1``."""
    return {_name(folder.split("/")): _port(host, folder) for folder in _folders(host)}


def counter_files(host: Host) -> list[str]:
    """Return the paths of the counters that this machine has."""
    return [
        path
        for folder in _folders(host)
        for group, names in (
            ("counters", PHYSICAL_COUNTERS),
            ("hw_counters", TRANSPORT_COUNTERS),
        )
        for path in host.glob(f"{folder}/{group}/*").value or ()
        if path.rpartition("/")[2] in names
    ]


def _folders(host: Host) -> list[str]:
    return (host.glob(_PORTS).value or [])[:_MOST_PORTS]


def _name(parts: Sequence[str]) -> str:
    """Return ``mlx5_0/1`` for the parts of ``.../mlx5_0/ports/1``."""
    return f"{parts[-3]}/{parts[-1]}"


def _port(host: Host, folder: str) -> RdmaPort:
    def said(file: str) -> str | None:
        answer = host.line(f"{folder}/{file}").value
        return None if answer is None else answer.rpartition(":")[2].strip()[:60]

    return RdmaPort(
        state=said("state"), physical=said("phys_state"), rate=said("rate"),
        gigabits=_gigabits(said("rate")), layer=said("link_layer"),
    )  # fmt: skip


def _gigabits(rate: str | None) -> float | None:
    """Parse ``400 Gb/sec (4X NDR)``."""
    number, _, unit = (rate or "").partition(" ")
    if not unit.startswith("Gb/sec"):
        return None
    try:
        return float(number)
    except ValueError:
        return None


class PortCounters:
    """Looks at the counters of a node's ports twice and tells what has grown.

    Args:
        start: starts a program.
        files: the counters, from ``counter_files``; [] on a node without adapters.
    """

    def __init__(
        self, start: Callable[[list[str]], Answer[Supervised]], files: Sequence[str]
    ) -> None:
        self._start = start
        self._files = list(files)
        self._look: Inquiry | None = None
        self._first: Counters | None = None
        self._last: Counters | None = None

    def begin(self) -> None:
        """Begin a look, unless one is under way."""
        if not self._files or self._look is not None:
            return
        end = time.monotonic() + _PATIENCE
        child = self._start(["grep", "-sH", "", *self._files]).value
        if child is not None:
            self._look = Inquiry(child, end, _LONGEST)

    def tick(self) -> bool:
        """Go on with the look. True if it has ended, well or not."""
        if self._look is None:
            return True
        if not self._look.tick():
            return False
        if self._look.status is not None and self._look.said is not None:
            self._last = read_counters(self._look.said.decode("utf-8", "replace"))
            self._first = self._first or self._last
        self._look = None
        return True

    @property
    def grown(self) -> Counters:
        """By how much each counter is larger than at the first look."""
        return growth(self._first or {}, self._last or {})

    def close(self) -> None:
        """End a look that is under way."""
        if self._look is not None:
            self._look.close()
            self._look = None


def read_counters(text: str) -> Counters:
    """Read lines such as ``/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:0``."""
    found: Counters = {}
    for line in text.splitlines():
        path, _, value = line.rpartition(":")
        parts = path.split("/")
        number = whole_number(value, _DIGITS)
        if number is not None and parts[-4:-3] == ["ports"] and parts[-5:-4]:
            found.setdefault(_name(parts[:-2]), {})[parts[-1]] = number
    return found


def growth(before: Mapping[str, Mapping[str, int]], after: Counters) -> Counters:
    """Return by how much counters have grown. One that is smaller than before was reset."""
    found: Counters = {}
    for port, counters in after.items():
        for name, value in counters.items():
            old = before.get(port, {}).get(name)
            if old is not None and value > old:
                found.setdefault(port, {})[name] = value - old
    return found
