"""Limits of this process, and the size of shared memory, that GPU jobs run into."""

import re

from gpucheck.facts import Notes
from gpucheck.facts.system import LimitsOfProcess
from gpucheck.language import say
from gpucheck.machine import Host, Limits

DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "files"

_SHM = "/dev/shm"  # noqa: S108  # measured, never written to
_INFINIBAND = "/sys/class/infiniband/*"
_STATUS, _USERS = "/proc/self/status", "/proc/self/uid_map"
_EFFECTIVE = re.compile(r"^CapEff:[ \t]{1,4}([0-9a-f]{1,16})$", re.MULTILINE)
_IPC_LOCK = 14
"""The bit of CAP_IPC_LOCK: capabilities(7), linux/capability.h."""
_EVERY_USER = ["0", "0", "4294967295"]
"""The map of the first user namespace: user_namespaces(7)."""


def collect(host: Host) -> LimitsOfProcess:
    """Query the sizes and limits."""
    notes = Notes()
    elsewhere = host.origin == "sysroot"
    limits = Limits() if elsewhere else host.limits()
    for field in ("memlock_bytes", "open_files", "address_space_bytes"):
        if getattr(limits, field) is None:
            notes.unknown(
                field,
                say("gpucheck runs outside of the system below --sysroot")
                if elsewhere
                else say("this system has no such limit"),
            )
        else:
            notes.known(field, "getrlimit")
    space = host.space(_SHM)
    return LimitsOfProcess(
        shm_total_bytes=notes.take("shm_total_bytes", space.map(lambda size: size.total)),
        shm_free_bytes=notes.take("shm_free_bytes", space.map(lambda size: size.free)),
        memlock_bytes=limits.memlock_bytes,
        may_exceed_memlock=_may_exceed(host, notes),
        open_files=limits.open_files,
        address_space_bytes=limits.address_space_bytes,
        infiniband_devices=_infiniband(host, notes),
        sources=notes.sources,
        problems=notes.problems,
    )


def _may_exceed(host: Host, notes: Notes) -> bool | None:
    """Whether RDMA ignores the limit: ``capable(CAP_IPC_LOCK)`` in ib_core asks for both."""
    field = "may_exceed_memlock"
    status, users = host.read(_STATUS), host.line(_USERS)
    if status.value is None or users.value is None:
        notes.take(field, status if status.value is None else users)
        return None
    found = _EFFECTIVE.search(status.value)
    if found is None:
        notes.unknown(field, say("{path} does not list the capabilities", path=_STATUS))
        return None
    notes.known(field, _STATUS)
    return bool(int(found[1], 16) >> _IPC_LOCK & 1) and users.value.split() == _EVERY_USER


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
