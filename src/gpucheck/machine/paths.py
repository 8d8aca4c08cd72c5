"""Paths of the target, which may be Windows; files by a pattern, programs, hashes."""

import errno

# Names are strings here, as the door to the machine hands them out.
# ruff: noqa: PTH113, PTH117, PTH118, PTH120, PTH207, PTH208
import fnmatch
import glob
import ntpath
import os
import posixpath
import re
import stat
import time
from collections.abc import Callable, Iterable

from gpucheck.language import say

# Paths of the target, which may be a Windows machine that was recorded on another one.


def is_windows(path: str) -> bool:
    r"""Whether the path is in Windows notation: ``C:\...`` or ``\\server\...``."""
    return path[1:2] == ":" or path.startswith("\\\\")


def join(folder: str, *names: str) -> str:
    """Join with the separator that the folder uses."""
    return ntpath.join(folder, *names) if is_windows(folder) else posixpath.join(folder, *names)


def pattern(folder: str, *names: str) -> str:
    """Join for ``Host.glob``: the names are patterns, the folder is literal."""
    return join(glob.escape(folder), *names)


def parent(path: str) -> str:
    """Return the folder that contains the path."""
    return ntpath.dirname(path) if is_windows(path) else posixpath.dirname(path)


def name(path: str) -> str:
    """Return the last part of the path."""
    return ntpath.basename(path) if is_windows(path) else posixpath.basename(path)


def distinct(paths: list[str]) -> list[str]:
    """Drop duplicates and empty entries; keep the order."""
    return [path for path in dict.fromkeys(paths) if path]


# Finds files by a shell pattern and programs on PATH, without modules that are slow to import.

_PROGRAMS = ".COM;.EXE;.BAT;.CMD"
"""What Windows takes for programs if PATHEXT is not set."""


def matching(pattern: str) -> Iterable[str]:
    """Return the paths that match; faster than ``glob`` in a folder, or all folders of one."""
    folder, last = os.path.split(pattern)
    if os.name == "nt" or last == "**" or not glob.has_magic(last):
        return glob.iglob(pattern)
    parent, between = os.path.split(folder)
    if between == "*" and not glob.has_magic(parent):
        return [path for inner in _folders(parent) for path in _in(inner, last)]
    return glob.iglob(pattern) if glob.has_magic(folder) else _in(folder, last)


def _folders(folder: str) -> list[str]:
    try:
        with os.scandir(folder or os.curdir) as entries:
            names = [entry.name for entry in entries if entry.name[0] != "." and entry.is_dir()]
    except OSError:
        return []
    return [os.path.join(folder, name) for name in names]


def _in(folder: str, last: str) -> list[str]:
    """Return the paths in a folder whose names match."""
    try:
        names = os.listdir(folder or os.curdir)
    except OSError:
        return []
    # A folder may have thousands of names: prefix and suffix exclude most of them.
    head, tail = re.split(r"[*?[]", last)[0], re.split(r"[]*?]", last)[-1]
    names = [name for name in names if name.startswith(head) and name.endswith(tail)]
    if not last.startswith("."):
        names = [name for name in names if not name.startswith(".")]
    return [os.path.join(folder, name) for name in fnmatch.filter(names, last)]


def which(name: str) -> str | None:
    """Return the first executable of that name on PATH; never one of the current folder.

    A name with a folder is looked up there. Windows completes a name by the endings of programs.
    """
    path = os.environ.get("PATH", os.defpath)
    folders = [entry for entry in path.split(os.pathsep) if os.path.isabs(entry)]
    for folder in [""] if os.path.dirname(name) else folders:
        for ending in _endings(name):
            file = os.path.join(folder, name + ending)
            if os.path.isfile(file) and os.access(file, os.X_OK):
                return file
    return None


def _endings(name: str) -> Iterable[str]:
    if os.name != "nt":
        return ("",)
    known = [
        extension
        for extension in os.environ.get("PATHEXT", _PROGRAMS).split(os.pathsep)
        if extension
    ]
    has_one = name.lower().endswith(tuple(extension.lower() for extension in known))
    return ("",) if has_one else known


# Computes the SHA-256 of a file, as a stream and with little memory.

# Bytes; chosen: large enough for the disk, small beside the 80 MiB of docs/architecture.md, 1.5.
_PART = 1024 * 1024
_BINARY = getattr(os, "O_BINARY", 0)


def sha256(path: str, seconds: float, clock: Callable[[], float] = time.monotonic) -> str:
    """Return the SHA-256 of a regular file in hexadecimal digits.

    Raises:
        OSError: the file cannot be read, is not regular, or took more than ``seconds`` to read.
    """
    import hashlib  # noqa: PLC0415  # takes 2 ms, and is used with -v only

    end = clock() + seconds
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, say("not a regular file"))
        summed = hashlib.sha256(usedforsecurity=False)
        while part := os.read(handle, _PART):
            summed.update(part)
            if clock() > end:
                raise OSError(say("reading it takes too long"))
        return summed.hexdigest()
    finally:
        os.close(handle)
