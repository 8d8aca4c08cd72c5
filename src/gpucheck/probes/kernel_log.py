"""The messages about GPUs in the kernel log, if this user may read it, and the Fabric Manager's."""

import math
from collections.abc import Callable
from typing import TypeVar

from gpucheck.facts import Answer, Notes
from gpucheck.facts.driver import KernelLog, LostLink, OomKill, SxidEvent, XidEvent
from gpucheck.facts.numbers import whole_number
from gpucheck.language import say
from gpucheck.log_patterns import kernel_log as messages
from gpucheck.machine import Host
from gpucheck.probes.reading.platform import not_linux

# The SXids that the Fabric Manager wrote into its own log.
#
# The kernel's log has the same ones, unless it is full or this user may not read it.

PATH = "/var/log/fabricmanager.log"
"""Where LOG_FILE_NAME puts it if nobody has changed it (NVIDIA's Fabric Manager User Guide)."""

_BOOT = "/proc/stat"
_ZONE = ("date", "+%z")
_ZONE_TIMEOUT = 1.0  # seconds; it reads one small file
_HOUR, _MINUTE = 3600, 60  # seconds
_ALL_ZONES = (-12 * _HOUR, 14 * _HOUR)
"""Seconds east of Greenwich: the first and the last time zone there is."""


def sxids_of_the_manager(
    host: Host, uptime: Answer[float]
) -> list[tuple[messages.Sxid, Answer[float]]]:
    """Return the SXids since this boot, oldest first, each with its age in seconds.

    The log goes back to the installation, so a line has to be younger than the boot in every time
    zone that its clock may have. Where they differ, its age is unknown.
    """
    lines = host.read_end(PATH).map(
        lambda end: messages.split_manager_log(end.decode("utf-8", "replace"))
    )
    failures = [
        (line.seconds, sxid)
        for line in lines.value or ()
        if (sxid := messages.parse_sxid(line.text))
    ]
    if not failures or uptime.value is None:
        return []
    booted = host.read(_BOOT).map(_booted)
    if booted.value is None:
        return []
    zones = _zones(host)
    now = booted.value + uptime.value
    found = []
    for written, sxid in failures:
        if written - max(zones) >= booted.value:
            known = Answer(max(0.0, round(now - written + zones[0], 1)), PATH)
            found.append((sxid, known if len(set(zones)) == 1 else _no_age()))
    return found


def _no_age() -> Answer[float]:
    return Answer(None, PATH, say("its lines do not name the time zone"))


def _booted(text: str) -> int | None:
    """Return the time of the boot, in seconds since 1970 (Linux, proc_stat(5))."""
    lines = (line.split() for line in text.splitlines() if line.startswith("btime "))
    return next((whole_number(words[1]) for words in lines if len(words) > 1), None)


def _zones(host: Host) -> tuple[int, ...]:
    """Return the time zones that the clock of the log may have: UTC or that of the machine.

    The zone of the machine is unknown if this user has another one, and below a sysroot.
    """
    if host.origin == "sysroot" or "TZ" in host.env():
        return _ALL_ZONES
    zone = host.run(_ZONE, timeout=_ZONE_TIMEOUT).map(lambda end: _seconds_east(end.out.strip()))
    return _ALL_ZONES if zone.value is None else (0, zone.value)


def _seconds_east(zone: str) -> int | None:
    """Return the seconds of ``+0530``."""
    hours, minutes = whole_number(zone[1:3]), whole_number(zone[3:])
    if zone[:1] not in ("+", "-") or len(zone) != len("+0530") or hours is None or minutes is None:
        return None
    east = hours * _HOUR + minutes * _MINUTE
    return east if zone[0] == "+" else -east


DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "files"

_KMSG = "/dev/kmsg"
# Bytes; chosen: above the usual ring of the kernel (256 KiB to 1 MiB).
_KMSG_LIMIT = 2 * 1024 * 1024
_JOURNAL = (
    "journalctl",
    "-k",
    "-b",
    "-q",
    "-o",
    "short-monotonic",
    "--no-pager",
    "-n",
    "5000",
)
# Seconds. Chosen: with dmesg below the deadline of the probe; a journal on a slow disk is not
# waited for.
_JOURNAL_TIMEOUT = 3.0
_DMESG = ("dmesg",)
_DMESG_TIMEOUT = 1.0  # seconds; it only copies the ring of the kernel
_OF_THIS_KERNEL = "/proc/uptime"
"""Below a sysroot it is there only if the system's /proc is mounted, so that it has this kernel."""
_NVIDIA_SIGNS = (
    "/sys/module/nvidia",
    "/sys/module/nouveau",
    "/dev/nvidiactl",
    "/usr/bin/nvidia-smi",
)
_MOST_NVRM = 50  # chosen: the newest count, and a report has to stay readable
_MOST_ALIKE = 20
"""Maximum number of events of one Xid on one GPU: a flood must not displace a rare event."""
_Event = TypeVar("_Event", XidEvent, SxidEvent)
_MOST_KILLS = 50  # chosen likewise
_MOST_LINKS = 50  # likewise: a host of containers has hundreds of interfaces
_FASTEST, _TOLERANCE = 1.0005, 1.0
"""NTP corrects the clock of the uptime by at most this, and never that of the log."""

