"""NVIDIA devices on the PCI bus, found without any driver.

On a Jetson they are in the device tree, on Windows in the registry.
"""

import re
from typing import Any

from gpucheck.facts import Answer, Notes
from gpucheck.facts.numbers import signed_number, whole_number
from gpucheck.facts.system import OS_NAMES, Pci, PciGpu
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.registry import DEVICES
from gpucheck.probes.reading import platform
from gpucheck.probes.reading.platform import jetson_model
from gpucheck.tables.gpus import PciDevices

DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "files"

_DEVICES = "/sys/bus/pci/devices"
_NVIDIA = "0x10de"
_AMD = "0x1002"
_GPU_CLASSES = ("0x0300", "0x0302")
"""VGA controller and 3D controller."""
_SWITCH_CLASS = "0x0680"
"""Other bridge: those from NVIDIA are NVSwitches."""
_DISPLAY_CLASS = "0x03"
_ACCELERATOR_CLASS = "0x12"
_LOOKED_AT = (_DISPLAY_CLASS, _SWITCH_CLASS, _ACCELERATOR_CLASS)
_VENDORS = {
    _AMD: "amd",
    "0x8086": "intel",
    "0x1a03": "aspeed",
    "0x102b": "matrox",
    "0x15ad": "virtual",
    "0x1af4": "virtual",
    "0x1b36": "virtual",
    "0x1234": "virtual",
    "0x1414": "virtual",
    "0x1013": "virtual",
    "0x80ee": "virtual",
}
_SHARED_GPU = ("0x1414", "008e")
"""Microsoft's virtual render device: GPU-PV, which Windows Sandbox uses as well."""
_JETSON_NODES = (
    "/sys/firmware/devicetree/base/gpu@*",
    "/sys/firmware/devicetree/base/bus@0/gpu@*",
    "/sys/firmware/devicetree/base/gpu",
    "/proc/device-tree/gpu@*",
    "/sys/devices/platform/*gpu*",
    "/sys/devices/gpu.0",
)
_NO_LANES = (0, 255)
"""Widths that mean that the kernel could not read the register."""


def collect(host: Host, devices: PciDevices) -> Pci:
    """Walk the bus and examine NVIDIA's devices."""
    family = host.identity().os
    if family == "windows":
        return _windows(host, devices)
    if family != "linux":
        name = OS_NAMES[family]
        why = say("the PCI bus is read on Linux and Windows, and this is {system}", system=name)
        return Pci(problems={"*": why})
    notes = Notes()
    jetson_gpu = notes.take("jetson_gpu", _jetson_gpu(host))
    tree = host.stat(_DEVICES)
    if tree.value is None:
        return Pci(
            jetson_gpu=jetson_gpu,
            sources=notes.sources,
            problems={"*": tree.complaint, **notes.problems},
        )
    found, unclear = _displays_and_bridges(host)
    nvidia = [(path, kind) for path, kind, vendor in found if vendor == _NVIDIA]
    gpus = [
        _gpu(host, path, devices)
        for path, kind in nvidia
        if kind.startswith(_GPU_CLASSES) and not _is_virtual_function(host, path)
    ]
    switches = sum(kind.startswith(_SWITCH_CLASS) for _path, kind in nvidia)
    notes.known("other_display_vendors", _DEVICES)
    return Pci(
        gpus=notes.take("gpus", unclear or Answer(gpus, _DEVICES)),
        nvswitches=notes.take("nvswitches", unclear or Answer(switches, _DEVICES)),
        other_display_vendors=_other_vendors(found),
        jetson_gpu=jetson_gpu,
        sources=notes.sources,
        problems=notes.problems,
    )


def _windows(host: Host, devices: PciDevices) -> Pci:
    """Fill the section with the display adapters that Windows has now."""
    notes = Notes()
    answer = platform.displays(host)
    seen = [display for display in answer.value or () if display.there is not False]
    vendors = [display.vendor for display in seen if display.vendor != _NVIDIA]
    gpus: Answer[list[PciGpu]] = answer.map(
        lambda _all: [_of_windows(card, devices) for card in seen if card.vendor == _NVIDIA]
    )
    if unclear := _unclear(host, seen, devices):
        gpus = Answer(None, "", unclear)
    names = answer.map(lambda _all: [display.name for display in seen])
    gone = answer.map(
        lambda every: [
            card.name for card in every if card.there is False and card.vendor == _NVIDIA
        ]
    )
    return Pci(
        gpus=notes.take("gpus", gpus),
        adapters=notes.take("adapters", names),
        former_gpus=notes.take("former_gpus", gone),
        other_display_vendors=notes.take(
            "other_display_vendors", answer.map(lambda _all: _named(vendors))
        ),
        jetson_gpu="",
        sources={**notes.sources, "jetson_gpu": "uname"},
        problems={"*": say("Windows does not show it"), **notes.problems},
    )


def _unclear(host: Host, seen: list[platform.Display], devices: PciDevices) -> str:
    """Return why the GPUs are unknown although the registry has been read; "" if they are known."""
    for display in seen:
        if display.vendor == _NVIDIA and display.there is None:
            return say(
                "Windows has a record of a GPU ({gpu}), but no driver serves it: it may lack one, "
                "be disabled, or have been taken out",
                gpu=_of_windows(display, devices).product or f"10de:{display.device_id}",
            )
        if (display.vendor, display.device_id) == _SHARED_GPU:
            return say("Hyper-V shares a GPU of its host with this machine, and hides whose it is")
    if not seen and host.identity().machine.lower() == "arm64":
        return say("a GPU that is part of the processor is not on the bus")
    return ""


