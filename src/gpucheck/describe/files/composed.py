"""A file as it is used: Compose merges services of several files, kustomize patches manifests."""

import itertools
import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import msgspec

from gpucheck.describe.files.model import Project, Workload
from gpucheck.describe.files.text import UnreadableError

_COMPOSE = re.compile(r".{0,80}compose.{0,80}\.ya?ml", re.IGNORECASE)
_BASES = ("compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml")
_OVERRIDES = (
    "compose.override.yml", "compose.override.yaml",
    "docker-compose.override.yml", "docker-compose.override.yaml",
)  # fmt: skip
"""In the order in which Docker looks for them; it takes the first."""
# As a word of the name: "gpustat" or "cudaless" say nothing.
_FOR_GPUS = re.compile(r"(?:^|[^a-z])(?:gpus?|cuda|nvidia)(?:[^a-z]|$)", re.IGNORECASE)
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_MOST_NAMES = 5000  # chosen: a folder with more is no project's; only a note depends on it
_MOST_FILES = 10
"""More than anybody merges; each is read once for every other."""

_Read = Callable[[str], bytes]


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """What is used together with a file, or may be."""

    files: tuple[tuple[str, bytes], ...] = ()
    """The name and content of files that are merged with it."""
    maybe: str = ""
    """The name of a file that is not merged and may ask for GPUs."""
    readable: bool = False
    """Whether ``maybe`` would be merged if it was named."""


def merged(project: Project, others: Sequence[Project], beside: Beside) -> Project:
    """Return the services as they are once the same services of the other files are added.

    A further file may ask for GPUs. One that cannot be read may give shared memory as well.
    """
    found = []
    unread = project.kind == "compose" and bool(beside.maybe) and not beside.readable
    by_name: dict[str, list[Workload]] = {}
    for other in others:
        for workload in other.workloads if other.kind == "compose" else ():
            by_name.setdefault(workload.name, []).append(workload)
    for workload in project.workloads:
        whole = _whole(
            workload, by_name.get(workload.name, []) if project.kind == "compose" else []
        )
        if not whole.complete:
            continue
        if beside.maybe:
            whole = msgspec.structs.replace(
                whole,
                asks_for_gpu=whole.asks_for_gpu or None,
                shared_memory=whole.shared_memory or unread,
            )
        found.append(whole)
    return msgspec.structs.replace(project, workloads=tuple(found))


def _whole(workload: Workload, alike: Sequence[Workload]) -> Workload:
    """Return a service with what the others add; with two images nobody knows which one runs."""
    every = (workload, *alike)
    images = {two.image.reference for two in every if two.image is not None}
    return msgspec.structs.replace(
        workload,
        asks_for_gpu=any(two.asks_for_gpu for two in every),
        gpus=next((two.gpus for two in reversed(every) if two.gpus is not None), None),
        shared_memory=any(two.shared_memory for two in every),
        machine=next((two.machine for two in every if two.machine), ""),
        complete=all(two.complete for two in every) and len(images) < 2,  # noqa: PLR2004
    )


def compose_files(files: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """Return those of the files that Compose may merge, by their folders."""
    found = defaultdict(list)
    for file in files:
        folder, base = os.path.split(file)
        if _COMPOSE.fullmatch(base):
            found[os.path.abspath(folder)].append(file)  # noqa: PTH100  # no link is followed
    return found


def beside(file: str, given: Mapping[str, Sequence[str]], read: _Read) -> Beside:
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