_OWN_GROUPS = "/proc/self/cgroup"
_MEMORY_COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
"""Of the first group that this process sees, version 2 and 1: ``oom_kill 3`` (Linux,
Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst)."""
_GROUP_FILE_LIMIT = 65536  # bytes; these files have a few hundred


def collect(host: Host) -> KernelLog:
    """Read the log and select the messages about GPUs and memory."""
    if problems := not_linux(host):
        return KernelLog(problems=problems)
    log = _records(host)
    uptime = host.line("/proc/uptime").map(_uptime)
    of_manager = [_of_switch(sxid, ago, PATH) for sxid, ago in sxids_of_the_manager(host, uptime)]
    if log.value is None:
        return KernelLog(
            sxids=_newest_of_each(of_manager, _same_sxid) or None,  # its silence proves nothing
            sources={"sxids": PATH} if of_manager else {},
            problems={"*": log.complaint},
        )
    xids: list[XidEvent] = []
    sxids: list[SxidEvent] = []
    nvrm: list[str] = []
    kills: dict[int, OomKill] = {}
    limits: dict[int, str] = {}
    rejections: dict[str, None] = {}
    off_bus = messages.fallen_off_bus([record.text for record in log.value])
    for record in log.value:
        if xid := messages.parse_xid(record.text):
            xids.append(_event(xid, record, uptime, log.source))
        elif sxid := messages.parse_sxid(record.text):
            sxids.append(_of_switch(sxid, _ago(record, uptime), log.source))
        elif messages.speaks_of_driver(record.text):
            nvrm.append(messages.without_uuids(record.text))
        elif messages.rejects_module(record.text):
            rejections[record.text] = None
        elif limit := messages.parse_reached_limit(record.text):
            limits[limit[0]] = limit[1]
        elif kill := messages.parse_oom_kill(record.text):
            own = _is_around(host, limits.pop(kill.pid, ""))
            kills[kill.pid] = _kill(kill, own, record, uptime, log.source)
    in_both = {_same_sxid(event) for event in sxids}
    sxids[:0] = [event for event in of_manager if _same_sxid(event) not in in_both]
    return KernelLog(
        xids=_newest_of_each(xids, lambda event: (event.xid, event.pci_address)),
        sxids=_newest_of_each(sxids, _same_sxid),
        fallen_off_bus=off_bus,
        nvrm=nvrm[-_MOST_NVRM:],
        rejected_modules=list(rejections)[-_MOST_NVRM:],
        oom_kills=list(kills.values())[-_MOST_KILLS:],
        lost_links=_lost_links(log.value, uptime, log.source),
        sources={"*": log.source},
    )


def _records(host: Host) -> Answer[list[messages.KernelRecord]]:
    """Read the kernel's buffer, or what the journal or dmesg has of it."""
    buffer = host.read(_KMSG, _KMSG_LIMIT).map(messages.split_kmsg)
    if buffer.value:
        return buffer
    if buffer.value is not None:
        # The buffer of a booted kernel is never empty, but the substitute in a container is.
        buffer = Answer(None, _KMSG, say("it is empty"))
    if not any(host.exists(sign).value for sign in _NVIDIA_SIGNS):
        return buffer
    if host.origin != "sysroot":
        journal = _read_by_program(host, _JOURNAL, _JOURNAL_TIMEOUT, messages.split_journal)
        if journal.value:  # a user who may not read the journal gets an empty one
            return journal
    if host.exists(_OF_THIS_KERNEL).value is not True:
        return buffer
    # A container is refused the device, but dmesg can also ask by a system call.
    dmesg = _read_by_program(host, _DMESG, _DMESG_TIMEOUT, messages.split_dmesg)
    return dmesg if dmesg.value else buffer


def _read_by_program(
    host: Host,
    argv: tuple[str, ...],
    timeout: float,
    split: Callable[[str], list[messages.KernelRecord]],
) -> Answer[list[messages.KernelRecord]]:
    found = host.which(argv[0])
    if found.value is None:
        return Answer(None, found.source, found.problem)
    return host.run(argv, timeout=timeout).map(lambda end: split(end.out))


