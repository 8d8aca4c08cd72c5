"""Finds files by a shell pattern and programs on PATH, without modules that are slow to import."""
# Names are strings here, as the door to the machine hands them out.
# ruff: noqa: PTH113, PTH118, PTH207, PTH208

import fnmatch
import glob
import os
import re
from collections.abc import Iterable


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
    """Return the first executable of that name on PATH."""
    if os.name == "nt":
        import shutil  # noqa: PLC0415  # slow to import, and needed on Windows only

        return shutil.which(name)
    path = os.environ.get("PATH", os.defpath)
    folders = [""] if "/" in name else path.split(os.pathsep) if path else []
    for folder in folders:
        file = os.path.join(folder, name)
        if os.path.isfile(file) and os.access(file, os.X_OK):
            return file
    return None
