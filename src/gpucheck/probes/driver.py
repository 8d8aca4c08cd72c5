"""The NVIDIA driver as files and kernel modules; this probe calls none of its code."""

import re
from typing import Any, Literal

import msgspec

from gpucheck.facts import Answer, Notes
from gpucheck.facts.driver import Driver, DriverLibrary
from gpucheck.language import in_series, say
from gpucheck.machine import Host
from gpucheck.machine.binaries.library_search import Found, Search
from gpucheck.probes.reading import driver, platform

DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "driver"

_SMI_PLACES = ("/usr/bin/nvidia-smi", "/usr/lib/wsl/lib/nvidia-smi")

_FABRIC_PROGRAM = "/usr/bin/nv-fabricmanager"
_FABRIC_NAME = "nv-fabricmanager"[:15]
"""The kernel cuts process names to 15 characters."""
_FABRIC_PID_FILE = "/run/nvidia-fabricmanager/nv-fabricmanager.pid"
_SWITCH_NODES = "/dev/nvidia-nvswitch*"
_MOST_PROCESSES = 8192  # chosen: a read each; with more it is unknown, not "not running"
_DPKG_STATUS = "/var/lib/dpkg/status"
_DPKG_PACKAGE = b"Package: nvidia-fabric"
_DPKG_VERSION = rb"\nVersion: (?:\d+:)?(\d{2,4}\.\d{1,4}(?:\.\d{1,4})?)"
_RPM_PACKAGE = r"nvidia-fabric-?manager-(\d{2,4}\.\d{1,4}(?:\.\d{1,4})?)"

_Kind = Literal["driver", "stub", "compat", "wsl"]

_NOT_SEARCHED = "not searched"

_DRIVER_FOLDERS = (
    "/usr/lib/wsl/lib",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/lib/aarch64-linux-gnu/tegra",
    "/usr/local/nvidia/lib64",
    "/run/opengl-driver/lib",
)
"""Folders for the driver's libraries of WSL, Jetsons, GKE and NixOS."""
_RELEASE_IN_NAME = r"lib(?:cuda|nvidia-ml)\.so\.(\d{2,4}\.\d{1,4}(?:\.\d{1,4})?)"
_SMALLEST_LIBCUDA = 300 * 1024
"""Bytes; the driver's libcuda is more than ten times larger, the toolkit's stub is smaller."""
_SMALL_DRIVERS = ("/tegra/", "/aarch64-linux-gnu/nvidia/")

_DPKG = "/var/lib/dpkg/info"
_PACMAN = "/var/lib/pacman/local"
_RPM = ("/var/lib/rpm", "/usr/lib/sysimage/rpm")
_RPM_TIMEOUT = 3.0  # seconds of the 5 of the probe; chosen: a locked database is not waited for
_RPM_NAME = r"[A-Za-z0-9][\w.+-]{0,150}-[\w.+~^]{1,60}"
_RPM_NOT_OWNED = "is not owned by any package"
_PACKAGE_STARTS = (
    "cuda-compat-",
    "cuda-drivers",
    "kmod-nvidia",
    "libcuda1",
    "libnvidia-compute",
    "linux-modules-nvidia-",
    "linux-objects-nvidia-",
    "nvidia-compute",
    "nvidia-container-toolkit",
    "nvidia-dkms",
    "nvidia-driver",
    "nvidia-fabric",
    "nvidia-headless",
    "nvidia-kernel",
    "nvidia-l4t-c",
    "nvidia-open",
    "nvidia-utils",
)
# nvidia-settings and nvidia-prime are no drivers.
_PACMAN_NAME = r"nvidia(?:-(?:open|lts|dkms|utils|\d{3}xx)[-\w]{0,40})?-[\d.]{3,20}-.{1,20}"
_COMPAT_START = "cuda-compat-"
_COMPAT_FILES = ("/usr/local/cuda*/compat/libcuda.so.*", "/usr/local/cuda*/compat/*/libcuda.so.*")
_COMPAT_RELEASE = r"libcuda\.so\.(\d{2,4}\.\d{1,4}(?:\.\d{1,4})?)"
_DPKG_LIST_LIMIT = 65536  # bytes; one line below /usr is enough, and it stands near the beginning


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
        **driver.loaded(host, notes),
        **driver.installed(host, notes),
    }
    libraries = _find_libraries(host)
    values["libcuda"] = _libraries(libraries.libcuda, "libcuda", notes)
    values["libnvidia_ml"] = _libraries(libraries.libnvidia_ml, "libnvidia_ml", notes)
    values["nvidia_smi"] = notes.take("nvidia_smi", _program(host, "nvidia-smi", _SMI_PLACES))
    modprobe = _program(host, "nvidia-modprobe", ("/usr/bin/nvidia-modprobe",))
    values["nvidia_modprobe"] = notes.take("nvidia_modprobe", modprobe.map(bool))
    # Only a package manager that is run as a command needs these: it returns the owners of files.
    files = [found.real_path for found in (*libraries.libcuda, *libraries.libnvidia_ml)]
    files += [values["nvidia_smi"]] if values["nvidia_smi"] else []
    files += (values["module_files"] or [])[:1]
    packages = _find_packages(host, [*files, *_fabric_program(host)])
    values["packages"] = notes.take("packages", packages.map(_drivers))
    values["compat_packages"] = notes.take("compat_packages", _compat(host, packages))
    values |= _fabric_facts(host, packages, notes)
    return values


