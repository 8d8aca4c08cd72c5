"""Judges the content of one project file."""

import functools
from collections.abc import Iterator

import msgspec

from gpucheck.describe.files.builds import FAMILY
from gpucheck.describe.files.composed import Beside, merged
from gpucheck.describe.files.kinds import project_of
from gpucheck.describe.files.machines import ASSUMED, KNOWN
from gpucheck.describe.files.model import UNKNOWN, Image, Install, Project
from gpucheck.describe.files.rules import (
    compiler,
    cpu_build,
    described,
    driver,
    indexes,
    package_pins,
    workloads,
)
from gpucheck.describe.files.rules.complaint import Complaint, FileTarget
from gpucheck.describe.files.text import UnreadableError, text_of
from gpucheck.facts.claims import Severity
from gpucheck.language import say
from gpucheck.tables import Tables

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
        *cpu_build.complaints(project, target, tables),
        *indexes.complaints(project, target),
        *driver.complaints(project, target, tables),
        *described.complaints(project, target, tables),
        *package_pins.complaints(project, target, tables),
        *compiler.complaints(project, tables),
        *workloads.complaints(project),
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
