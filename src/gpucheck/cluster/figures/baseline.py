"""What the GPUs of this machine reached before: a local file, saved and compared on request.

The file has the model and the rates of each GPU by its UUID, and the all-reduce bus bandwidth of a
group by its UUIDs. Nothing else in it is believed.
"""

import contextlib
import os
import random
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from gpucheck.language import plain, say

FILE_LIMIT = 4 * 1024 * 1024
"""A larger file is not ours: a machine with 16 GPUs needs some 10 KiB."""
_MOST_GPUS, _MOST_GROUPS = 4096, 4096
"""Chosen: GPUs that one home folder may see over years; older entries go first."""
_NAME = "gpucheck/baseline.json"


T = TypeVar("T")
_LOCK = ".baseline.lock"
_FOR_LOCK = 3.0
"""Seconds to wait for the lock, in all; who holds it longer has stopped."""
_SECONDS = 6.0
"""Seconds after which the entries are not added again."""
_LOOK = 0.02
"""Seconds between two tries for the lock. Chosen: the file is written in milliseconds."""
_PAUSE = 0.2
"""Seconds in which another task may replace the file by one without these entries."""


class RateBaselineError(Exception):
    """The file cannot be used. The message is one sentence for the user."""


class SavedGpu(msgspec.Struct, frozen=True, kw_only=True):
    """The rates of a GPU, by name with their unit, and their date (YYYY-MM-DD)."""

    model: str
    rates: dict[str, float]
    saved: str = ""


class SavedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The bus bandwidth of an all-reduce, in GB/s, at a size in bytes."""

    size: int
    busbw: float
    saved: str = ""


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """A baseline; ``groups`` by the UUIDs of their GPUs, sorted, with commas."""

    schema: Literal["gpucheck.baseline/1"] = "gpucheck.baseline/1"
    gpus: dict[str, SavedGpu] = {}
    groups: dict[str, SavedGroup] = {}

    def of_gpu(self, uuid: str | None, model: str | None) -> SavedGpu | None:
        """Return what was saved of this GPU, or None. Another model counts as nothing."""
        found = self.gpus.get(uuid or "")
        return found if found is not None and found.model == (model or "") else None

    def of_group(self, uuids: Iterable[str | None], size: int) -> SavedGroup | None:
        """Return what was saved of these GPUs together at this size, or None."""
        found = self.groups.get(_group_key(uuids) or "")
        if found is None or found.size != size or not _is_rate(found.busbw):
            return None
        return found


def _group_key(uuids: Iterable[str | None]) -> str | None:
    """Return the name of a group. None if a GPU has no UUID (a CPU process)."""
    members = list(uuids)
    return ",".join(sorted(filter(None, members))) if members and all(members) else None


def default_path(env: Mapping[str, str]) -> Path:
    """Return where the baseline is: below $XDG_STATE_HOME, else ~/.local/state.

    Raises:
        BaselineError: neither that nor $HOME is set.
    """
    state = env.get("XDG_STATE_HOME", "")
    if Path(state).is_absolute():  # the definition of the variable says so
        return Path(state) / _NAME
    home = env.get("HOME", "")
    if not home:
        raise RateBaselineError(
            say("neither XDG_STATE_HOME nor HOME says where a baseline could be kept")
        )
    return Path(home) / ".local/state" / _NAME


def load(path: Path) -> Baseline:
    """Read a baseline; an empty one if there is no file.

    Raises:
        BaselineError: the file cannot be read, or is not a baseline.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # a pipe would keep us waiting
            raise RateBaselineError(_unreadable(path, say("it is not a regular file")))
        with path.open("rb") as opened:
            data = opened.read(FILE_LIMIT + 1)
    except FileNotFoundError:
        return Baseline()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise RateBaselineError(_unreadable(path, why)) from error
    if len(data) > FILE_LIMIT:
        raise RateBaselineError(
            say(
                "{file} is larger than {size} MiB, so it is not a baseline",
                file=path,
                size=FILE_LIMIT >> 20,
            )
        )
    try:
        return _sound(msgspec.json.decode(data, type=Baseline))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RateBaselineError(
            say("{file} is not a baseline of gpucheck: {error}", file=path, error=error)
        ) from error


