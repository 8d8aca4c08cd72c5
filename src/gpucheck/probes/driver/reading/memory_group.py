"""Whether a control group whose memory limit was reached is that of this process."""

from gpucheck.facts import Answer
from gpucheck.facts.numbers import whole_number
from gpucheck.language import say
from gpucheck.machine import Host

_OWN = "/proc/self/cgroup"
_COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
"""Of the first group that this process sees, version 2 and 1: ``oom_kill 3`` (Linux,
Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst)."""
_LIMIT = 65536


def is_around(host: Host, group: str) -> Answer[bool]:
    """Whether a group of the kernel's log is that of this process, or one around it.

    A container has its own names for its groups. There the kernel's count for the container tells
    whether anything in it was ever killed; no limit outside of it counts.
    """
    if host.origin == "sysroot":
        return Answer(None, _OWN, say("gpucheck runs outside of the system below --sysroot"))
    own = host.read(_OWN, _LIMIT).map(_memory_groups)
    if own.value is None:
        return Answer(None, own.source, own.problem)
    names = [
        group_name for group_name in own.value if group_name != "/" and "/.." not in group_name
    ]
    if group and names:
        return Answer(
            any(f"{group_name}/".startswith(f"{group}/") for group_name in names), own.source
        )
    for path in _COUNTERS:
        count = host.read(path, _LIMIT).map(_kills)
        if count.value is not None:
            return Answer(count.value > 0, path)
    return Answer(None, own.source, say("the group is not known by the name in the log"))


def _memory_groups(text: str) -> list[str]:
    """Return the groups of a process that may limit its memory: ``4:memory:/a``, ``0::/b``."""
    found = [line.split(":", 2) for line in text.splitlines()]
    return [
        parts[2]
        for parts in found
        if len(parts) == 3 and (not parts[1] or "memory" in parts[1].split(","))  # noqa: PLR2004
    ]


def _kills(text: str) -> int | None:
    for line in text.splitlines():
        name, _blank, count = line.partition(" ")
        if name == "oom_kill":
            return whole_number(count)
    return None
