"""The tables that ``gpucheck tables update`` has put into the user's data folder.

They are in use until gpucheck or its own tables become newer, or ``gpucheck tables reset``. Each
set has a folder of its own, and one small file names the set in use, so a reader sees the old or
the new one.
"""

# Names are strings here: every check would pay two milliseconds for importing pathlib.
# ruff: noqa: PTH113, PTH118, PTH123

import os
import re

from gpucheck._about import VERSION
from gpucheck.machine.data_folder import data_folder

_FOLDER = "tables"
_CURRENT = "current"
_NAME = re.compile(r"[0-9]{4}(?:\.[0-9]{1,6}){1,3}-[0-9a-f]{12}")
_MOST = 200  # bytes: a name and a version of gpucheck


def sets_folder() -> str:
    """Return the folder with the sets; "" if there can be none."""
    data = data_folder()
    return os.path.join(data, _FOLDER) if data else ""


def current_file(sets: str) -> str:
    """Return the file that names the set in use."""
    return os.path.join(sets, _CURRENT)


def named(name: str) -> str:
    """Return what ``current_file`` says if the set of this name is in use."""
    return f"{name} {VERSION}\n"


def is_name(name: str) -> bool:
    """Return whether this is the name of a set: its version, and the beginning of its hash."""
    return _NAME.fullmatch(name) is not None


def updated_tables() -> str | None:
    """Return the folder of the tables that the user has brought, None if there are none.

    Those that an older gpucheck put there do not count: their columns may be others.
    """
    sets = sets_folder()
    if not sets:
        return None
    try:
        with open(current_file(sets), encoding="ascii") as file:
            name, _, version = file.read(_MOST).strip().partition(" ")
    except (OSError, ValueError):
        return None
    if version != VERSION or not is_name(name):
        return None
    folder = os.path.join(sets, name)
    return folder if os.path.isfile(os.path.join(folder, "index.json")) else None
