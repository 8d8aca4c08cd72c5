"""The journal of a run: a file that is written before and after every step, and survives us."""

import contextlib
import os
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
