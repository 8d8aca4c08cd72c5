"""What the limits of control groups on processor time and on processes do to this process.

The kernel counts, for each group with a limit on processor time, its periods and those in which the
group had used up its share. For each limit on processes it counts how often it refused one (Linux,
Documentation/scheduler/sched-bwc.rst, admin-guide/cgroup-v2.rst and cgroup-v1/pids.rst).
"""

import contextlib
import os
from collections.abc import Iterator

import msgspec

from gpucheck.facts.numbers import whole_number

_OWN, _MOUNT = "/proc/self/cgroup", "/sys/fs/cgroup"
_LONGEST = 65536
_MOST_GROUPS = 64


class ProcessorLimit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit on this process, and what it has done."""

    group: str
    periods: int
    throttled: int
    """The periods in which the group had to wait."""
    processors: float | None = None
    """How many it allows; None if that is not told, or there is no limit."""


def processor_limits() -> dict[str, ProcessorLimit]:
    """Return what is known of the group of this process and of those around it, by their folder."""
    limits = ((folder, _limit(folder)) for folder in _groups("cpu"))
    return {folder: limit for folder, limit in limits if limit is not None}


def throttled_since(before: dict[str, ProcessorLimit]) -> ProcessorLimit | None:
    """Return what the limit that held this process up most has done since; None without any."""
    since = [
        msgspec.structs.replace(
            now,
            periods=max(0, now.periods - before[folder].periods),
            throttled=max(0, now.throttled - before[folder].throttled),
        )
        for folder, now in processor_limits().items()
        if folder in before and now.processors is not None
    ]
    return max(since, key=lambda limit: limit.throttled, default=None)


def refused_processes() -> int:
    """Return how often a group of this process, or around it, was refused a process or thread."""
    total = 0
    for folder in _groups("pids"):
        words = _read(f"{folder}/pids.events").split()
        if len(words) > 1 and words[0] == "max":
            total += whole_number(words[1]) or 0
    return total


def _groups(controller: str) -> Iterator[str]:
    """Yield the folders of the group of this process and of those around it."""
    for line in _read(_OWN).splitlines():
        parts = line.split(":", 2)
        if len(parts) == 3 and controller in (parts[1] or controller).split(","):  # noqa: PLR2004
            yield from _folders(parts[1], parts[2], controller)


def _folders(controllers: str, path: str, controller: str) -> list[str]:
    """Return the folders of a group and of those around it, the innermost first."""
    root = f"{_MOUNT}/{controllers}".rstrip("/")
    if not os.path.isdir(root):  # noqa: PTH112  # a string is all that is needed
        root = f"{_MOUNT}/{controller}"
    parts = [word for word in path.split("/") if word not in ("", "..")][:_MOST_GROUPS]
    return ["/".join([root, *parts[:count]]) for count in range(len(parts), -1, -1)]


def _limit(folder: str) -> ProcessorLimit | None:
    lines = (line.split() for line in _read(f"{folder}/cpu.stat").splitlines())
    counted = {words[0]: whole_number(words[1]) for words in lines if len(words) > 1}
    periods, throttled = counted.get("nr_periods"), counted.get("nr_throttled")
    if periods is None or throttled is None:
        return None
    return ProcessorLimit(
        group=folder, periods=periods, throttled=throttled, processors=_processors(folder)
    )


def _processors(folder: str) -> float | None:
    words = _read(f"{folder}/cpu.max").split() or [
        _read(f"{folder}/cpu.cfs_quota_us").strip(),
        _read(f"{folder}/cpu.cfs_period_us").strip(),
    ]
    quota, period = (whole_number(word) for word in (*words, "", "")[:2])
    return quota / period if quota and period else None


def _read(path: str) -> str:
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY)
        try:
            return os.read(handle, _LONGEST).decode("ascii", "replace")
        finally:
            os.close(handle)
    return ""