def _unreadable(path: Path, why: object) -> str:
    return say("the baseline {file} cannot be read: {why}", file=path, why=why)


def _sound(read: Baseline) -> Baseline:
    """Return what is plausible: positive rates, and no more entries than gpucheck would save."""
    gpus = {
        uuid: msgspec.structs.replace(
            gpu, rates={name: rate for name, rate in gpu.rates.items() if _is_rate(rate)}
        )
        for uuid, gpu in list(read.gpus.items())[:_MOST_GPUS]
    }
    groups = {
        key: group
        for key, group in list(read.groups.items())[:_MOST_GROUPS]
        if _is_rate(group.busbw)
    }
    return Baseline(gpus=gpus, groups=groups)


def _is_rate(value: float) -> bool:
    return 0 < value < float("inf")


def with_news(old: Baseline, new: Baseline) -> Baseline:
    """Return the old baseline, updated with what was measured now."""
    gpus = _newest({**old.gpus, **new.gpus}, new.gpus, _MOST_GPUS)
    groups = _newest({**old.groups, **new.groups}, new.groups, _MOST_GROUPS)
    return Baseline(gpus=gpus, groups=groups)


def _newest(entries: dict[str, T], fresh: Iterable[str], most: int) -> dict[str, T]:
    """Return at most this many entries, the newest ones."""
    order = dict.fromkeys([*fresh, *entries])
    return {key: entries[key] for key in list(order)[:most]}


def measured(
    rates: Iterable[tuple[str | None, str | None, Mapping[str, float]]],
    groups: Iterable[tuple[Iterable[str | None], int, float]],
    day: str,
) -> Baseline:
    """Return what was measured now as a baseline, without GPUs that have no UUID.

    Args:
        rates: UUID, model and rates of each GPU.
        groups: the UUIDs of a group on one node, the size in bytes, the bus bandwidth in GB/s.
        day: today, YYYY-MM-DD.
    """
    gpus = {
        uuid: SavedGpu(
            model=model,
            rates={name: rate for name, rate in named.items() if _is_rate(rate)},
            saved=day,
        )
        for uuid, model, named in rates
        if uuid and model
    }
    together = {
        key: SavedGroup(size=size, busbw=busbw, saved=day)
        for uuids, size, busbw in groups
        if (key := _group_key(uuids)) and _is_rate(busbw)
    }
    return Baseline(gpus=gpus, groups=together)


def save(path: Path, baseline: Baseline) -> None:
    """Write a baseline: the file has the old content or the new one, whatever happens meanwhile.

    Raises:
        BaselineError: it cannot be written.
    """
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".baseline-")
        with os.fdopen(handle, "wb") as opened:
            opened.write(
                msgspec.json.format(msgspec.json.encode(baseline, enc_hook=plain), indent=1) + b"\n"
            )
            opened.flush()
            os.fsync(opened.fileno())
        Path(temporary).replace(path)
    except (OSError, ValueError) as error:
        if temporary:
            with contextlib.suppress(OSError):
                Path(temporary).unlink()
        why = getattr(error, "strerror", None) or error
        raise RateBaselineError(
            say("the baseline {file} cannot be written: {why}", file=path, why=why)
        ) from error


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
            raise RateBaselineError(
                say(
                    "the baseline {file} lacks what this task has measured: other tasks replace "
                    "the file at the same time",
                    file=path,
                )
            )


def _is_lost(earlier: Sequence[Baseline], new: Baseline, found: Baseline) -> bool:
    """Whether an entry is as before, or away. Another run may have replaced it by a newer one."""
    return _differs_as_before(
        [baseline.gpus for baseline in earlier], new.gpus, found.gpus
    ) or _differs_as_before([baseline.groups for baseline in earlier], new.groups, found.groups)


def _differs_as_before(
    earlier: Sequence[Mapping[str, object]], new: Mapping[str, object], found: Mapping[str, object]
) -> bool:
    return any(
        found.get(key) != own
        and found.get(key) in [None, *(previous.get(key) for previous in earlier)]
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