class FoundDriverLibrary(msgspec.Struct, frozen=True):
    """A library file; ``release`` is "" if its name has none, ``size`` is in bytes."""

    path: str
    real_path: str
    via: str
    kind: _Kind
    release: str
    size: int | None


def _libraries(found: list[FoundDriverLibrary], field: str, notes: Notes) -> list[DriverLibrary]:
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
    folder = platform.system32(host)
    values: dict[str, Any] = {}
    for field, name in (("libcuda", "nvcuda.dll"), ("libnvidia_ml", "nvml.dll")):
        path = f"{folder}\\{name}"
        found = []
        if host.exists(path).value:
            found = [FoundDriverLibrary(path, path, "System32", "driver", release="", size=None)]
        values[field] = _libraries(found, field, notes)
    smi = platform.nvidia_smi(host)
    values["nvidia_smi"] = notes.take("nvidia_smi", smi.absent(""))
    release = platform.release(host)
    values["module_release"] = notes.take("module_release", release)
    values["module_loaded"] = notes.take("module_loaded", release.map(bool))
    return values


def _fabric_program(host: Host) -> list[str]:
    """Return the path of the program; [] if it is not installed."""
    return [_FABRIC_PROGRAM] if host.exists(_FABRIC_PROGRAM).value else []


def _fabric_facts(host: Host, packages: Answer[list[str]], notes: Notes) -> dict[str, Any]:
    """Fill the fields about the fabric manager."""
    there = notes.take("fabric_manager_installed", host.exists(_FABRIC_PROGRAM))
    return {
        "fabric_manager_installed": there,
        "fabric_manager_running": notes.take(
            "fabric_manager_running", _fabric_running(host, installed=there is True)
        ),
        "fabric_manager_release": notes.take(
            "fabric_manager_release", _fabric_release(host, packages, installed=there is True)
        ),
    }


def _fabric_running(host: Host, *, installed: bool) -> Answer[bool]:
    if not installed and not host.glob(_SWITCH_NODES).value:
        return Answer(
            value=False,
            source=say("there is no {program} and no NVSwitch", program=_FABRIC_PROGRAM),
        )
    pid = host.line(_FABRIC_PID_FILE).value or ""
    if pid.isdecimal() and host.line(f"/proc/{pid}/comm").value == _FABRIC_NAME:
        return Answer(value=True, source=_FABRIC_PID_FILE)
    processes = host.glob("/proc/[0-9]*/comm").value or []
    for path in processes[:_MOST_PROCESSES]:
        if host.line(path).value == _FABRIC_NAME:
            return Answer(value=True, source=path)
    if len(processes) > _MOST_PROCESSES:
        return Answer(None, "/proc", say("there are too many processes to look through"))
    # Process 2 of a machine is a kernel thread; a container sees only its own processes.
    if host.line("/proc/2/comm").value == "kthreadd":
        return Answer(value=False, source="/proc/*/comm")
    return Answer(None, "/proc", say("only the processes of this container can be seen"))


def _fabric_release(host: Host, packages: Answer[list[str]], *, installed: bool) -> Answer[str]:
    if not installed:
        return Answer("", say("there is no {program}", program=_FABRIC_PROGRAM))
    for name in packages.value or ():
        if found := re.fullmatch(_RPM_PACKAGE, name):
            return Answer(found[1], packages.source)
    entries = host.find_in_file(_DPKG_STATUS, _DPKG_PACKAGE, 2048)
    return entries.map(_dpkg_release)


def _dpkg_release(entries: list[bytes]) -> str | None:
    """Return the version of the first installed package among paragraphs of dpkg's status."""
    for entry in b"\n\n".join(entries).split(b"\n\n"):
        version = re.search(_DPKG_VERSION, entry)
        ours = entry.startswith(_DPKG_PACKAGE) and b"\nStatus: install ok installed" in entry
        if ours and version:
            return version[1].decode()
    return None


class DriverLibraries(msgspec.Struct, frozen=True):
    """Every copy of both libraries, in the order of the loader."""

    libcuda: list[FoundDriverLibrary]
    libnvidia_ml: list[FoundDriverLibrary]


def _find_libraries(host: Host) -> DriverLibraries:
    """Find every copy of libcuda and of NVML's library."""
    loader = Search(host)
    return DriverLibraries(
        libcuda=_copies(host, loader, "libcuda.so.1"),
        libnvidia_ml=_copies(host, loader, "libnvidia-ml.so.1"),
    )


