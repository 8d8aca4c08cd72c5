"""The files of known-good states: reports with a note, which every reader of reports can read.

A machine's own states are in the state folder of its user: one folder for each host and
environment, because a home folder may be shared, and the newest :data:`MOST_KEPT` in each. A folder
for a fleet has one file for each host.
"""

import contextlib
import hashlib
import itertools
import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal, get_args

import msgspec

from gpucheck.baselines.diff import Change
from gpucheck.engine import Report, Verdict
from gpucheck.facts.selftests import LONG_ENOUGH, SelfTests
from gpucheck.facts.snapshot import FILE_LIMIT, Snapshot, SnapshotError, load
from gpucheck.facts.system import System
from gpucheck.facts.torch import Interpreter
from gpucheck.language import say
from gpucheck.machine.owners import folder_of_others
from gpucheck.output.json_text import json_text
from gpucheck.output.public import public

# What the JSON documents of known-good states hold, as types.


class SavedState(msgspec.Struct, frozen=True, kw_only=True):
    """A saved state; ``verdict`` is that of the day, null for a mere snapshot."""

    file: str
    host: str
    taken: str
    verdict: Verdict | None
    root_causes: tuple[str, ...]
    note: str


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A rate that differs: of which test, on which device, then and now, in its unit."""

    test: str
    device: str
    name: str
    unit: str
    before: float
    after: float

    @property
    def change(self) -> float:
        """The change as a share of the old value: -0.2 is a fifth slower."""
        return self.after / self.before - 1


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A fact in which some hosts differ from most that have the same GPUs.

    ``alike`` of ``of`` hosts have the usual value. ``hosts`` are the others; null: absent there.
    """

    fact: str
    usual: str
    alike: int
    of: int
    gpus: str
    hosts: dict[str, str | None]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """A machine and a saved state; ``explained`` is the slug that ``explained_by`` explains."""

    schema: Literal["gpucheck.baseline-comparison/1"] = "gpucheck.baseline-comparison/1"
    state: SavedState
    verdict: Verdict
    root_causes: tuple[str, ...]
    explained: str | None
    was_there: bool
    explained_by: tuple[Change, ...]
    figures: tuple[Figure, ...]
    changes: tuple[Change, ...]


class Fleet(msgspec.Struct, frozen=True, kw_only=True):
    """The hosts that differ from their like; ``not_compared`` have too few of these."""

    schema: Literal["gpucheck.fleet-comparison/1"] = "gpucheck.fleet-comparison/1"
    hosts: int
    differences: tuple[Difference, ...]
    not_compared: tuple[str, ...]
    unreadable: tuple[str, ...]


class States(msgspec.Struct, frozen=True, kw_only=True):
    """The states that were kept, the newest first."""

    schema: Literal["gpucheck.baselines/1"] = "gpucheck.baselines/1"
    states: tuple[SavedState, ...]


# The figures of self-tests then and now: how much faster or slower a GPU has become.

NOTABLE = 0.1
"""The share by which a rate has to differ to be shown. It accuses nobody: rates vary."""
_RATES = ("TFLOP/s", "GB/s")


def figures(before: Snapshot, after: Snapshot) -> list[Figure]:
    """Return the rates that differ notably, the greatest loss first.

    Tests of the quick level are left out: the clocks of a GPU may still be idle then.
    """
    old, new = dict(_rates(before)), dict(_rates(after))
    found = [
        Figure(test=test, device=device, name=name, unit=unit, before=old[key], after=new[key])
        for key in old
        if key in new
        for test, device, name, unit in [key]
    ]
    return sorted(
        (figure for figure in found if abs(figure.change) >= NOTABLE),
        key=lambda figure: figure.change,
    )


def _rates(snapshot: Snapshot) -> Iterator[tuple[tuple[str, str, str, str], float]]:
    tests = snapshot.get(SelfTests)
    if tests.level not in LONG_ENOUGH:
        return
    for result in tests.results or ():
        for measurement in result.measurements:
            if (
                measurement.unit in _RATES
                and measurement.value is not None
                and measurement.value > 0
            ):
                yield (
                    (result.name, result.device, measurement.name, measurement.unit),
                    measurement.value,
                )


