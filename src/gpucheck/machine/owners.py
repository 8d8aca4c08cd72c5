"""Whose programs root is about to run, and in whose folders it is about to write."""

import os
from collections.abc import Iterator

import msgspec

from gpucheck.machine.base import Host
from gpucheck.machine.candidates import TargetWish, choose

PROGRAMS = (
    "nvidia-smi", "nvcc", "gcc", "g++", "cc", "c++", "clang", "clang++", "rpm", "journalctl",
    "dmesg",
)  # fmt: skip
"""What probes find on PATH and run."""
_OTHERS_WRITE, _STICKY = 0o002, 0o1000


class Foreign(msgspec.Struct, frozen=True):
    """A program that root would run, and the user id of who can change it; None: everybody."""

    program: str
    uid: int | None


def foreign_programs(host: Host, wish: TargetWish) -> Iterator[Foreign]:
    """Yield the programs that root would run although others can change them, the target first.

    Of each, the file itself is looked at and the folder on PATH; of the target also the environment
    around it, and the folder of its site packages as far as its layout is the usual one.
    """
    if not _is_root() or host.origin != "live":
        return
    usable = [python for python in choose(host, wish) if not python.problem]
    if usable:
        target = usable[0]
        folder = os.path.dirname(os.path.dirname(target.executable))  # noqa: PTH120  # as written
        inside = host.glob(f"{folder}/lib/python3*/site-packages").value or []
        yield from _foreign(host, target.executable, (target.prefix or folder, folder, *inside))
    for name in PROGRAMS:
        path = host.which(name).value
        if path is not None:
            yield from _foreign(host, path, (os.path.dirname(path),))  # noqa: PTH120  # as above


def folder_of_others(path: str) -> str:
    """Return the first folder on the way to a path that others can exchange; "" if there is none.

    Only root is told: everybody else may write nothing but what is theirs anyway.
    """
    if not _is_root():
        return ""
    way = [path]
    while (above := os.path.dirname(way[-1])) != way[-1]:  # noqa: PTH120  # links are not followed
        way.append(above)
    for folder in reversed(way):
        try:
            link, seen = os.lstat(folder), os.stat(folder)  # noqa: PTH116  # a link, and where it leads
        except OSError:
            return ""  # what does not exist yet will be root's own
        shared = seen.st_mode & _OTHERS_WRITE and not seen.st_mode & _STICKY
        if link.st_uid != 0 or seen.st_uid != 0 or shared:
            return folder
    return ""


def _foreign(host: Host, program: str, around: tuple[str, ...]) -> Iterator[Foreign]:
    for place in (program, *around):
        seen = host.stat(place).value
        if seen is not None and (seen.uid != 0 or seen.mode & _OTHERS_WRITE):
            yield Foreign(program, seen.uid or None)
            return


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0
