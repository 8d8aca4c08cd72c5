"""Limits on processor time and processes, as a batch system sets them: control groups."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import msgspec

_FIRST, _SECOND = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
_PROCESSES = Path("/sys/fs/cgroup/pids")
_PERIOD = 100_000
"""Microseconds."""


class Group(msgspec.Struct, frozen=True):
    """A control group."""

    folder: Path

    @property
    def command(self) -> list[str]:
        """What comes before a command, so that it runs in the group."""
        enter = f'echo $$ > "{self.folder}/cgroup.procs" && exec "$@"'
        return ["sh", "-c", enter, "sh"]


def missing() -> str:
    """Return why there can be no such group; "" if there can."""
    try:
        with limited(1.0):
            return ""
    except OSError as error:
        return f"no control group can be made here: {error}"


@contextlib.contextmanager
def limited(processors: float) -> Iterator[Group]:
    """Have a group that gets so many processors.

    Raises:
        OSError: this system lets nobody make one here.
    """
    is_first = (_FIRST / "cpu.cfs_quota_us").exists()
    folder = (_FIRST if is_first else _SECOND) / f"gpucheck-{uuid4().hex}"
    folder.mkdir()
    try:
        quota = int(processors * _PERIOD)
        if is_first:
            (folder / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (folder / "cpu.max").write_text(f"{quota} {_PERIOD}")
        yield Group(folder)
    finally:
        _remove(folder)


@contextlib.contextmanager
def few_processes(most: int) -> Iterator[Group]:
    """Have a group that may have so many processes and threads.

    Raises:
        OSError: this system lets nobody make one here.
    """
    root = _PROCESSES if _PROCESSES.is_dir() else _SECOND
    folder = root / f"gpucheck-{uuid4().hex}"
    folder.mkdir()
    try:
        (folder / "pids.max").write_text(str(most))
        yield Group(folder)
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove a group once its last process has left it."""
    end = time.monotonic() + 10
    while folder.exists():
        try:
            folder.rmdir()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