def _copies(host: Host, loader: Search, soname: str) -> list[FoundDriverLibrary]:
    searched = loader.paths(soname)
    known = {found.real_path for found in searched}
    beside = loader.in_folders(_DRIVER_FOLDERS, soname, _NOT_SEARCHED)
    return [
        _library(host, found)
        for found in (*searched, *(b for b in beside if b.real_path not in known))
    ]


def _library(host: Host, found: Found) -> FoundDriverLibrary:
    stat = host.stat(found.real_path).value
    size = stat.size if stat is not None else None
    release = re.fullmatch(_RELEASE_IN_NAME, found.real_path.rpartition("/")[2])
    return FoundDriverLibrary(
        path=found.path,
        real_path=found.real_path,
        via=found.via,
        kind=_kind_of_library(found, size, has_release=release is not None),
        release=release[1] if release else "",
        size=size,
    )


def _kind_of_library(found: Found, size: int | None, *, has_release: bool) -> _Kind:
    both = f"{found.path}:{found.real_path}"
    if "/stubs/" in both:
        return "stub"
    if "/compat/" in both or "/cuda-compat/" in both:
        return "compat"
    if "/usr/lib/wsl/" in both:
        return "wsl"
    can_be_stub = "libcuda" in found.real_path and not any(f in both for f in _SMALL_DRIVERS)
    if can_be_stub and not has_release and size is not None and 0 < size < _SMALLEST_LIBCUDA:
        return "stub"
    return "driver"


def _find_packages(host: Host, files: list[str]) -> Answer[list[str]]:
    """Return the names of installed packages that are related to a driver.

    Args:
        host: the machine.
        files: the files of the driver that were found; rpm is asked which packages own them.
    """
    if host.exists(_DPKG).value:
        return _dpkg(host)
    if host.exists(_PACMAN).value:
        return _pacman(host)
    if any(host.exists(path).value for path in _RPM):
        return _rpm(host, files)
    return Answer(None, "", say("gpucheck found no package database that it can read"))


def _drivers(names: list[str]) -> list[str]:
    """Return the packages except those for forward compatibility."""
    return [name for name in names if not name.startswith(_COMPAT_START)]


def _compat(host: Host, packages: Answer[list[str]]) -> Answer[list[str]]:
    """Return ``<folder> <release>`` of each compat folder, and the names of such packages."""
    found: dict[str, str] = {}
    for pattern in _COMPAT_FILES:
        for path in host.glob(pattern).value or ():
            real = host.real_path(path).value or path
            folder, _, file = real.rpartition("/")
            release = re.fullmatch(_COMPAT_RELEASE, file)
            if release or folder not in found:
                found[folder] = release[1] if release else ""
    names = [name for name in packages.value or () if name.startswith(_COMPAT_START)]
    folders = [f"{folder} {release}".strip() for folder, release in sorted(found.items())]
    sources = [source for source in ("/usr/local/cuda*/compat", packages.source) if source]
    return Answer(folders + names, in_series(sources))


def _dpkg(host: Host) -> Answer[list[str]]:
    """Return the packages that own files, from the file lists that dpkg keeps.

    The list of a package that was removed but not purged has only its configuration files.
    """
    # One pass over a folder with thousands of files: names with "cuda" or "nvid" in them.
    paths = host.glob(f"{_DPKG}/*[cn][uv][di][ad]*.list")
    names = set()
    for path in paths.value or ():
        name, _, architecture = path.rpartition("/")[2].removesuffix(".list").partition(":")
        if not name.startswith(_PACKAGE_STARTS) or architecture == "i386" or name in names:
            continue
        owned = host.read(path, _DPKG_LIST_LIMIT).value or ""
        if any(line.startswith(("/usr/", "/lib/", "/opt/")) for line in owned.splitlines()):
            names.add(name)
    return Answer(sorted(names), _DPKG) if paths.value is not None else paths


def _pacman(host: Host) -> Answer[list[str]]:
    def names(paths: list[str]) -> list[str]:
        found = [path.rpartition("/")[2] for path in paths]
        return [name for name in found if re.fullmatch(_PACMAN_NAME, name)]

    return host.glob(f"{_PACMAN}/nvidia*").map(names)


def _rpm(host: Host, files: list[str]) -> Answer[list[str]]:
    if not files:
        # If a package contained a driver, one of its files would have been found.
        return Answer([], say("no file of a driver was found"))
    if host.origin == "sysroot" or host.which("rpm").value is None:
        return Answer(None, "rpm", say("it cannot be asked here"))
    query = ("rpm", "-q", "--qf", "%{NAME}-%{VERSION}\\n", "-f", *files)
    ran = host.run(query, timeout=_RPM_TIMEOUT)
    return ran.map(lambda end: _rpm_names(end.out))


def _rpm_names(text: str) -> list[str] | None:
    """Return the packages that rpm names; None if it has not answered for any file.

    rpm reports a file that no package owns in a sentence.
    """
    lines = [line for line in text.split("\n") if line]
    names = {line for line in lines if re.fullmatch(_RPM_NAME, line)}
    answered = names or any(_RPM_NOT_OWNED in line for line in lines)
    return sorted(names) if answered else None
