"""Packages of the distribution that contain a driver, mostly from file names."""

import re

from gpucheck.facts import Answer
from gpucheck.language import in_series, say
from gpucheck.machine import Host

_DPKG = "/var/lib/dpkg/info"
_PACMAN = "/var/lib/pacman/local"
_RPM = ("/var/lib/rpm", "/usr/lib/sysimage/rpm")
_RPM_TIMEOUT = 3.0  # seconds of the 5 of the probe; chosen: a locked database is not waited for
_RPM_NAME = r"[A-Za-z0-9][\w.+-]{0,150}-[\w.+~^]{1,60}"
_RPM_NOT_OWNED = "is not owned by any package"
_STARTS = (
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
_LIST_LIMIT = 65536  # bytes; one line below /usr is enough, and it stands near the beginning


def find(host: Host, files: list[str]) -> Answer[list[str]]:
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


def drivers(names: list[str]) -> list[str]:
    """Return the packages except those for forward compatibility."""
    return [name for name in names if not name.startswith(_COMPAT_START)]


def compat(host: Host, packages: Answer[list[str]]) -> Answer[list[str]]:
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
        if not name.startswith(_STARTS) or architecture == "i386" or name in names:
            continue
        owned = host.read(path, _LIST_LIMIT).value or ""
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
