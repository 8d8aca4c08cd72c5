"""The NVIDIA driver as files and kernel modules; none of its code is called here."""

from typing import Annotated, Any, ClassVar, Literal

from gpucheck.facts import Answer, Facts, Notes, Private, Section
from gpucheck.host import Host
from gpucheck.probes import (
    _driver_fabric,
    _driver_libraries,
    _driver_modules,
    _driver_packages,
    _platform,
)

DEADLINE = 5.0
LANE = "driver"

_SMI_PLACES = ("/usr/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi")


class DriverLibrary(Facts, frozen=True, kw_only=True):
    """One copy of a user-space driver library (``libcuda.so.1``, ``libnvidia-ml.so.1``)."""

    path: Annotated[str | None, Private("path")] = None
    real_path: Annotated[str | None, Private("path")] = None
    release: str | None = None
    """Driver release from the file name, such as ``535.54.03``; None if the name has none."""
    kind: Literal["driver", "stub", "compat", "wsl"] | None = None
    found_via: str | None = None
    """How the loader finds it: ``LD_LIBRARY_PATH``, ``ld.so.cache``, ``default folder``;
    ``not searched``: a folder of the driver that this process's loader does not search."""
    size_bytes: int | None = None


class Driver(Section, frozen=True, kw_only=True):
    """The kernel side and the user-space side of the driver."""

    name: ClassVar[str] = "driver"

    module_loaded: bool | None = None
    """The ``nvidia`` kernel module is loaded (on WSL ``/dev/dxg``, on a Jetson ``nvgpu``)."""
    module_release: str | None = None
    """Release of the loaded kernel module; "" if none is loaded."""
    module_flavour: Literal["open", "proprietary", ""] | None = None
    uvm_loaded: bool | None = None
    modeset_loaded: bool | None = None
    drm_loaded: bool | None = None
    nouveau_loaded: bool | None = None
    module_files: Annotated[list[str] | None, Private("paths")] = None
    """``nvidia.ko`` files of the *running* kernel."""
    modules_folder: bool | None = None
    """Whether ``/lib/modules/<running kernel>`` exists (it does not in a container)."""
    other_kernels_with_module: list[str] | None = None
    """Installed kernels, other than the running one, that have an ``nvidia.ko``."""
    dkms: list[str] | None = None
    """``<release> <kernel>`` for each nvidia module that DKMS has built."""
    dkms_sources: list[str] | None = None
    """Driver releases whose module sources are in ``/usr/src`` or registered with DKMS."""
    blacklist: list[str] | None = None
    """Lines of modprobe.d that prevent ``nvidia`` or ``nouveau`` from loading, such as ``blacklist
    nvidia``; those of the kernel's command line in the same form. The source names the files."""
    secure_boot: bool | None = None
    libcuda: list[DriverLibrary] | None = None
    """Every ``libcuda.so.1`` in the order of the loader. The loader takes the first one, unless its
    ``found_via`` is ``not searched``."""
    libnvidia_ml: list[DriverLibrary] | None = None
    packages: list[str] | None = None
    """Installed packages of the distribution that contain a driver."""
    compat_packages: list[str] | None = None
    """``cuda-compat`` folders and packages found, with their release if known."""
    nvidia_smi: Annotated[str | None, Private("path")] = None
    """"" if there is none."""
    nvidia_modprobe: bool | None = None
    fabric_manager_installed: bool | None = None
    fabric_manager_running: bool | None = None
    fabric_manager_release: str | None = None
    """The release of the package; "" if none is installed."""


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
        **values, sources=notes.sources, problems={**_platform.not_linux(host), **notes.problems}
    )


def _linux(host: Host, notes: Notes) -> dict[str, Any]:
    values: dict[str, Any] = {
        **_driver_modules.loaded(host, notes),
        **_driver_modules.installed(host, notes),
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
    packages = _driver_packages.find(host, [*files, *_driver_fabric.program(host)])
    values["packages"] = notes.take("packages", packages.map(_driver_packages.drivers))
    values["compat_packages"] = notes.take(
        "compat_packages", _driver_packages.compat(host, packages)
    )
    values |= _driver_fabric.facts(host, packages, notes)
    return values


def _libraries(
    found: list[_driver_libraries.Library], field: str, notes: Notes
) -> list[DriverLibrary]:
    notes.said(field, "the loader's folders")
    return [
        DriverLibrary(
            path=library.path,
            real_path=library.real_path,
            release=library.release or None,
            kind=library.kind,
            found_via=library.via,
            size_bytes=library.size,
            sources={"*": library.path},
            problems={"release": "the file name has none", "size_bytes": "stat failed"},
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
    """Windows keeps the driver's libraries and programs in one folder."""
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
