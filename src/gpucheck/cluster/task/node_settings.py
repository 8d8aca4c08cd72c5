"""Settings and firmware of a node that should be the same on every node of a job.

All but PCI Express can be read without root. A value that is unknown is left out. Values hold no
sentences, because they go to another process: a number with its unit, a name, ``enabled``,
``disabled`` or ``none``; with several values on a node ``1 x enabled, 7 x disabled``.

How PCI Express is set up for GPUs and RDMA adapters stands in the configuration space. Registers as
in the PCI Express Base Specification and Linux' ``pci_regs.h``: the list of capabilities begins at
the byte in 0x34, that of extended capabilities at 0x100. The kernel shows only the first 64 bytes
to anybody but root, and a virtual machine may have no extended ones.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from gpucheck.facts.driver import Driver, Nvml, NvmlGpu
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import Pci
from gpucheck.language import say
from gpucheck.machine import Host

_ADAPTERS = "/sys/class/infiniband/*"
_MODULES = "/sys/module"
_MOST_PORTS = 64
"""Chosen: beyond what a node has; each costs some reads of sysfs."""
_PEER_MEMORY = ("nvidia_peermem", "nv_peer_mem")
"""The module of NVIDIA's driver, and Mellanox' older one."""
_GDRCOPY = "gdrdrv"
_GPUS = "/proc/driver/nvidia/gpus"
_ADAPTER_DEVICES = "/sys/class/infiniband/*/device"
_DEVICES = "/sys/bus/pci/devices"
_MOST = 64
"""GPUs, adapters, and bridges above one of them."""
# As in pci_regs.h: another number would read another register.
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


def gpu_settings(nvml: Nvml) -> dict[str, str]:
    """Return what NVML reports of the GPUs of a node, by the keys of ``figures.node_settings``.

    Nothing is compared on a node with several models or with a GPU that does not answer.
    """
    gpus = nvml.gpus or []
    models = {gpu.device_name for gpu in gpus}
    if len(models) != 1 or None in models:
        return {}
    found = {"gpu": str(*models)}
    for key, value in _OF_GPUS.items():
        values = [value(gpu) for gpu in gpus]
        known = [text for text in values if text is not None]
        if len(known) == len(values):
            found[key] = known[0] if len(set(known)) == 1 else str(_counted(known))
    return found


def module_settings(snapshot: Snapshot) -> dict[str, str]:
    """Return the flavour of the driver's kernel module, and how many NVSwitches the bus has."""
    flavour, switches = snapshot.get(Driver).module_flavour, snapshot.get(Pci).nvswitches
    found: dict[str, str] = {"module": flavour} if flavour else {}
    return found if switches is None else {**found, "nvswitches": str(switches)}


def adapter_settings(host: Host) -> dict[str, str]:
    """Return what sysfs says of the RDMA adapters, and of the modules that GPUs use with them."""
    found: dict[str, str] = {}
    adapters = host.glob(_ADAPTERS).value
    if adapters and len(adapters) <= _MOST_PORTS:
        found |= _of_adapters(host, adapters)
    if adapters and host.exists(_MODULES).value is True:
        found["peer-memory"] = _switch(any(_is_loaded(host, module) for module in _PEER_MEMORY))
        found["gdrcopy"] = _switch(_is_loaded(host, _GDRCOPY))
    return found


def _of_adapters(host: Host, adapters: Sequence[str]) -> dict[str, str]:
    kinds = [host.line(f"{adapter}/hca_type").value for adapter in adapters]
    firmware = [host.line(f"{adapter}/fw_ver").value for adapter in adapters]
    ports = host.glob(f"{_ADAPTERS}/ports/*").value or []
    states = [_word(host.line(f"{port}/state").value) for port in ports]
    rates = [
        host.line(f"{port}/rate").value
        for port, state in zip(ports, states, strict=True)
        if state == "ACTIVE"
    ]
    layers = [host.line(f"{port}/link_layer").value for port in ports]
    settings = {
        "adapters": _counted(kinds),
        "adapter-firmware": _counted(
            None if None in pair else " ".join(map(str, pair))
            for pair in zip(kinds, firmware, strict=True)
        ),
        "ports": _counted(states),
        "port-rates": _counted(rates),
        "port-layers": _counted(layers),
        "adapter-pcie": _counted(_link(host, adapter) for adapter in adapters),
    }
    return {key: value for key, value in settings.items() if value is not None}


def _link(host: Host, adapter: str) -> str | None:
    """Return speed and width of an adapter's PCIe link; a virtual function has none of its own."""
    speed = host.line(f"{adapter}/device/current_link_speed").value
    width = host.line(f"{adapter}/device/current_link_width").value
    if not speed or not speed[0].isdecimal() or width in (None, "", "0", "255"):
        return None
    return f"{speed.removesuffix(' PCIe')} x{width}"


