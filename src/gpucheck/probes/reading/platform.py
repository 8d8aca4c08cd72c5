"""Facts that several probes need first: Linux, WSL, Jetson, Windows' displays."""

import re

import msgspec

from gpucheck.facts import Answer
from gpucheck.facts.system import OS_NAMES, Wsl
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.registry import DEVICES, is_display

# Platform facts that several probes need first: Linux, WSL, Jetson.

_MODEL_FILES = ("/sys/firmware/devicetree/base/model", "/proc/device-tree/model")
_COMPATIBLE_FILES = ("/sys/firmware/devicetree/base/compatible", "/proc/device-tree/compatible")


def not_linux(host: Host) -> dict[str, str]:
    """Return the problems of a section that only Linux can fill; none on Linux."""
    family = host.identity().os
    if family == "linux":
        return {}
    return {"*": say("it is read on Linux only, and this is {system}", system=OS_NAMES[family])}


def wsl_version(host: Host) -> Wsl:
    """Return 1 or 2 inside the Windows Subsystem for Linux, otherwise 0.

    The kernel of WSL 1 is always ``4.4.0-<Windows build>-Microsoft``. A custom kernel of WSL 2 may
    have any name, but it has Windows' GPU device and the driver folder.
    """
    release = host.identity().release.lower()
    if release.startswith("4.4.0-") and release.endswith("-microsoft"):
        return 1
    if "microsoft" in release or "wsl2" in release:
        return 2
    own_kernel = host.exists("/dev/dxg").value and host.exists("/usr/lib/wsl/lib").value
    return 2 if own_kernel else 0


def jetson_model(host: Host) -> Answer[str]:
    """Return the board name in the device tree; "" on anything except a Jetson."""
    compatible = first_line(host, _COMPATIBLE_FILES)
    if compatible.missing:
        return Answer("", say("there is no device tree"))
    if compatible.value is None:
        return compatible
    # The file is a list of names, each terminated by a NUL.
    if not any(name.startswith("nvidia,tegra") for name in compatible.value.split("\x00")):
        return Answer("", compatible.source)
    return first_line(host, _MODEL_FILES)


def first_line(host: Host, paths: tuple[str, ...]) -> Answer[str]:
    """Return the content of the first file that exists, as one line."""
    answer: Answer[str] = Answer(None, paths[0], say("not found"), missing=True)
    for path in paths:
        answer = host.line(path)
        if not answer.missing:
            return answer
    return answer


# Windows' display adapters, from its registry, and NVIDIA's driver there: where, which release.

# The display adapters of Windows, from its registry: with or without a driver.
#
# Windows also keeps adapters that were taken out. Those that are there now are named below the
# service of their driver (``Services\nvlddmkm\Enum``), which Windows writes anew at each start.

_CONTROL = r"HKLM\SYSTEM\CurrentControlSet\Control\Class"
_SERVICES = r"HKLM\SYSTEM\CurrentControlSet\Services"
_MOST_OF_A_SERVICE = 16  # chosen: more adapters than a machine has slots for
_DEVICE = r"VEN_([0-9A-F]{4})&DEV_([0-9A-F]{4})"
_PLACE = r"\((\d{1,3}),(\d{1,2}),(\d)\)$"
"""``LocationInformation`` ends with bus, device and function, in decimal digits."""
_VERSION = r"\d{1,3}\.\d{1,3}\.(\d{1,3})\.(\d{1,4})"
_OF_NVIDIA = "nv"
"""NVIDIA's kernel driver is ``nvlddmkm``."""


class Display(msgspec.Struct, frozen=True, kw_only=True):
    """One display adapter on the PCI bus."""

    vendor: str
    """``0x10de``, as Linux writes it."""
    device_id: str
    name: str
    """As the Device Manager shows it; with Microsoft's driver that is no product. The registry has
    it behind the place of its translations: ``@oem5.inf,%nvidia_dev.2c05%;NVIDIA GeForce ...``."""
    service: str
    """Of its driver: nvlddmkm, BasicDisplay; "" if it has none."""
    driver_release: str
    """NVIDIA's own name of it; "" of other drivers."""
    address: str
    there: bool | None
    """None if it has no driver: such an adapter may have been taken out."""