def _of_windows(display: platform.Display, devices: PciDevices) -> PciGpu:
    row = devices.device(display.device_id)
    return PciGpu(
        address=display.address or None,
        device_id=display.device_id,
        product=" / ".join(row.products) if row else None,
        chip=(row.chip if row else None) or None,
        compute_capability=(row.compute_capability if row else None) or None,
        bound_driver=display.service,
        sources={"*": DEVICES},
        problems={"*": say("Windows does not show it")},
    )


def _displays_and_bridges(
    host: Host,
) -> tuple[list[tuple[str, str, str]], Answer[Any] | None]:
    """Return folder, class and vendor of each device of a relevant class.

    The folder is the device's place in the tree, below that of its port. The second value is the
    problem of a device of NVIDIA whose class is not understood; None if there is no such device.
    """
    found, unclear = [], None
    for entry in host.glob(f"{_DEVICES}/*").value or ():
        folder = host.real_path(entry).value or entry
        answer = host.line(f"{folder}/class").map(_class)
        kind = answer.value
        if kind is not None and not kind.startswith(_LOOKED_AT):
            continue
        vendor = (host.line(f"{folder}/vendor").value or "").lower()
        if kind is not None:
            found.append((folder, kind, vendor))
        elif vendor == _NVIDIA:
            unclear = answer
    return found, unclear


def _class(text: str) -> str | None:
    return text if re.fullmatch(r"0x[0-9a-fA-F]{6}", text) else None


def _other_vendors(found: list[tuple[str, str, str]]) -> list[str]:
    displays = [
        vendor
        for _path, kind, vendor in found
        if kind.startswith(_DISPLAY_CLASS)
        or (kind.startswith(_ACCELERATOR_CLASS) and vendor == _AMD)
    ]
    return _named([vendor for vendor in displays if vendor not in ("", _NVIDIA)])


def _named(vendors: list[str]) -> list[str]:
    return list(dict.fromkeys(_VENDORS.get(vendor, vendor) for vendor in vendors))


def _is_virtual_function(host: Host, path: str) -> bool:
    """Whether it is a part of another device that the host keeps for its virtual machines."""
    return host.exists(f"{path}/physfn").value is True


def _gpu(host: Host, path: str, devices: PciDevices) -> PciGpu:
    notes = Notes()
    device_id = notes.take(
        "device_id", host.line(f"{path}/device").map(lambda text: text.lower().removeprefix("0x"))
    )
    row = devices.device(device_id) if device_id else None
    unlisted = say("the tables do not have the device 10de:{device_id}", device_id=device_id)
    notes.known("address", _DEVICES)
    above = path.rpartition("/")[0]

    def table(field: str, value: str | None) -> str | None:
        return notes.take(
            field, Answer(value or None, say("the tables: {name}", name="pci_devices"), unlisted)
        )

    def lanes(field: str, file: str) -> int | None:
        return notes.take(field, host.line(file).map(_lanes))

    return PciGpu(
        address=path.rpartition("/")[2].lower(),
        device_id=device_id,
        product=table("product", " / ".join(row.products) if row else None),
        chip=table("chip", row.chip if row else None),
        compute_capability=table("compute_capability", row.compute_capability if row else None),
        bound_driver=notes.take("bound_driver", _bound_driver(host, path)),
        link_width=lanes("link_width", f"{path}/current_link_width"),
        link_width_max=lanes("link_width_max", f"{path}/max_link_width"),
        port_width_max=lanes("port_width_max", f"{above}/max_link_width"),
        link_speed=notes.take("link_speed", _speed(host, f"{path}/current_link_speed")),
        link_speed_max=notes.take("link_speed_max", _speed(host, f"{path}/max_link_speed")),
        numa_node=notes.take("numa_node", host.line(f"{path}/numa_node").map(signed_number)),
        enabled=notes.take("enabled", host.line(f"{path}/enable").map(_is_enabled)),
        sources=notes.sources,
        problems=notes.problems,
    )


def _bound_driver(host: Host, path: str) -> Answer[str]:
    link = host.real_path(f"{path}/driver")
    return link.map(lambda real: real.rpartition("/")[2]).absent("")


def _is_enabled(text: str) -> bool | None:
    count = whole_number(text)
    return None if count is None else count > 0


def _lanes(text: str) -> int | None:
    width = whole_number(text)
    return None if width in _NO_LANES else width


def _speed(host: Host, file: str) -> Answer[float]:
    """Parse ``16.0 GT/s PCIe``; an unknown speed is a word, or an impossible number."""
    return host.line(file).map(_gigatransfers)


def _gigatransfers(text: str) -> float | None:
    number, _, unit = text.partition(" ")
    is_speed = unit.startswith("GT/s") and re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", number)
    return float(number) if is_speed else None


def _jetson_gpu(host: Host) -> Answer[str]:
    model = jetson_model(host)
    if not model.value:
        return model
    for pattern in _JETSON_NODES:
        if found := host.glob(pattern).value:
            return Answer(found[0], pattern)
    return Answer(None, model.source, say("it is a Jetson, but its device tree shows no GPU"))
