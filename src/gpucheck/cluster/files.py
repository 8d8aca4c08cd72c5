"""Files that a pre-flight writes: a reader sees the old content or the whole new content."""

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, get_args

import msgspec

from gpucheck._about import VERSION
from gpucheck.cluster.model import Status
from gpucheck.facts import builtins
from gpucheck.facts.streams import open_descriptor
from gpucheck.language import say

RANK_SCHEMA = "gpucheck.preflight-rank/1"
_WORST_FIRST: tuple[Status, ...] = (
    "crashed", "failed", "timed-out", "lost", "stopped", "not-run", "passed"
)  # fmt: skip
_LEFT_OUT = ("message", "groups")
"""Keys of a verdict that a rank's file does not need: the tag of the message, and the figures for
the baselines."""


class FileError(Exception):
    """A file cannot be written. The message is one sentence for the user."""


class RankFile(msgspec.Struct, frozen=True, kw_only=True):
    """What ``--each`` writes about one rank; ``rank`` is None for a task that never had one."""

    schema: str = RANK_SCHEMA
    gpucheck: str = VERSION
    taken: str
    rank: int | None
    host: str
    status: Status
    """The worst of its steps."""
    is_culprit: bool
    verdict: dict[str, Any]
    """The verdict of the whole job; empty when it never came here."""
    steps: list[dict[str, Any]]
    """What became of the rank in each step, in order."""
    facts: dict[str, Any]
    """What its task reported about itself and its node."""


class Before:
    """What stood in some files when the run began.

    Where all tasks see the same folder, the tasks that have met without task 0 write the files that
    task 0 would have written. It can see that they did, whatever the clocks of the hosts say.
    """

    def __init__(self, paths: Iterable[str | None]) -> None:
        self._found = {path: _fingerprint(path) for path in paths if path}

    def has_changed(self, path: str) -> bool:
        """Whether somebody has written the file since then."""
        return path in self._found and _fingerprint(path) != self._found[path]