def displays(host: Host) -> Answer[list[Display]]:
    """Return the display adapters that Windows has seen."""
    devices = host.registry(DEVICES)
    if devices.value is None:
        return Answer(None, devices.source, devices.problem, devices.missing)
    found: list[Display] = []
    for device in devices.value.subkeys:
        ids = re.match(_DEVICE, device, re.IGNORECASE)
        if ids is None:
            continue
        below = host.registry(f"{DEVICES}\\{device}").value
        for instance in below.subkeys if below else ():
            place = f"{device}\\{instance}"
            display = _display(host, place, f"0x{ids[1].lower()}", ids[2].lower())
            if display is not None:
                found.append(display)
    return Answer(found, DEVICES)


def nvidia_release(version: str) -> str:
    """Return NVIDIA's release for a version of Windows: 572.83 for 32.0.15.7283, else ""."""
    found = re.fullmatch(_VERSION, version)
    if found is None:
        return ""
    digits = f"{found[1]}{found[2]:0>4}"[-5:]
    return f"{digits[:3]}.{digits[3:]}"


def runs_nvidia_driver(display: Display) -> bool:
    """Whether NVIDIA's driver serves the adapter."""
    return _is_nvidia(display.service)


def _is_nvidia(service: str) -> bool:
    return service.lower().startswith(_OF_NVIDIA)


def _display(host: Host, place: str, vendor: str, device_id: str) -> Display | None:
    names = ("ClassGUID", "CompatibleIDs", "DeviceDesc", "Driver", "LocationInformation", "Service")
    key = host.registry(f"{DEVICES}\\{place}", *names).value
    if key is None or not is_display(key.values):
        return None
    service = key.text("Service")
    driver = host.registry(f"{_CONTROL}\\{key.text('Driver')}", "DriverVersion").value
    version = driver.text("DriverVersion") if driver else ""
    bus = re.search(_PLACE, key.text("LocationInformation"))
    return Display(
        vendor=vendor,
        device_id=device_id,
        name=key.text("DeviceDesc").rpartition(";")[2],
        service=service,
        driver_release=nvidia_release(version) if _is_nvidia(service) else "",
        address=f"0000:{int(bus[1]):02x}:{int(bus[2]):02x}.{bus[3]}" if bus else "",
        there=_is_there(host, service, f"PCI\\{place}") if service else None,
    )


def _is_there(host: Host, service: str, instance: str) -> bool | None:
    """Whether the service's list of devices names the instance; without a list it has none."""
    numbers = map(str, range(_MOST_OF_A_SERVICE))
    answer = host.registry(f"{_SERVICES}\\{service}\\Enum", *numbers)
    if answer.value is None and not answer.missing:
        return None
    present = answer.value.values.values() if answer.value else ()
    return instance.lower() in (str(name).lower() for name in present)


# Where Windows has NVIDIA's driver, and which release it runs.

_PACKAGES = r"System32\DriverStore\FileRepository\nv*.inf_amd64_*"
"""Of this folder Windows copies the files that it runs; older packages stay."""
_BEFORE_2020 = r"NVIDIA Corporation\NVSMI"
"""Below the programs: drivers that are no DCH drivers put nvidia-smi and NVML there."""


def system32(host: Host) -> str:
    """Return the folder of Windows' own programs and libraries."""
    return f"{_windows(host)}\\System32"


def nvidia_smi(host: Host) -> Answer[str]:
    """Return where nvidia-smi is."""
    name = "nvidia-smi.exe"
    on_path = host.which("nvidia-smi")
    if on_path.value is not None:
        return on_path
    programs = host.env().get("PROGRAMFILES", r"C:\Program Files")
    for folder in (system32(host), f"{programs}\\{_BEFORE_2020}"):
        if host.exists(f"{folder}\\{name}").value:
            return Answer(f"{folder}\\{name}", folder)
    in_packages = host.glob(f"{_windows(host)}\\{_PACKAGES}\\{name}").value
    return Answer(in_packages[0], _PACKAGES) if in_packages else on_path


def release(host: Host) -> Answer[str]:
    """Return the release of NVIDIA's driver that serves an adapter; "" if none does."""
    return displays(host).map(_running)


def _running(seen: list[Display]) -> str | None:
    """Return the release of the first adapter that NVIDIA's driver serves; None: not understood."""
    served = [display for display in seen if display.there and runs_nvidia_driver(display)]
    return (served[0].driver_release or None) if served else ""


def _windows(host: Host) -> str:
    return host.env().get("SYSTEMROOT", r"C:\Windows")
