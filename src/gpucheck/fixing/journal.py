"""The journal of a run: a file that is written before and after every step, and survives us."""

import contextlib
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Literal

import msgspec

from gpucheck.fixing.permitted import Command, Place
from gpucheck.language import plain

_FILE = "plan.json"
_PREFIX = "fix-"
_LIMIT = 16 << 20  # bytes; chosen: a journal has some KB; others may write into the folder

StepStatus = Literal["planned", "declined", "running", "done", "failed"]
RunStatus = Literal["planned", "running", "done", "undoing", "undone"]


class JournalStep(msgspec.Struct, kw_only=True):
    """One fix: the findings that it is for, what it does, and how far it has come."""

    slugs: tuple[str, ...]
    text: str
    changes: tuple[str, ...]
    commands: tuple[Command, ...]
    status: StepStatus = "planned"
    detail: str = ""
    at: int = 0
    """The command that runs, or that failed."""


class Journal(msgspec.Struct, kw_only=True):
    """What a run is about to do, and how far it has come."""

    place: Place
    steps: list[JournalStep]
    status: RunStatus = "planned"
    torch_worked: bool | None = None
    """Whether ``import torch`` worked before; None if that is not known."""
    kept: bool = True
    """Whether there is a way back."""
    links: bool = True
    """Whether the copy is made of hard links."""
    project_files: tuple[str, ...] = ()
    """Files of a project that a step changes, kept as well."""

    def interrupted(self) -> tuple[int, JournalStep] | None:
        """Return the number of the step that was interrupted, and the step."""
        return next(
            ((at, step) for at, step in enumerate(self.steps, 1) if step.status == "running"), None
        )


def folders(place: Place) -> list[Path]:
    """Return the folders of earlier runs, the newest first."""
    with contextlib.suppress(OSError):
        found = [path for path in Path(place.home).iterdir() if path.name.startswith(_PREFIX)]
        return sorted((path for path in found if (path / _FILE).is_file()), reverse=True)
    return []


def new_folder(place: Place, stamp: str) -> Path:
    """Create the folder of a run; only this user may look into it."""
    folder = Path(place.home) / f"{_PREFIX}{stamp}"
    folder.mkdir(parents=True, mode=0o700)
    return folder


def read(folder: Path) -> Journal | None:
    """Read the journal of a run; None if it cannot be read."""
    try:
        with (folder / _FILE).open("rb") as file:
            return msgspec.json.decode(file.read(_LIMIT), type=Journal)
    except (OSError, ValueError):
        return None


def write(folder: Path, journal: Journal) -> None:
    """Write the journal in one step, and to the disk: a power cut leaves the old or the new one."""
    beside = folder / f"{_FILE}.new"
    with beside.open("wb") as file:
        file.write(msgspec.json.encode(journal, enc_hook=plain))
        file.flush()
        os.fsync(file.fileno())
    beside.replace(folder / _FILE)
    if os.name != "nt":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def unfinished(place: Place) -> tuple[Path, Journal] | None:
    """Return the newest run that was interrupted while something was being changed."""
    return _newest(place, ("running", "undoing"))


def undoable(place: Place) -> tuple[Path, Journal] | None:
    """Return the newest run that can be taken back."""
    return _newest(place, ("running", "undoing", "done"))


def _newest(place: Place, wanted: tuple[RunStatus, ...]) -> tuple[Path, Journal] | None:
    """Return a run of this very environment: a copied one has the journals of its original."""
    for folder in folders(place):
        journal = read(folder)
        if journal is not None and journal.status in wanted and _is_of(journal, place):
            return folder, journal
    return None


def _is_of(journal: Journal, place: Place) -> bool:
    beside = Path(place.prefix).parent
    files = all(Path(project_file).parent == beside for project_file in journal.project_files)
    return files and msgspec.structs.replace(journal.place, python=place.python) == place


# The copy of an environment before a run, made of hard links, and the way back to it.
#
# pip, uv and conda replace a file by a new one, so a link keeps the old content without taking
# space until then. The few files that they write into (``.pth``, the history of conda) and the
# programs are copied. Going back moves entry by entry: it may be killed at any moment and begun
# again.

_COPY, _OUT, _FILES, _NEW = "copy", "replaced", "files.json", "copy.new"
_WRITTEN_INTO = (".pth", "history", ".egg-link")
# Bytes; chosen: scripts are copied at no cost, and an interpreter is linked.
_SMALL_PROGRAM = 1 << 20
_MOST_KEPT = 2  # chosen: `--undo` takes back the last run; links to replaced files take real space
_BLOCK = 512
"""What ``st_blocks`` counts in, whatever the file system."""
Seen = dict[str, tuple[int, int]]
"""Size and time of each file of a folder, by its path in it."""


