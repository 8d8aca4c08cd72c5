"""Judges the content of one project file: of which kind it is, and as it is used."""

import functools
import itertools
import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from gpucheck.describe.files import (
    build_rules,
    dependencies,
    described,
    dockerfile,
    image_rules,
    job_files,
    package_pins,
)
from gpucheck.describe.files.builds import FAMILY
from gpucheck.describe.files.complaint import Complaint, FileTarget
from gpucheck.describe.files.model import ASSUMED, KNOWN, UNKNOWN, Image, Install, Project, Workload
from gpucheck.describe.files.text import Node, UnreadableError, documents, text_of
from gpucheck.facts.claims import Severity
from gpucheck.language import say
from gpucheck.tables import Tables

# Which kind a project file is, by its name and its content.

# Bounds such as {0,200} are above what people write, and keep a search in a hostile file linear.
# The first that fits counts. YAML files and scripts may be anything: their content decides as well.
_BY_NAME: tuple[tuple[str, Callable[[str], Project]], ...] = (
    (r"(?:.{1,80}\.)?(?:dockerfile|containerfile)(?:[._-].{1,80})?", dockerfile.read),
    (
        r"(?:.{0,80}[-_.])?(?:requirements?|constraints?)(?:[-_.].{0,80})?\.(?:txt|in)",
        dependencies.read_requirements,
    ),
    (r"pyproject\.toml", dependencies.read_pyproject),
    (r"pixi\.toml", dependencies.read_pixi),
    (r"uv\.lock", dependencies.read_uv_lock),
)
_YAML = r".{1,200}\.ya?ml"
_SCRIPT = r".{1,200}\.(?:sbatch|slurm|sh|batch|job)"
_KIND = re.compile(r"^kind:[ \t]{0,20}[\"']?([A-Za-z]{1,40})\b", re.MULTILINE)
_SERVICES = re.compile(r"^services:[ \t]{0,20}(?:#.{0,300})?$", re.MULTILINE)
_DEPENDENCIES = re.compile(r"^dependencies:[ \t]{0,20}(?:#.{0,300})?$", re.MULTILINE)
# A word of its name or of its folder's: for another accelerator, for none, or documentation.
_NOT_NVIDIA = re.compile(
    r"(?:^|[^a-z])(?:cpu|rocm|amd|xpu|intel|hpu|gaudi|neuron|tpu|npu|ascend|mps|metal|dcu|mlu|gcu"
    r"|musa|docs?)(?:[^a-z]|$)"
)


def project_of(name: str, text: str) -> Project | None:
    """Return what a file says; None if it is of no kind that is known.

    Args:
        name: the path of the file.
        text: its content.

    Raises:
        UnreadableError: it is of a kind that is known, but damaged.
    """
    parts = name.lower().replace("\\", "/").split("/")
    found = _kinds_read(parts[-1][:200], text)
    if found is None or not any(_NOT_NVIDIA.search(part[:200]) for part in parts[-2:]):
        return found
    return Project(
        kind=found.kind, installs=found.installs, stages=found.stages,
        workloads=found.workloads, batches=found.batches, not_for_nvidia=True,
    )  # fmt: skip


def _kinds_read(base: str, text: str) -> Project | None:
    for pattern, read in _BY_NAME:
        if re.fullmatch(pattern, base):
            return read(text)
    if re.fullmatch(_YAML, base):
        return _of_yaml(base, text)
    if job_files.is_batch_script(text) and (re.fullmatch(_SCRIPT, base) or text.startswith("#!")):
        return job_files.read_sbatch(text)
    return None


def _of_yaml(base: str, text: str) -> Project | None:
    if "{{" in text or "{%" in text:
        return None  # a template: what it becomes is not known
    if _SERVICES.search(text) and "compose" in base:
        return _with_documents(job_files.read_compose, text)
    if any(found[1] in job_files.KINDS for found in _KIND.finditer(text)):
        return _with_documents(job_files.read_kubernetes, text)
    if _DEPENDENCIES.search(text) and not re.search(r"^apiVersion:", text, re.MULTILINE):
        return _with_documents(dependencies.read_conda_env, text)
    return None


def _with_documents(read: Callable[[list[Node]], Project], text: str) -> Project | None:
    nodes = documents(text)
    return read(nodes) if nodes else None


# A file as it is used: Compose merges services of several files, kustomize patches manifests.

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
    maybe = "" if _FOR_GPUS.search(base) else _composed_for_gpus(folder, named)
    return Beside(files=tuple(files), maybe=maybe, readable=True)


def _first_of(names: Sequence[str], folder: str) -> str:
    for name in names:
        if os.path.lexists(os.path.join(folder, name)):  # noqa: PTH118
            return name
    return ""


