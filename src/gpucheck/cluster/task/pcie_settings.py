"""How a node has set up PCI Express for its GPUs and RDMA adapters, from the configuration space.

Registers as in the PCI Express Base Specification and Linux' ``pci_regs.h``: the list of
capabilities begins at the byte in 0x34, that of extended capabilities at 0x100. The kernel shows
only the first 64 bytes to anybody but root, and a virtual machine may have no extended ones.
"""

from collections.abc import Iterable, Sequence

from gpucheck.language import say
from gpucheck.machine import Host

_GPUS = "/proc/driver/nvidia/gpus"
_ADAPTERS = "/sys/class/infiniband/*/device"
_DEVICES = "/sys/bus/pci/devices"
_MOST = 64
"""GPUs, adapters, and bridges above one of them."""
_HEADER, _SPACE = 64, 4096
_LIST, _STATUS, _HAS_LIST = 0x34, 0x06, 0x10
_EXPRESS = 0x10
_CONTROL = 0x08
"""Device Control in the PCI Express capability."""
_RELAXED = 0x0010
_PAYLOAD, _READ_REQUEST = 5, 12
"""The lowest of three bits, which say 128 bytes shifted by their number."""
_EXTENDED = 0x100
_ACS, _ACS_CONTROL, _REDIRECT = 0x000D, 0x06, 0x0004


def pcie_settings(host: Host) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings, and why others are unknown, by the keys of ``figures.node_settings``.

    ``acs`` is ``enabled`` if a bridge above one of the devices redirects what another device sends
    to it: traffic between a GPU and an adapter then takes the way over the processor.
    """
    gpus = _real(host, [f"{_DEVICES}/{one}" for one in host.listing(_GPUS).value or ()])
    adapters = _real(host, host.glob(_ADAPTERS).value or ())
    found: dict[str, str] = {}
    unknown: dict[str, str] = {}
    for kind, devices in (("gpu", gpus), ("adapter", adapters)):
        if devices:
            some, why = _of_devices(host, kind, devices)
            found |= some
            unknown |= why
    if bridges := _bridges([*gpus, *adapters]):
        redirects = _redirects(host, bridges)
        if isinstance(redirects, bool):
            found["acs"] = "enabled" if redirects else "disabled"
        else:
            unknown["acs"] = redirects
    return found, unknown


def _real(host: Host, links: Iterable[str]) -> list[str]:
    """Return the folders of PCI devices; each has those of the bridges above it in its path."""
    found = [host.real_path(one).value for one in links]
    return [one for one in found if one is not None and "/pci" in one][:_MOST]


def _of_devices(
    host: Host, kind: str, devices: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    keys = [f"{kind}-{name}" for name in ("payload", "read-request", "relaxed-ordering")]
    values: list[list[str]] = [[], [], []]
    for device in devices:
        control = _device_control(host, device)
        if isinstance(control, str):
            return {}, dict.fromkeys(keys, control)
        values[0].append(f"{128 << (control >> _PAYLOAD & 7)} B")
        values[1].append(f"{128 << (control >> _READ_REQUEST & 7)} B")
        values[2].append("enabled" if control & _RELAXED else "disabled")
    return {key: _counted(said) for key, said in zip(keys, values, strict=True)}, {}


def _counted(values: Sequence[str]) -> str:
    kinds = sorted(set(values))
    if len(kinds) == 1:
        return kinds[0]
    return ", ".join(f"{values.count(one)} x {one}" for one in kinds)


def _device_control(host: Host, device: str) -> int | str:
    """Return the register Device Control, or why it is unknown."""
    space = _configuration(host, device)
    if isinstance(space, str):
        return space
    if not space[_STATUS] & _HAS_LIST:
        return _not_express(device)
    at, seen = space[_LIST] & ~3, set[int]()
    while _HEADER <= at <= len(space) - _CONTROL - 2 and at not in seen:
        seen.add(at)
        if space[at] == _EXPRESS:
            return _word(space, at + _CONTROL)
        at = space[at + 1] & ~3
    return _not_express(device)


def _not_express(device: str) -> str:
    return say("{device} has no PCI Express capability", device=device.rpartition("/")[2])


def _redirects(host: Host, bridges: Sequence[str]) -> bool | str:
    """Whether a bridge redirects requests between its devices, or why that is unknown."""
    for bridge in bridges:
        space = _configuration(host, bridge)
        if isinstance(space, str):
            return space
        if len(space) <= _EXTENDED:
            return say(
                "{device} shows no extended configuration space", device=bridge.rpartition("/")[2]
            )
        control = _acs_control(space)
        if control is not None and control & _REDIRECT:
            return True
    return False


def _acs_control(space: bytes) -> int | None:
    """Return the control register of Access Control Services; None for a bridge without it."""
    at, seen = _EXTENDED, set[int]()
    while _EXTENDED <= at <= len(space) - _ACS_CONTROL - 2 and at not in seen:
        seen.add(at)
        head = int.from_bytes(space[at : at + 4], "little")
        if head & 0xFFFF == _ACS:
            return _word(space, at + _ACS_CONTROL)
        at = head >> 20 & ~3
    return None


def _configuration(host: Host, device: str) -> bytes | str:
    """Return the configuration space of a device, or why more than its header is unknown."""
    answer = host.read_bytes(f"{device}/config", _SPACE)
    if answer.value is None:
        return answer.complaint
    if len(answer.value) <= _HEADER:
        return say("the kernel shows PCI configuration beyond 64 bytes only to root")
    return answer.value


def _bridges(devices: Sequence[str]) -> list[str]:
    """Return the folders of the bridges above the devices, each once."""
    found: dict[str, None] = {}
    for device in devices:
        above = device.rpartition("/")[0]
        while above.rpartition("/")[2].count(":") == 2:  # noqa: PLR2004  # 0000:17:00.0
            found[above] = None
            above = above.rpartition("/")[0]
    return list(found)[: _MOST * 4]


def _word(space: bytes, at: int) -> int:
    return int.from_bytes(space[at : at + 2], "little")