class _Kept(msgspec.Struct, frozen=True):
    """What the folders looked like, and the SHA-256 of each RECORD, which has those of the rest."""

    folders: dict[str, Seen]
    records: dict[str, str]


class NotRestoredError(Exception):
    """What was put back is not what was there; the message is the first path that differs."""


def roots(journal: Journal) -> list[str]:
    """Return the folders that are kept and put back."""
    place = journal.place
    by_conda = any(
        command.argv[0] in ("conda", "mamba") for step in journal.steps for command in step.commands
    )
    if by_conda:
        # conda owns everything in its prefix but its other environments and our own folder.
        entries = sorted(Path(place.prefix).iterdir())
        apart = ("envs", "pkgs", Path(place.home).name)
        return [str(entry) for entry in entries if entry.is_dir() and not entry.is_symlink()
                and entry.name not in apart]  # fmt: skip
    return [*place.packages, *([place.scripts] if place.scripts else [])]


def can_link(place: Place) -> bool:
    """Whether hard links work between the packages and our folder; asked by making one."""
    home = Path(place.home)
    home.mkdir(mode=0o700, exist_ok=True)
    for root in place.packages:
        trial, link = Path(root) / f".gpucheck-{os.getpid()}", home / f"link-{os.getpid()}"
        try:
            trial.touch()
            os.link(trial, link)
        except OSError:
            return False
        finally:
            for path in (trial, link):
                with contextlib.suppress(OSError):
                    path.unlink()
    return True


def size_of(place: Place) -> int:
    """Return the bytes that a copy without links would take."""
    return sum(size for root in place.packages for size, _time in _seen(Path(root)).values())


def keep(folder: Path, journal: Journal) -> None:
    """Keep the state: a copy of every root, what its files look like, and what is installed.

    Raises:
        OSError: it could not be kept; nothing was changed.
    """
    new = folder / _NEW
    shutil.rmtree(new, ignore_errors=True)
    seen: dict[str, Seen] = {}
    for number, root in enumerate(roots(journal)):
        programs = root == journal.place.scripts
        _copied(root, str(new / str(number)), links=journal.links, programs=programs)
        seen[root] = _seen(Path(root))
    for number, file in enumerate(journal.project_files):
        shutil.copy2(file, new / f"file-{number}")
    kept = _Kept(seen, _records(seen))
    (folder / _FILES).write_bytes(msgspec.json.encode(kept))
    (folder / "freeze.txt").write_text(frozen(journal.place), encoding="utf-8")
    new.rename(folder / _COPY)


def is_kept(folder: Path) -> bool:
    """Whether there is a copy to go back to, or a part of one that is being put back."""
    return (folder / _COPY).is_dir()


def restore(folder: Path, journal: Journal) -> None:
    """Put the state back that was kept; begun again, it goes on where it was.

    Raises:
        NotRestoredError: something is not as it was.
        OSError: a file could not be moved.
    """
    copy, out = folder / _COPY, folder / _OUT
    kept = msgspec.json.decode((folder / _FILES).read_bytes(), type=_Kept)
    own = (*journal.place.packages, journal.place.scripts)
    for root in kept.folders:
        # Whatever the file says: nothing outside the environment is ever moved.
        if root not in own and Path(root).parent != Path(journal.place.prefix):
            raise NotRestoredError(root)
    for number, (root, files) in enumerate(kept.folders.items()):
        _restore_root(copy / str(number), Path(root), out / str(number), files)
    for number, file in enumerate(journal.project_files):
        with contextlib.suppress(FileNotFoundError):
            (copy / f"file-{number}").replace(file)
    for step in journal.steps:
        for command in step.commands:
            if command.action == "move":
                _rename_back(Path(command.argv[1]), Path(command.argv[2]))
    _compare(kept)
    shutil.rmtree(copy, ignore_errors=True)
    shutil.rmtree(out, ignore_errors=True)


def _rename_back(source: Path, target: Path) -> None:
    if source.parent == target.parent and not os.path.lexists(source):
        with contextlib.suppress(FileNotFoundError):
            target.rename(source)


def _restore_root(source: Path, live: Path, away: Path, files: Seen) -> None:
    away.mkdir(parents=True, exist_ok=True)
    live.mkdir(exist_ok=True)
    for entry in sorted(source.iterdir()) if source.is_dir() else ():
        if _is_unchanged(entry, live / entry.name):
            continue  # gpucheck itself may be among it
        _put_back(entry, live / entry.name, away)
    expected = {Path(path).parts[0] for path in files}
    for entry in sorted(live.iterdir()):
        if entry.name not in expected:
            _move_away(entry, away)