def _composed_for_gpus(folder: str, named: Sequence[str]) -> str:
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


# Judges the content of one project file.

_MOST = 200
"""Of one file: more help nobody."""
_MOST_REASONS = 10  # chosen: a screen; each says what is not judged, and the first suffice to know
_ALONE = Beside()


class Linted(msgspec.Struct, frozen=True, kw_only=True):
    """The faults of a file; ``kind`` is "" if it is of no kind that is known."""

    kind: str
    complaints: tuple[Complaint, ...] = ()
    unjudged: tuple[str, ...] = ()
    """What is not judged, and why."""


def lint(
    name: str, data: bytes, target: FileTarget, tables: Tables, beside: Beside = _ALONE
) -> Linted:
    """Judge a file by its name and content, together with the files that are merged with it.

    Raises:
        UnreadableError: it cannot be read.
    """
    project = _project(name, data)
    if project is None:
        return Linted(kind="")
    project, beside = _together(project, beside)
    found: dict[tuple[int, str, str], Complaint] = {}
    for complaint in (
        *build_rules.cpu_build_complaints(project, target, tables),
        *build_rules.indexes_complaints(project, target),
        *image_rules.driver_complaints(project, target, tables),
        *described.complaints(project, target, tables),
        *package_pins.complaints(project, target, tables),
        *image_rules.compiler_complaints(project, tables),
        *image_rules.workloads_complaints(project),
    ):
        found.setdefault((complaint.line, complaint.rule, str(complaint.sentence)), complaint)
    order = list(Severity)
    ranked = sorted(
        found.values(),
        key=lambda complaint: (complaint.line, order.index(complaint.severity), complaint.rule),
    )
    return Linted(
        kind=project.kind,
        complaints=tuple(ranked[:_MOST]),
        unjudged=tuple(dict.fromkeys(_unjudged(project, beside, target)))[:_MOST_REASONS],
    )


def _project(name: str, data: bytes) -> Project | None:
    found = _read(name, data)
    if isinstance(found, UnreadableError):
        raise found
    return found


@functools.lru_cache(maxsize=16)  # chosen: the files of one project; more would hold their text
def _read(name: str, data: bytes) -> Project | UnreadableError | None:
    """Read a file once: each file of a Compose project is judged together with every other."""
    try:
        return project_of(name, text_of(data))
    except UnreadableError as error:
        return error


def _together(project: Project, beside: Beside) -> tuple[Project, Beside]:
    """Merge the files of a Compose project; one that cannot be read may say anything."""
    others = []
    for name, data in beside.files:
        try:
            other = _project(name, data)
        except UnreadableError:
            other = None
        if other is None:
            beside = Beside(maybe=name)
        else:
            others.append(other)
    return merged(project, others, beside), beside


def _unjudged(project: Project, beside: Beside, target: FileTarget) -> Iterator[str]:
    """Yield a sentence for each reason."""
    places = [
        (stage.line, stage.machine)
        for stage in project.stages
        if any(_has_torch(install) for install in stage.installs)
    ]
    if not project.stages:
        places = [
            (install.line, install.machine) for install in project.installs if _has_torch(install)
        ]
    for line, machine in places:
        if machine == UNKNOWN:
            yield say(
                "Line {line} leaves the platform to the build: what is wrong on x86_64 or on "
                "aarch64 alone is not reported.",
                line=line,
            )
        elif machine and machine not in KNOWN:
            yield say(
                "The tables have no builds of PyTorch for the platform of line {line}, {machine}: "
                "what depends on the platform is not judged.",
                line=line,
                machine=machine,
            )
    if target.gpus:
        yield from _images(project)
    lacking = [
        workload
        for workload in project.workloads
        if workload.asks_for_gpu is None and _for_gpus(workload.image)
    ]
    if beside.maybe and lacking:
        yield _about(beside)


def _has_torch(install: Install) -> bool:
    return any(pin.name in FAMILY for pin in install.pins)


def _for_gpus(image: Image | None) -> bool:
    return image is not None and image.for_gpus


def _images(project: Project) -> Iterator[str]:
    started = [(stage.image, stage.machine) for stage in project.stages if stage.final]
    started += [(workload.image, workload.machine) for workload in project.workloads]
    for image, machine in started:
        if image is not None and image.torch and machine not in ("", ASSUMED):
            yield say(
                "The tables know only what {image} has on x86_64, so it is not judged for the GPU.",
                image=image.reference,
            )


def _about(beside: Beside) -> str:
    if beside.readable:
        return say(
            "{file} may give these services their GPUs. Name both files, and they are judged "
            "together.",
            file=beside.maybe,
        )
    return say(
        "{file} may add the GPUs that nothing here asks for, so that is not judged.",
        file=beside.maybe,
    )
