"""The driver's user-space libraries, in the order in which the dynamic loader finds them."""

import re
from typing import Literal

import msgspec

from gpucheck.machine import Host
from gpucheck.machine.binaries.loader import Found, Search

Kind = Literal["driver", "stub", "compat", "wsl"]

NOT_SEARCHED = "not searched"

_DRIVER_FOLDERS = (
    "/usr/lib/wsl/lib",
    "/usr/lib/aarch64-linux-gnu/nvidia",
    "/usr/lib/aarch64-linux-gnu/tegra",
    "/usr/local/nvidia/lib64",
    "/run/opengl-driver/lib",
)
"""Folders for the driver's libraries of WSL, Jetsons, GKE and NixOS."""
_RELEASE = r"lib(?:cuda|nvidia-ml)\.so\.(\d{2,4}\.\d{1,4}(?:\.\d{1,4})?)"
_SMALLEST_LIBCUDA = 300 * 1024
"""Bytes; the driver's libcuda is more than ten times larger, the toolkit's stub is smaller."""
_SMALL_DRIVERS = ("/tegra/", "/aarch64-linux-gnu/nvidia/")


class Library(msgspec.Struct, frozen=True):
    """A library file; ``release`` is "" if its name has none, ``size`` is in bytes."""

    path: str
    real_path: str
    via: str
    kind: Kind
    release: str
    size: int | None


class Libraries(msgspec.Struct, frozen=True):
    """Every copy of both libraries, in the order of the loader."""

    libcuda: list[Library]
    libnvidia_ml: list[Library]


def find(host: Host) -> Libraries:
    """Find every copy of libcuda and of NVML's library."""
    loader = Search(host)
    return Libraries(
        libcuda=_copies(host, loader, "libcuda.so.1"),
        libnvidia_ml=_copies(host, loader, "libnvidia-ml.so.1"),
    )


def _copies(host: Host, loader: Search, soname: str) -> list[Library]:
    searched = loader.paths(soname)
    known = {found.real_path for found in searched}
    beside = loader.in_folders(_DRIVER_FOLDERS, soname, NOT_SEARCHED)
    return [
        _library(host, found)
        for found in (*searched, *(b for b in beside if b.real_path not in known))
    ]


def _library(host: Host, found: Found) -> Library:
    stat = host.stat(found.real_path).value
    size = stat.size if stat is not None else None
    release = re.fullmatch(_RELEASE, found.real_path.rpartition("/")[2])
    return Library(
        path=found.path,
        real_path=found.real_path,
        via=found.via,
        kind=_kind(found, size, has_release=release is not None),
        release=release[1] if release else "",
        size=size,
    )


def _kind(found: Found, size: int | None, *, has_release: bool) -> Kind:
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
