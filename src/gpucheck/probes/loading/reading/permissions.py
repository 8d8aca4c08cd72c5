"""Existing libraries that file permissions hide from the loader."""

import posixpath
from collections.abc import Sequence

from gpucheck.machine import Host
from gpucheck.machine.binaries.loader import Lost
from gpucheck.machine.paths import parent
from gpucheck.probes.torch.reading.dist_info import DistInfo
from gpucheck.probes.torch.reading.wheel_records import recorded_libraries

_WHEELS = "/nvidia/"
"""NVIDIA's wheels are installed below it, mostly in a folder with the library's name."""
_BRINGS_LIBRARIES = ("nvidia-", "torch")


def kept_out(host: Host, lost: Lost, infos: Sequence[DistInfo]) -> str:
    """Return the file that this user may not read, or the folder that hides it; otherwise "".

    A folder that cannot be searched counts only if it certainly contains the library: a wheel's
    RECORD says so, or it is the folder of the library's own wheel.
    """
    seen = next((path for path in lost.denied if host.stat(path).value is not None), None)
    if seen is not None:
        return _real(host, seen)
    hidden = [posixpath.normpath(path) for path in lost.denied]
    if not hidden:
        return ""
    path = next((path for path in hidden if _is_of_its_wheel(path)), None)
    if path is None:
        recorded = _recorded(host, infos)
        path = next((path for path in hidden if path in recorded), None)
    return _real(host, _hiding(host, path)) if path is not None else ""


def _is_of_its_wheel(path: str) -> bool:
    folder = path.partition(_WHEELS)[2].partition("/")[0]
    return bool(folder) and path.rpartition("/")[2].lower().startswith(f"lib{folder}")


def _recorded(host: Host, infos: Sequence[DistInfo]) -> set[str]:
    wheels = [info for info in infos if info.project.startswith(_BRINGS_LIBRARIES)]
    return {file.path for info in wheels for file in recorded_libraries(host, info).value or ()}


def _hiding(host: Host, path: str) -> str:
    """Return the nearest visible folder above the path: that one cannot be searched."""
    folder = parent(path)
    while host.stat(folder).value is None and parent(folder) not in ("", folder):
        folder = parent(folder)
    return folder


def _real(host: Host, path: str) -> str:
    return host.real_path(path).value or path
