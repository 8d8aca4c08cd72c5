"""Finds files by a shell pattern and programs on PATH, without modules that are slow to import."""
# Names are strings here, as the door to the machine hands them out.
# ruff: noqa: PTH113, PTH117, PTH118, PTH120, PTH207, PTH208

import fnmatch
import glob
import os
import re
from collections.abc import Iterable

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