MOST_KEPT = 20
"""States of one host and environment; the oldest is deleted."""
MOST_HOSTS = 10_000
"""Files of a fleet's folder that are read."""
_FOLDER = "gpucheck/known-good"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_NAME = 100  # with the time and the ending it stays below the 255 bytes of a file name
_SUFFIX = ".json"
_NUMBERED = re.compile(r"(?P<stamp>[^_]{1,100})(?:_(?P<number>[0-9]{1,9}))?\.json")
"""A state of its second. A point sorts before the underscore, so names sort by time."""


class BaselineError(Exception):
    """A state cannot be kept or read; the message is one sentence for the user."""


class _About(msgspec.Struct, frozen=True):
    host: str = ""
    note: str = ""


class _Head(msgspec.Struct, frozen=True):
    """What a file says about itself, besides its snapshot."""

    verdict: str = ""
    root_causes: tuple[str, ...] = ()
    known_good: _About = _About()


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A saved state: where it is, what was judged then, and the facts."""

    file: Path
    host: str
    note: str
    verdict: str
    root_causes: tuple[str, ...]
    snapshot: Snapshot

    @property
    def taken(self) -> str:
        """When its facts were read, in UTC, by the second."""
        return self.snapshot.taken


def own_folder(env: Mapping[str, str], snapshot: Snapshot) -> Path:
    """Return the folder with the states of this host and environment.

    Raises:
        BaselineError: no variable says where the state folder is.
    """
    return _states(env) / f"{host_of(snapshot)}-{_environment(snapshot)}"


def _states(env: Mapping[str, str]) -> Path:
    state = env.get("XDG_STATE_HOME", "")
    if Path(state).is_absolute():  # the definition of the variable says so
        return Path(state) / _FOLDER
    home = env.get("HOME") or env.get("USERPROFILE") or ""
    if not home:
        raise BaselineError(say("neither XDG_STATE_HOME nor HOME says where states could be kept"))
    return Path(home) / ".local/state" / _FOLDER


def host_of(snapshot: Snapshot) -> str:
    """Return the name of the host as a part of a file name."""
    name = snapshot.get(System).hostname or "host"
    return _UNSAFE.sub("-", name).lstrip(".-")[:_LONGEST_NAME] or "host"


def _environment(snapshot: Snapshot) -> str:
    target = snapshot.get(Interpreter)
    place = target.prefix or target.executable or ""
    return hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def save(report: Report, folder: Path, note: str) -> Path:
    """Keep a state in a folder of this machine's own, and delete the oldest if there are too many.

    The file is readable for its owner only, so nothing in it is redacted.

    Raises:
        BaselineError: it cannot be written, or root would write where another user can lead it.
    """
    if theirs := folder_of_others(str(folder)):
        raise BaselineError(
            say(
                "{folder} can be changed by another user, so root keeps no state in it: set "
                "XDG_STATE_HOME to a folder of root",
                folder=theirs,
            )
        )
    text = _text(report, report, note)
    stamp = _UNSAFE.sub("-", report.snapshot.taken.partition("+")[0])
    file = _reserved(folder, stamp)
    try:
        _write(file, text, 0o600)
    except BaseException:  # a signal, too
        with contextlib.suppress(OSError):
            file.unlink()
        raise
    # If the clock was set back, the new file is not the last one, and yet it stays.
    others = (saved for saved in _saved(folder) if saved != file)
    for old in sorted(others)[: 1 - MOST_KEPT]:
        with contextlib.suppress(OSError):
            old.unlink()
    return file


def _reserved(folder: Path, stamp: str) -> Path:
    """Create an empty file that no other process has: ``STAMP.json``, then ``STAMP_0002.json``.

    It sorts behind every other file of its second. Readers pass over an empty file.

    Raises:
        BaselineError: it cannot be created.
    """
    file = folder
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for number in itertools.count(_newest_number(folder, stamp) + 1):
            file = folder / f"{stamp}{f'_{number:04d}' if number > 1 else ''}{_SUFFIX}"
            with contextlib.suppress(FileExistsError), file.open("xb"):
                break
    except (OSError, ValueError) as error:
        raise _unwritten(file, error) from error
    return file


def _newest_number(folder: Path, stamp: str) -> int:
    """Return the number of the last file of a second, 0 if it has none.

    The files before it may have been deleted. A new one in their place would count as the oldest.
    """
    names = (_NUMBERED.fullmatch(file.name) for file in _saved(folder))
    return max(
        (int(name["number"] or 1) for name in names if name and name["stamp"] == stamp), default=0
    )


def _saved(folder: Path) -> list[Path]:
    """Return the files of a folder by their names; none if there can be no such folder."""
    try:
        return sorted(file for file in folder.iterdir() if file.name.endswith(_SUFFIX))
    except (OSError, ValueError):
        return []


def _is_file(file: Path) -> bool:
    return os.path.isfile(file)  # noqa: PTH113  # Path.is_file may raise


def save_for_fleet(report: Report, folder: Path, note: str) -> Path:
    """Write this host's file in the folder of a fleet, redacted like all that leaves a machine.

    Raises:
        BaselineError: there is no such folder, or it cannot be written.
    """
    if not os.path.isdir(folder):  # noqa: PTH112  # Path.is_dir may raise
        raise BaselineError(say("{folder} is not a folder", folder=folder))
    file = folder / f"{host_of(report.snapshot)}{_SUFFIX}"
    _write(file, _text(report, public(report), note), 0o644)
    return file


def _text(report: Report, shown: Report, note: str) -> str:
    about = {"host": host_of(report.snapshot), "note": note}
    return json_text({**shown.as_json(), "known_good": about})


def _write(file: Path, text: str, mode: int) -> None:
    """Write a file in one step: a reader sees the old content or the new one."""
    beside = file.with_name(f".new-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            _write_new(beside, text)
            beside.chmod(mode)
            beside.replace(file)
        except BaseException:  # a signal, too
            with contextlib.suppress(OSError):
                beside.unlink()
            raise
    except (OSError, ValueError) as error:
        raise _unwritten(file, error) from error


def _write_new(file: Path, text: str) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as opened:
        opened.write(text)


def _unwritten(file: Path, error: OSError | ValueError) -> BaselineError:
    why = getattr(error, "strerror", None) or error
    return BaselineError(say("{file} cannot be written: {why}", file=file, why=why))


def states(folder: Path) -> Iterator[State]:
    """Yield the states in a folder, the newest first. A file that is no state is passed over."""
    for file in _saved(folder)[::-1][:MOST_KEPT]:
        if not _is_file(file):  # a pipe would never end
            continue
        with contextlib.suppress(BaselineError):
            yield read(file)


def read(file: Path) -> State:
    """Read a state. A report or snapshot that was saved in another way is one as well.

    Raises:
        BaselineError: it cannot be read.
    """
    try:
        snapshot = load(file)
        head = _head(file)
    except SnapshotError as error:
        raise BaselineError(*error.args) from error
    return State(
        file=file,
        host=head.known_good.host or host_of(snapshot),
        note=head.known_good.note,
        verdict=head.verdict,
        root_causes=head.root_causes,
        snapshot=snapshot,
    )


def _head(file: Path) -> _Head:
    if not _is_file(file):  # a pipe can be read only once
        return _Head()
    try:
        with file.open("rb") as opened:
            return msgspec.json.decode(opened.read(FILE_LIMIT), type=_Head)
    except (OSError, ValueError):  # a snapshot has no verdict
        return _Head()


def fleet(folder: Path) -> tuple[list[State], list[str]]:
    """Read the files of a fleet: one for each host, and why others could not be read.

    Raises:
        BaselineError: the folder cannot be read.
    """
    try:
        files = sorted(file for file in folder.iterdir() if file.suffix == _SUFFIX)[:MOST_HOSTS]
    except OSError as error:
        raise BaselineError(
            say("{folder} cannot be read: {why}", folder=folder, why=error.strerror)
        ) from error
    found: list[State] = []
    refused: list[str] = []
    for file in files:
        if not _is_file(file):  # a pipe would never end
            refused.append(say("{file} is not a regular file", file=file))
            continue
        try:
            state = read(file)
            found.append(msgspec.structs.replace(state, host=state.host or file.stem))
        except BaselineError as error:
            refused.append(error.args[0])
    return found, refused


def when(state: State) -> str:
    """Return the time of a state as people write it: ``2026-11-23 09:04`` (UTC)."""
    try:
        return f"{datetime.fromisoformat(state.taken):%Y-%m-%d %H:%M}"
    except ValueError:
        return state.taken


def row(state: State) -> SavedState:
    """Return what a list says about a state."""
    known = {verdict for verdict in get_args(Verdict) if verdict == state.verdict}
    return SavedState(
        file=str(state.file),
        host=state.host,
        taken=state.taken,
        verdict=known.pop() if known else None,
        root_causes=state.root_causes,
        note=state.note,
    )
