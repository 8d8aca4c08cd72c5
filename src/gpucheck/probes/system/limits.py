"""Limits of this process, and the size of shared memory, that GPU jobs run into."""

from gpucheck.facts import Notes
from gpucheck.facts.limits import LimitsOfProcess
from gpucheck.language import say
from gpucheck.machine import Host

DEADLINE = 5.0
LANE = "files"

_SHM = "/dev/shm"  # noqa: S108  # measured, never written to
_INFINIBAND = "/sys/class/infiniband/*"


def collect(host: Host) -> LimitsOfProcess:
    """Query the sizes and limits."""
    notes = Notes()
    limits = host.limits()
    for field in ("memlock_bytes", "open_files"):
        if getattr(limits, field) is None:
            notes.unknown(field, say("this system has no such limit"))
        else:
            notes.said(field, "getrlimit")
    space = host.space(_SHM)
    return LimitsOfProcess(
        shm_total_bytes=notes.take("shm_total_bytes", space.map(lambda size: size.total)),
        shm_free_bytes=notes.take("shm_free_bytes", space.map(lambda size: size.free)),
        memlock_bytes=limits.memlock_bytes,
        open_files=limits.open_files,
        infiniband_devices=_infiniband(host, notes),
        sources=notes.sources,
        problems=notes.problems,
    )


def _infiniband(host: Host, notes: Notes) -> list[str] | None:
    field = "infiniband_devices"
    if host.exists("/sys/class").value is not True:
        notes.unknown(field, say("/sys/class does not exist"))
        return None
    found = notes.take(field, host.glob(_INFINIBAND))
    if found is None:
        return None
    return [path.rpartition("/")[2] for path in found if not _is_ethernet(host, path)]


def _is_ethernet(host: Host, device: str) -> bool:
    ports = host.glob(f"{device}/ports/*/link_layer").value or ()
    layers = {host.line(port).value for port in ports}
    return layers == {"Ethernet"}
