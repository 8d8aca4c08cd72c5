"""Settings and firmware of a node that should be the same on every node of a job.

All of them can be read without root. A value that is unknown is left out. Values hold no sentences,
because they go to another process: a number with its unit, a name, ``enabled``,
``disabled`` or ``none``; with several values on a node ``1 x enabled, 7 x disabled``.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from gpucheck.facts.driver import Driver
from gpucheck.facts.nvml import Nvml, NvmlGpu
from gpucheck.facts.pci import Pci
from gpucheck.facts.snapshot import Snapshot
from gpucheck.machine import Host

_ADAPTERS = "/sys/class/infiniband/*"
_MODULES = "/sys/module"
_MOST_PORTS = 64
_PEER_MEMORY = ("nvidia_peermem", "nv_peer_mem")
_GDRCOPY = "gdrdrv"


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
        said = [value(gpu) for gpu in gpus]
        known = [one for one in said if one is not None]
        if len(known) == len(said):
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
        found["peer-memory"] = _switch(any(_is_loaded(host, one) for one in _PEER_MEMORY))
        found["gdrcopy"] = _switch(_is_loaded(host, _GDRCOPY))
    return found


def _of_adapters(host: Host, adapters: Sequence[str]) -> dict[str, str]:
    kinds = [host.line(f"{one}/hca_type").value for one in adapters]
    firmware = [host.line(f"{one}/fw_ver").value for one in adapters]
    ports = host.glob(f"{_ADAPTERS}/ports/*").value or []
    states = [_word(host.line(f"{one}/state").value) for one in ports]
    rates = [
        host.line(f"{one}/rate").value
        for one, state in zip(ports, states, strict=True)
        if state == "ACTIVE"
    ]
    layers = [host.line(f"{one}/link_layer").value for one in ports]
    said = {
        "adapters": _counted(kinds),
        "adapter-firmware": _counted(
            None if None in pair else " ".join(map(str, pair))
            for pair in zip(kinds, firmware, strict=True)
        ),
        "ports": _counted(states),
        "port-rates": _counted(rates),
        "port-layers": _counted(layers),
        "adapter-pcie": _counted(_link(host, one) for one in adapters),
    }
    return {key: value for key, value in said.items() if value is not None}


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
    known = [one for one in (gpu.rows_pending, gpu.pages_pending) if one is not None]
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