def _fingerprint(path: str) -> tuple[int, ...]:
    """Return what a new content changes; it is opened, so that a file server is asked again."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return ()
    try:
        state = os.fstat(handle)
        return state.st_ino, state.st_mtime_ns, state.st_size
    finally:
        os.close(handle)


def write_file(path: str | Path, content: str | bytes, *, follow: bool = True) -> None:
    """Write a file: whoever reads it meanwhile sees the old content or the new one.

    Only a regular file is replaced, never a device or a pipe. An open descriptor (``/dev/stdout``)
    is written into. A symbolic link is followed, unless ``follow`` is False: then the link itself
    is replaced.

    Raises:
        FileError: it cannot be written.
    """
    if str(path) in ("", "-"):
        raise FileError(say("a file is needed, not the standard output"))
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    temporary: Path | None = None
    try:
        descriptor = open_descriptor(path) if follow else None
        if descriptor is not None:
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(data)
            return
        target = Path(os.path.realpath(path)) if follow else Path(path)
        if target.exists() and not target.is_file():
            raise FileError(say("{file} is not a regular file", file=path))
        temporary = target.with_name(f".gpucheck-{os.getpid()}-{secrets.token_hex(4)}")
        # Unlike tempfile's, this mode lets others read it: node_exporter runs as its own user.
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(handle, "wb") as opened:
            opened.write(data)
            opened.flush()
            os.fsync(opened.fileno())
        temporary.replace(target)
        temporary = None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise FileError(say("{file} cannot be written: {why}", file=path, why=why)) from error
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()


def add_line(path: str | Path, line: str) -> None:
    """Add a line to a file in one write, so that several jobs may write to the same file.

    If somebody else's line was cut off by a full disk, this one begins on a line of its own.

    Raises:
        FileError: it cannot be written, not as a whole, or the file is not a regular one.
    """
    if str(path) in ("", "-"):
        raise FileError(say("a file is needed, not the standard output"))
    try:
        handle = _open_to_add(path)
        try:
            state = os.fstat(handle)
            if not stat.S_ISREG(state.st_mode):
                raise FileError(say("{file} is not a regular file", file=path))
            data = _break_before(handle, state.st_size) + line.encode() + b"\n"
            if os.write(handle, data) < len(data):
                # What is there stays: others may have added a line after it.
                raise FileError(
                    say("{file} took only a part of the record: is its disk full?", file=path)
                )
        finally:
            os.close(handle)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise FileError(say("{file} cannot be written: {why}", file=path, why=why)) from error


def _open_to_add(path: str | Path) -> int:
    how = os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
    descriptor = open_descriptor(path)
    if descriptor is not None:
        return descriptor
    try:
        return os.open(path, os.O_RDWR | how, 0o666)
    except PermissionError:  # perhaps it may only be written
        return os.open(path, os.O_WRONLY | how, 0o666)


def _break_before(handle: int, size: int) -> bytes:
    """Return a line break if the file ends within a line."""
    try:
        return b"" if size == 0 or os.pread(handle, 1, size - 1) == b"\n" else b"\n"
    except OSError:  # it may not be read
        return b""


def json_text(value: object) -> str:
    """Return JSON-like data or structs as ASCII JSON, fast enough for ten thousand ranks.

    What not every JSON reader accepts is replaced: half of a UTF-16 pair by a question mark, a
    number that is not finite by null.
    """
    plain = json.dumps(builtins(value), ensure_ascii=True)
    try:
        return msgspec.json.format(plain, indent=2) + "\n"  # json itself would indent in Python
    except msgspec.DecodeError:
        sound = json.loads(plain, parse_constant=lambda _name: None)
        text = json.dumps(sound, ensure_ascii=False).encode("utf-8", "replace")
        return msgspec.json.format(json.dumps(json.loads(text)), indent=2) + "\n"


def write_each(
    directory: str | Path, own: Mapping[str, Any], verdict: Mapping[str, Any]
) -> list[Path]:
    """Write a JSON file for each rank of one task; return their paths.

    The names consist of numbers alone: ``rank-3.json``, or ``task-3.json`` for a task that never
    had a rank. The folder is created if necessary.

    Args:
        directory: the folder.
        own: the task's ``facts`` and ``steps``, as its supervisor has them.
        verdict: that of the job; empty when it never came.

    Raises:
        FileError: a file cannot be written; those before it are there.
    """
    if str(directory) in ("", "-"):
        raise FileError(say("a folder is needed, not the standard output"))
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise FileError(say("{folder} cannot be made: {why}", folder=directory, why=why)) from error
    written = []
    for name, content in _contents(own, verdict):
        # The folder may be one that others write to: no link of theirs is followed.
        write_file(folder / name, json_text(content), follow=False)
        written.append(folder / name)
    return written


def _contents(own: Mapping[str, Any], verdict: Mapping[str, Any]) -> Iterator[tuple[str, RankFile]]:
    facts = _whole(own.get("facts"))
    told = {key: value for key, value in verdict.items() if key not in _LEFT_OUT}
    taken = datetime.now(tz=timezone.utc).isoformat(timespec="seconds")
    blamed = {rank for one in told.get("culprits") or () for rank in _whole(one).get("ranks") or ()}
    host = str(facts.get("host") or "")
    steps = list(_by_rank(own.get("steps") or ()))
    if not steps:
        task = facts.get("task")
        name = f"task-{task}.json" if isinstance(task, int) else "task.json"
        yield name, RankFile(
            taken=taken, rank=None, host=host, status="not-run", is_culprit=False, verdict=told,
            steps=[], facts=facts,
        )  # fmt: skip
    for rank, results in steps:
        yield f"rank-{rank}.json", RankFile(
            taken=taken, rank=rank, host=host, status=_worst(results), is_culprit=rank in blamed,
            verdict=told, steps=results, facts=facts,
        )  # fmt: skip


def _by_rank(steps: Sequence[Any]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    for step in steps:
        kind = _whole(step).get("step")
        for result in _whole(step).get("results") or ():
            plain = _whole(result)
            rank = plain.get("rank")
            if isinstance(rank, int):
                found.setdefault(rank, []).append({"step": kind, **plain})
    yield from sorted(found.items())


def _worst(results: list[dict[str, Any]]) -> Status:
    seen = {one.get("status") for one in results} & set(get_args(Status))
    return next((status for status in _WORST_FIRST if status in seen), "not-run")


def _whole(value: object) -> dict[str, Any]:
    """Return a struct or a mapping as a dictionary; anything else as an empty one."""
    plain = builtins(value)
    return plain if isinstance(plain, dict) else {}