def _event(
    xid: messages.Xid, record: messages.KernelRecord, uptime: Answer[float], source: str
) -> XidEvent:
    notes = Notes()
    for field in ("xid", "message"):
        notes.known(field, source)
    if xid.address:
        notes.known("pci_address", source)
    else:
        notes.unknown("pci_address", say("the message names no PCI address"))
    return XidEvent(
        xid=xid.number,
        pci_address=xid.address or None,
        message=xid.message,
        seconds_ago=notes.take("seconds_ago", _ago(record, uptime)),
        sources=notes.sources,
        problems=notes.problems,
    )


def _same_sxid(event: SxidEvent) -> object:
    return event.sxid, event.pci_address


def _of_switch(sxid: messages.Sxid, ago: Answer[float], source: str) -> SxidEvent:
    notes = Notes()
    notes.known("*", source)
    for field in ("pci_address", "link", "fatal"):
        if getattr(sxid, field if field != "pci_address" else "address") in ("", None):
            notes.unknown(field, say("the message does not say"))
    return SxidEvent(
        sxid=sxid.number,
        pci_address=sxid.address or None,
        link=sxid.link,
        fatal=sxid.fatal,
        message=sxid.message,
        seconds_ago=notes.take("seconds_ago", ago),
        sources=notes.sources,
        problems=notes.problems,
    )


def _kill(
    kill: messages.Kill,
    own: Answer[bool],
    record: messages.KernelRecord,
    uptime: Answer[float],
    source: str,
) -> OomKill:
    notes = Notes()
    notes.known("*", source)
    is_limit = kill.scope == "cgroup"
    return OomKill(
        pid=kill.pid,
        process_name=kill.process_name,
        scope=kill.scope,
        in_own_group=notes.take("in_own_group", own) if is_limit else False,
        seconds_ago=notes.take("seconds_ago", _ago(record, uptime)),
        sources=notes.sources,
        problems=notes.problems,
    )


def _lost_links(
    records: list[messages.KernelRecord], uptime: Answer[float], source: str
) -> list[LostLink]:
    """Return the interfaces that lost their link and have none since, as the drivers say."""
    lost: dict[str, messages.KernelRecord] = {}
    had_link: set[str] = set()
    for record in records:
        interface, is_up = messages.parse_link(record.text) or ("", False)
        if is_up:
            had_link.add(interface)
            lost.pop(interface, None)
        elif interface:
            lost.setdefault(interface, record)
    return [
        _lost_link(interface, interface in had_link, _ago(record, uptime), source)
        for interface, record in [*lost.items()][-_MOST_LINKS:]
    ]


def _lost_link(interface: str, was_up: bool, ago: Answer[float], source: str) -> LostLink:  # noqa: FBT001
    notes = Notes()
    notes.known("*", source)
    return LostLink(
        interface=interface,
        was_up=was_up,
        seconds_ago=notes.take("seconds_ago", ago),
        sources=notes.sources,
        problems=notes.problems,
    )


def _uptime(text: str) -> float | None:
    seconds = float(text.split(maxsplit=1)[0])
    return seconds if math.isfinite(seconds) else None


def _ago(record: messages.KernelRecord, uptime: Answer[float]) -> Answer[float]:
    """Return the age of a message.

    A container may have an uptime of its own (LXC), by which the message is yet to come.
    """
    ahead = say("by {file}, the message is yet to come", file=uptime.source)
    if uptime.value is not None and record.seconds > uptime.value * _FASTEST + _TOLERANCE:
        return Answer(None, uptime.source, ahead)
    return uptime.map(lambda up: max(0.0, round(up - record.seconds, 1)))


def _newest_of_each(events: list[_Event], of: Callable[[_Event], object]) -> list[_Event]:
    counts: dict[object, int] = {}
    kept = []
    for event in reversed(events):
        key = of(event)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= _MOST_ALIKE:
            kept.append(event)
    return kept[::-1]


def _is_around(host: Host, group: str) -> Answer[bool]:
    """Whether a group of the kernel's log is that of this process, or one around it.

    A container has its own names for its groups. There the kernel's count for the container tells
    whether anything in it was ever killed; no limit outside of it counts.
    """
    if host.origin == "sysroot":
        return Answer(None, _OWN_GROUPS, say("gpucheck runs outside of the system below --sysroot"))
    own = host.read(_OWN_GROUPS, _GROUP_FILE_LIMIT).map(_memory_groups)
    if own.value is None:
        return Answer(None, own.source, own.problem)
    names = [
        group_name for group_name in own.value if group_name != "/" and "/.." not in group_name
    ]
    if group and names:
        return Answer(
            any(f"{group_name}/".startswith(f"{group}/") for group_name in names), own.source
        )
    for path in _MEMORY_COUNTERS:
        count = host.read(path, _GROUP_FILE_LIMIT).map(_kills)
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