def _counted(values: Iterable[str | None]) -> str | None:
    """Return each value with its number, as ``8 x MT4129``; None if one is unknown."""
    counts = Counter(values)
    if None in counts or not counts:
        return None
    return ", ".join(f"{count} x {value}" for value, count in sorted(counts.items(), key=str))


def _word(state: str | None) -> str | None:
    """Return the name in a state such as ``4: ACTIVE``."""
    return None if state is None else state.rpartition(":")[2].strip()


def _is_loaded(host: Host, module: str) -> bool:
    return host.exists(f"{_MODULES}/{module}").value is True


def _switch(value: bool) -> str:  # noqa: FBT001  # a fact
    return "enabled" if value else "disabled"


def _switch_or_none(value: bool | None) -> str | None:  # noqa: FBT001  # a fact
    return None if value is None else _switch(value)


def _watts(value: float | None) -> str | None:
    return None if value is None else f"{value:.0f} W"


def _clock(gpu: NvmlGpu) -> str | None:
    clock = gpu.application_clock_mhz
    return None if clock is None else f"{clock} MHz"


def _faults(gpu: NvmlGpu) -> str | None:
    return None if gpu.fabric_faults is None else ", ".join(gpu.fabric_faults) or "none"


def _pcie(gpu: NvmlGpu) -> str | None:
    """Return the fastest generation that card and slot share, and the lanes in use.

    The generation in use is no setting: an idle GPU lowers it.
    """
    if gpu.pcie_generation_max is None or gpu.pcie_width is None:
        return None
    return f"PCIe {gpu.pcie_generation_max} x{gpu.pcie_width}"


def _repairs(gpu: NvmlGpu) -> str | None:
    """Whether a repair of the GPU's memory waits for a reset: of rows, before Ampere of pages."""
    known = [flag for flag in (gpu.rows_pending, gpu.pages_pending) if flag is not None]
    return ("pending" if any(known) else "nothing") if known else None


def _fabric(gpu: NvmlGpu) -> str | None:
    """Return a mark of the GPU's NVLink domain: the UUID itself would name the site's rack."""
    if not gpu.fabric_cluster or gpu.fabric_clique is None:
        return None
    mark = hashlib.sha256(gpu.fabric_cluster.encode()).hexdigest()[:8]
    return f"{mark}/{gpu.fabric_clique}"


_OF_GPUS: dict[str, Callable[[NvmlGpu], str | None]] = {
    "vbios": lambda gpu: gpu.vbios,
    "inforom": lambda gpu: gpu.inforom,
    "power-limit": lambda gpu: _watts(gpu.power_limit_w),
    "application-clock": _clock,
    "persistence": lambda gpu: _switch_or_none(gpu.persistence),
    "ecc": lambda gpu: _switch_or_none(gpu.ecc_enabled),
    "ecc-after-reset": lambda gpu: _switch_or_none(gpu.ecc_after_reset),
    "mig": lambda gpu: _switch_or_none(gpu.mig_enabled),
    "mig-after-reset": lambda gpu: _switch_or_none(gpu.mig_pending),
    "repairs": _repairs,
    "gpu-pcie": _pcie,
    "c2c": lambda gpu: _switch_or_none(gpu.c2c),
    "fabric-faults": _faults,
    "fabric": _fabric,
}


def pcie_settings(host: Host) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings, and why others are unknown, by the keys of ``figures.node_settings``.

    ``acs`` is ``enabled`` if a bridge above one of the devices redirects what another device sends
    to it: traffic between a GPU and an adapter then takes the way over the processor.
    """
    gpus = _real(host, [f"{_DEVICES}/{address}" for address in host.listing(_GPUS).value or ()])
    adapters = _real(host, host.glob(_ADAPTER_DEVICES).value or ())
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
    found = [host.real_path(link).value for link in links]
    return [folder for folder in found if folder is not None and "/pci" in folder][:_MOST]


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
    return {key: _counted_if_mixed(texts) for key, texts in zip(keys, values, strict=True)}, {}


def _counted_if_mixed(values: Sequence[str]) -> str:
    kinds = sorted(set(values))
    if len(kinds) == 1:
        return kinds[0]
    return ", ".join(f"{values.count(kind)} x {kind}" for kind in kinds)


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
            return _number_at(space, at + _CONTROL)
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
            return _number_at(space, at + _ACS_CONTROL)
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


def _number_at(space: bytes, at: int) -> int:
    return int.from_bytes(space[at : at + 2], "little")
