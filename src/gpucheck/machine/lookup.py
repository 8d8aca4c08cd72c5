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
    """Return the paths that match; within one folder this is faster than ``glob``."""
    folder, last = os.path.split(pattern)
    in_one_folder = glob.has_magic(last) and not glob.has_magic(folder) and last != "**"
    if os.name == "nt" or not in_one_folder:
        return glob.iglob(pattern)
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
    folders = [one for one in path.split(os.pathsep) if os.path.isabs(one)]
    for folder in [""] if os.path.dirname(name) else folders:
        for ending in _endings(name):
            file = os.path.join(folder, name + ending)
            if os.path.isfile(file) and os.access(file, os.X_OK):
                return file
    return None


def _endings(name: str) -> Iterable[str]:
    if os.name != "nt":
        return ("",)
    known = [one for one in os.environ.get("PATHEXT", _PROGRAMS).split(os.pathsep) if one]
    has_one = name.lower().endswith(tuple(one.lower() for one in known))
    return ("",) if has_one else known
