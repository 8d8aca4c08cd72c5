"""The messages about GPUs in the kernel log, if this user may read it."""

import math
from collections.abc import Callable

from gpucheck.facts import Answer, Notes
from gpucheck.facts.kernel_log import KernelLog, OomKill, XidEvent
from gpucheck.language import say
from gpucheck.log_patterns import kernel_log as messages
from gpucheck.machine import Host
from gpucheck.probes.driver.reading import memory_group
from gpucheck.probes.system.reading.platform import not_linux

DEADLINE = 5.0
LANE = "files"

_KMSG = "/dev/kmsg"
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
_JOURNAL_TIMEOUT = 3.0
_DMESG = ("dmesg",)
_DMESG_TIMEOUT = 1.0
_OF_THIS_KERNEL = "/proc/uptime"
"""Below a sysroot it is there only if the system's /proc is mounted, so that it has this kernel."""
_NVIDIA_SIGNS = (
    "/sys/module/nvidia",
    "/sys/module/nouveau",
    "/dev/nvidiactl",
    "/usr/bin/nvidia-smi",
)
_MOST_NVRM = 50
_MOST_ALIKE = 20
"""Maximum number of events of one Xid on one GPU: a flood must not displace a rare event."""
_MOST_KILLS = 50
_FASTEST, _TOLERANCE = 1.0005, 1.0
"""NTP corrects the clock of the uptime by at most this, and never that of the log."""


def collect(host: Host) -> KernelLog:
    """Read the log and select the messages about GPUs and memory."""
    if problems := not_linux(host):
        return KernelLog(problems=problems)
    log = _records(host)
    if log.value is None:
        return KernelLog(problems={"*": log.complaint})
    uptime = host.line("/proc/uptime").map(_uptime)
    xids: list[XidEvent] = []
    nvrm: list[str] = []
    kills: dict[int, OomKill] = {}
    limits: dict[int, str] = {}
    off_bus = messages.fallen_off_bus([record.text for record in log.value])
    for record in log.value:
        if xid := messages.parse_xid(record.text):
            xids.append(_event(xid, record, uptime, log.source))
        elif messages.speaks_of_driver(record.text):
            nvrm.append(messages.without_uuids(record.text))
        elif limit := messages.parse_reached_limit(record.text):
            limits[limit[0]] = limit[1]
        elif kill := messages.parse_oom_kill(record.text):
            own = memory_group.is_around(host, limits.pop(kill.pid, ""))
            kills[kill.pid] = _kill(kill, own, record, uptime, log.source)
    return KernelLog(
        xids=_newest_of_each(xids),
        fallen_off_bus=off_bus,
        nvrm=nvrm[-_MOST_NVRM:],
        oom_kills=list(kills.values())[-_MOST_KILLS:],
        sources={"*": log.source},
    )


def _records(host: Host) -> Answer[list[messages.Record]]:
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
    split: Callable[[str], list[messages.Record]],
) -> Answer[list[messages.Record]]:
    found = host.which(argv[0])
    if found.value is None:
        return Answer(None, found.source, found.problem)
    return host.run(argv, timeout=timeout).map(lambda end: split(end.out))


def _event(
    xid: messages.Xid, record: messages.Record, uptime: Answer[float], source: str
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


def _kill(
    kill: messages.Kill,
    own: Answer[bool],
    record: messages.Record,
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


def _uptime(text: str) -> float | None:
    seconds = float(text.split(maxsplit=1)[0])
    return seconds if math.isfinite(seconds) else None


def _ago(record: messages.Record, uptime: Answer[float]) -> Answer[float]:
    """Return the age of a message.

    A container may have an uptime of its own (LXC), by which the message is yet to come.
    """
    ahead = say("by {file}, the message is yet to come", file=uptime.source)
    if uptime.value is not None and record.seconds > uptime.value * _FASTEST + _TOLERANCE:
        return Answer(None, uptime.source, ahead)
    return uptime.map(lambda up: max(0.0, round(up - record.seconds, 1)))


def _newest_of_each(events: list[XidEvent]) -> list[XidEvent]:
    counts: dict[tuple[int | None, str | None], int] = {}
    kept = []
    for event in reversed(events):
        key = (event.xid, event.pci_address)
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= _MOST_ALIKE:
            kept.append(event)
    return kept[::-1]
