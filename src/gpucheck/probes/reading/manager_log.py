"""The SXids that the Fabric Manager wrote into its own log.

The kernel's log has the same ones, unless it is full or this user may not read it.
"""

from gpucheck.facts import Answer
from gpucheck.facts.numbers import whole_number
from gpucheck.language import say
from gpucheck.log_patterns import kernel_log as messages
from gpucheck.machine import Host

PATH = "/var/log/fabricmanager.log"
"""Where LOG_FILE_NAME puts it if nobody has changed it (NVIDIA's Fabric Manager User Guide)."""

_BOOT = "/proc/stat"
_ZONE = ("date", "+%z")
_ZONE_TIMEOUT = 1.0  # seconds; it reads one small file
_HOUR, _MINUTE = 3600, 60  # seconds
_ALL_ZONES = (-12 * _HOUR, 14 * _HOUR)
"""Seconds east of Greenwich: the first and the last time zone there is."""


def sxids(host: Host, uptime: Answer[float]) -> list[tuple[messages.Sxid, Answer[float]]]:
    """Return the SXids since this boot, oldest first, each with its age in seconds.

    The log goes back to the installation, so a line has to be younger than the boot in every time
    zone that its clock may have. Where they differ, its age is unknown.
    """
    lines = host.read_end(PATH).map(
        lambda end: messages.split_manager_log(end.decode("utf-8", "replace"))
    )
    told = [
        (line.seconds, sxid)
        for line in lines.value or ()
        if (sxid := messages.parse_sxid(line.text))
    ]
    if not told or uptime.value is None:
        return []
    booted = host.read(_BOOT).map(_booted)
    if booted.value is None:
        return []
    zones = _zones(host)
    now = booted.value + uptime.value
    found = []
    for written, sxid in told:
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
