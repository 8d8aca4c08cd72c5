"""Which files ``gpucheck lint`` has to see beside a file: those that Compose merges with it."""

import itertools
import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from gpucheck.describe.files.composed import Beside
from gpucheck.describe.files.text import UnreadableError

_COMPOSE = re.compile(r".{0,80}compose.{0,80}\.ya?ml", re.IGNORECASE)
_BASES = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")
_OVERRIDES = (
    "compose.override.yml", "compose.override.yaml",
    "docker-compose.override.yml", "docker-compose.override.yaml",
)  # fmt: skip
"""In the order in which Docker looks for them; it takes the first."""
_FOR_GPUS = re.compile(r"(?:^|[^a-z])(?:gpus?|cuda|nvidia)(?:[^a-z]|$)", re.IGNORECASE)
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_MOST_NAMES = 5000
_MOST_FILES = 10
"""More than anybody merges; each is read once for every other."""

Read = Callable[[str], bytes]


def compose_files(files: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return those of the files that Compose may merge, by their folders."""
    found = defaultdict(list)
    for file in files:
        folder, base = os.path.split(file)
        if _COMPOSE.fullmatch(base):
            found[os.path.abspath(folder)].append(file)  # noqa: PTH100  # no link is followed
    return found


def beside(file: str, given: Mapping[str, Sequence[str]], read: Read) -> Beside:
    """Return what is merged with a file: files named with it, and Docker's override file.

    Args:
        file: the file that is judged.
        given: what :func:`compose_files` found among the files of the command line.
        read: returns the content of a file within the limits, or raises OSError or UnreadableError.
    """
    folder, base = os.path.split(file)
    if not base.lower().endswith((".yaml", ".yml")):
        return Beside()
    if not _COMPOSE.fullmatch(base):
        return Beside(maybe=_first_of(_KUSTOMIZATIONS, folder))
    there = given.get(os.path.abspath(folder), ())  # noqa: PTH100  # no link is followed
    named = list(
        itertools.islice((sibling for sibling in there if sibling != file), _MOST_FILES + 1)
    )
    wanted = _OVERRIDES if base in _BASES else _BASES if base in _OVERRIDES else ()
    implied = _first_of(wanted, folder)
    if implied and implied not in [os.path.basename(path) for path in named]:  # noqa: PTH119
        named.append(os.path.join(folder, implied))  # noqa: PTH118  # as the user wrote the folder
    files = []
    if len(named) > _MOST_FILES:
        return Beside(maybe=os.path.basename(named[_MOST_FILES]))  # noqa: PTH119
    for path in named:
        try:
            files.append((os.path.basename(path), read(path)))  # noqa: PTH119
        except (OSError, UnreadableError):
            return Beside(maybe=os.path.basename(path))  # noqa: PTH119
    maybe = "" if _FOR_GPUS.search(base) else _for_gpus(folder, named)
    return Beside(files=tuple(files), maybe=maybe, readable=True)


def _first_of(names: Sequence[str], folder: str) -> str:
    for name in names:
        if os.path.lexists(os.path.join(folder, name)):  # noqa: PTH118
            return name
    return ""


def _for_gpus(folder: str, named: Sequence[str]) -> str:
    """Return the name of a Compose file for GPUs in the folder that is not among these."""
    known = {os.path.basename(path) for path in named}  # noqa: PTH119
    try:
        with os.scandir(folder or ".") as entries:
            names = sorted(entry.name for entry in itertools.islice(entries, _MOST_NAMES))
    except OSError:
        return ""
    return next(
        (
            name
            for name in names
            if _COMPOSE.fullmatch(name) and _FOR_GPUS.search(name) and name not in known
        ),
        "",
    )
