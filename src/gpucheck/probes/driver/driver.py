"""The NVIDIA driver as files and kernel modules; this probe calls none of its code."""

from typing import Any

from gpucheck.facts import Answer, Notes
from gpucheck.facts.driver import Driver, DriverLibrary
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.probes.driver.reading import fabric, modules
from gpucheck.probes.driver.reading import libraries as _driver_libraries
from gpucheck.probes.driver.reading import packages as _driver_packages
from gpucheck.probes.system.reading import platform

DEADLINE = 5.0
LANE = "driver"

_SMI_PLACES = ("/usr/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi")


def collect(host: Host) -> Driver:
    """Look for the driver's modules, libraries, programs and packages."""
    notes = Notes()
    family = host.identity().os
    if family == "windows":
        values = _windows(host, notes)
    elif family == "linux":
        values = _linux(host, notes)
    else:
        values = {}
    return Driver(
        **values, sources=notes.sources, problems={**platform.not_linux(host), **notes.problems}
    )


def _linux(host: Host, notes: Notes) -> dict[str, Any]:
    values: dict[str, Any] = {
        **modules.loaded(host, notes),
        **modules.installed(host, notes),
    }
    libraries = _driver_libraries.find(host)
    values["libcuda"] = _libraries(libraries.libcuda, "libcuda", notes)
    values["libnvidia_ml"] = _libraries(libraries.libnvidia_ml, "libnvidia_ml", notes)
    values["nvidia_smi"] = notes.take("nvidia_smi", _program(host, "nvidia-smi", _SMI_PLACES))
    modprobe = _program(host, "nvidia-modprobe", ("/usr/bin/nvidia-modprobe",))
    values["nvidia_modprobe"] = notes.take("nvidia_modprobe", modprobe.map(bool))
    # Only a package manager that is run as a command needs these: it returns the owners of files.
    files = [found.real_path for found in (*libraries.libcuda, *libraries.libnvidia_ml)]
    files += [values["nvidia_smi"]] if values["nvidia_smi"] else []
    files += (values["module_files"] or [])[:1]
    packages = _driver_packages.find(host, [*files, *fabric.program(host)])
    values["packages"] = notes.take("packages", packages.map(_driver_packages.drivers))
    values["compat_packages"] = notes.take(
        "compat_packages", _driver_packages.compat(host, packages)
    )
    values |= fabric.facts(host, packages, notes)
    return values


def _libraries(
    found: list[_driver_libraries.Library], field: str, notes: Notes
) -> list[DriverLibrary]:
    notes.known(field, say("the loader's folders"))
    return [
        DriverLibrary(
            path=library.path,
            real_path=library.real_path,
            release=library.release or None,
            kind=library.kind,
            found_via=library.via,
            size_bytes=library.size,
            sources={"*": library.path},
            problems={
                "release": say("the file name has no release"),
                "size_bytes": say("its size cannot be read"),
            },
        )
        for library in found
    ]


def _program(host: Host, name: str, places: tuple[str, ...]) -> Answer[str]:
    """Return the program on PATH or in one of its usual folders; "" if it does not exist."""
    on_path = host.which(name)
    if on_path.value is not None and host.origin != "sysroot":
        return on_path
    for place in places:
        if host.exists(place).value:
            return Answer(place, place)
    return Answer("", "PATH")


def _windows(host: Host, notes: Notes) -> dict[str, Any]:
    """Fill the fields on Windows, which keeps the driver's files in one folder."""
    folder = host.env().get("SYSTEMROOT", "C:\\Windows") + "\\System32"
    values: dict[str, Any] = {}
    for field, name in (("libcuda", "nvcuda.dll"), ("libnvidia_ml", "nvml.dll")):
        path = f"{folder}\\{name}"
        found = []
        if host.exists(path).value:
            found = [
                _driver_libraries.Library(path, path, "System32", "driver", release="", size=None)
            ]
        values[field] = _libraries(found, field, notes)
    smi = f"{folder}\\nvidia-smi.exe"
    values["nvidia_smi"] = notes.take(
        "nvidia_smi", host.exists(smi).map(lambda there: smi if there else "")
    )
    return values
