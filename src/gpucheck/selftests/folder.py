"""The folder that the processes of one step share: creation, removal, and cleanup after a kill.

A run that is killed cannot remove its own folder, so the next run does. It removes folders that
belong to this user, have a name of gpucheck's form, and are not locked. Every run locks its own
folder.
"""

import contextlib
import os
import re
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "gpucheck-step-"
# What mkdtemp makes of the prefix: other folders of that name are not removed.
_OURS = re.compile(rf"{_PREFIX}[a-z0-9_]{{8}}")
_PRIVATE = 0o700  # as mkdtemp makes it: another mode is not our folder
_LOCKS = os.name == "posix"
_YOUNG = 60.0
"""Seconds: a younger folder may belong to a run that has not locked it yet."""


@contextlib.contextmanager
def step_folder() -> Iterator[str]:
    """Make a folder that the ranks of a step share; "" if none can be made."""
    try:
        folder = tempfile.mkdtemp(prefix=_PREFIX)
    except OSError:
        folder = ""
    lock = _open(folder) if folder else None
    try:
        if lock is not None:
            _lock(lock)
        yield folder
    finally:
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def sweep(place: str | None = None) -> None:
    """Remove the folders that killed runs of this user have left behind."""
    where = Path(place or tempfile.gettempdir())
    with contextlib.suppress(OSError):
        for folder in where.iterdir():
            if _OURS.fullmatch(folder.name):
                _remove_if_left(folder)


def _remove_if_left(folder: Path) -> None:
    handle = _open(folder)
    if handle is None:
        return
    try:
        found = os.fstat(handle)
        is_ours = found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) == _PRIVATE
        if is_ours and time.time() - found.st_mtime > _YOUNG and _lock(handle):
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)


def _open(folder: str | Path) -> int | None:
    """Open a folder; None if it is a link or cannot be opened."""
    if not _LOCKS:
        return None
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None


def _lock(handle: int) -> bool:
    """Lock the folder as long as it is open; False if another process has locked it."""
    import fcntl  # noqa: PLC0415  # not on Windows

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
