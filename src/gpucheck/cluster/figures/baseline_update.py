"""Adding to the baseline file, while other tasks and other nodes add to the same file.

A lock keeps the tasks apart. Some network file systems have no locks, or have them for one machine
only. So each task looks once more whether its entries have stayed, and adds them again if not.
"""

import contextlib
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gpucheck.cluster.figures.baseline import Baseline, BaselineError, load, save, with_news
from gpucheck.language import say

_LOCK = ".baseline.lock"
_FOR_LOCK = 3.0
"""Seconds to wait for the lock, in all; who holds it longer has stopped."""
_SECONDS = 6.0
"""Seconds after which the entries are not added again."""
_LOOK = 0.02
_PAUSE = 0.2
"""Seconds in which another task may replace the file by one without these entries."""


def update(path: Path, new: Baseline) -> None:
    """Add what was measured now to the file, and keep what others have added.

    Raises:
        BaselineError: the file cannot be read or written, or others replace it again and again.
    """
    begun = time.monotonic()
    earlier: list[Baseline] = []
    while True:
        with _locked(path.with_name(_LOCK), begun + _FOR_LOCK):
            earlier.append(load(path))
            save(path, with_news(earlier[-1], new))
        if not (new.gpus or new.groups):
            return
        time.sleep(random.uniform(_PAUSE / 2, _PAUSE))  # noqa: S311  # no secret
        if not _is_lost(earlier, new, load(path)):
            return
        if time.monotonic() - begun > _SECONDS:
            raise BaselineError(
                say(
                    "the baseline {file} lacks what this task has measured: other tasks replace "
                    "the file at the same time",
                    file=path,
                )
            )


def _is_lost(earlier: Sequence[Baseline], new: Baseline, found: Baseline) -> bool:
    """Whether an entry is as before, or away. Another run may have replaced it by a newer one."""
    return _differs_as_before(
        [one.gpus for one in earlier], new.gpus, found.gpus
    ) or _differs_as_before([one.groups for one in earlier], new.groups, found.groups)


def _differs_as_before(
    earlier: Sequence[Mapping[str, object]], new: Mapping[str, object], found: Mapping[str, object]
) -> bool:
    return any(
        found.get(key) != own and found.get(key) in [None, *(one.get(key) for one in earlier)]
        for key, own in new.items()
    )


@contextlib.contextmanager
def _locked(file: Path, until: float) -> Iterator[None]:
    """Hold the lock if that is possible before the time ``until``; go on without it otherwise."""
    handle = _open(file)
    try:
        while handle is not None and not _lock(handle) and time.monotonic() < until:
            time.sleep(_LOOK)
        yield
    finally:
        if handle is not None:
            os.close(handle)


def _open(file: Path) -> int | None:
    """Open the lock file, which stays; None if that is impossible."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except (OSError, ValueError):
        return None


def _lock(handle: int) -> bool:
    """Lock the file; False as long as another task holds the lock."""
    import fcntl  # noqa: PLC0415  # only a baseline needs it

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # no locks here
        return True
    return True