def _is_unchanged(kept: Path, live: Path) -> bool:
    """Whether an entry is still what was kept, by the size and time of all of its files."""
    if not os.path.lexists(live) or kept.is_symlink() or live.is_symlink():
        return False
    if kept.is_dir() or live.is_dir():
        return kept.is_dir() and live.is_dir() and _seen(kept) == _seen(live)
    before, now = kept.stat(), live.stat()
    return (before.st_size, before.st_mtime_ns) == (now.st_size, now.st_mtime_ns)


def _compare(kept: _Kept) -> None:
    for root, files in kept.folders.items():
        now = _seen(Path(root))
        for path, as_it_was in files.items():
            if now.get(path) != as_it_was:
                raise NotRestoredError(str(Path(root) / path))
    for path, digest in _records(kept.folders).items():
        if kept.records[path] != digest:
            raise NotRestoredError(path)


def extra_space(folder: Path) -> int:
    """Return the bytes that only the copy has: its folders, and links whose other end is gone."""
    total = 0
    for base, inner, names in os.walk(folder / _COPY):
        for path in map(Path(base).joinpath, (*inner, *names)):
            info = path.lstat()
            is_own = stat.S_ISDIR(info.st_mode) or info.st_nlink == 1
            total += getattr(info, "st_blocks", 0) * _BLOCK if is_own else 0
    return total


def forget_old(place: Place, current: Path) -> None:
    """Delete all but the newest states, and what runs have left that changed nothing."""
    kept = 0
    for folder in folders(place):
        journal = read(folder)
        useful = journal is not None and journal.status in ("running", "undoing", "done")
        kept += useful
        if folder != current and (not useful or kept > _MOST_KEPT):
            shutil.rmtree(folder, ignore_errors=True)


def frozen(place: Place) -> str:
    """Return what is installed, in the words of ``pip freeze --all``."""
    lines: dict[str, str] = {}
    for distribution in metadata.distributions(path=list(place.packages)):
        name, version = distribution.metadata["Name"], distribution.metadata["Version"]
        if name and version:
            lines.setdefault(name.lower(), f"{name} @ {url}" if (url := _url(distribution)) else
                             f"{name}=={version}")  # fmt: skip
    return "".join(f"{lines[name]}\n" for name in sorted(lines))


def _records(folders: dict[str, Seen]) -> dict[str, str]:
    found = (Path(root) / path for root, files in folders.items() for path in files)
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in found
        if path.name == "RECORD" and path.parent.suffix == ".dist-info"
    }


def _url(distribution: metadata.Distribution) -> str:
    """Return the address that a distribution was installed from; "" for one of an index."""
    try:
        direct_url = msgspec.json.decode(
            distribution.read_text("direct_url.json") or "{}", type=dict[str, object]
        )
    except (OSError, ValueError):
        return ""
    return str(direct_url.get("url", ""))


def _copied(source: str, target: str, *, links: bool, programs: bool) -> None:
    """Copy a folder by hard links; symbolic links stay what they are."""
    os.makedirs(target)  # noqa: PTH103  # hot: a large environment has 100,000 files
    with os.scandir(source) as entries:
        for entry in entries:
            there = f"{target}{os.sep}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                _copied(entry.path, there, links=links, programs=programs)
                continue
            written = entry.name.endswith(_WRITTEN_INTO)
            small = programs and entry.stat(follow_symlinks=False).st_size < _SMALL_PROGRAM
            linked = links and not written and not small and not entry.is_symlink()
            if not (linked and _linked(entry.path, there)):
                shutil.copy2(entry.path, there, follow_symlinks=False)


def _linked(source: str, target: str) -> bool:
    """Whether a link could be made; the kernel refuses one to a file of another user."""
    try:
        os.link(source, target)
    except OSError:
        return False
    return True


def _seen(root: Path) -> Seen:
    return dict(_each(str(root), len(str(root)) + 1))


def _each(folder: str, cut: int) -> Iterator[tuple[str, tuple[int, int]]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _each(entry.path, cut)
            elif not entry.name.endswith(".pyc"):  # Python writes them whenever it likes
                info = entry.stat(follow_symlinks=False)
                yield entry.path[cut:], (info.st_size, info.st_mtime_ns)


def _put_back(entry: Path, live: Path, away: Path) -> None:
    """Put an entry of the copy in its place; a file takes it in one step."""
    is_folder = entry.is_dir() and not entry.is_symlink()
    if os.path.lexists(live) and (is_folder or (live.is_dir() and not live.is_symlink())):
        _move_away(live, away)
    entry.replace(live)


def _move_away(entry: Path, away: Path) -> None:
    number = 0
    while os.path.lexists(there := away / f"{entry.name}.{number}"):
        number += 1
    entry.rename(there)
    if not stat.S_ISDIR(there.lstat().st_mode):
        there.unlink()
