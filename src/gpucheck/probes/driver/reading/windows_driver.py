"""Where Windows has NVIDIA's driver, and which release it runs."""

from gpucheck.facts import Answer
from gpucheck.machine import Host
from gpucheck.probes.system.reading.windows_displays import (
    Display,
    displays,
    runs_nvidia_driver,
)

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
