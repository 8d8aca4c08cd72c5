"""Judges the content of one project file."""

import functools

import msgspec

from gpucheck.describe.files.composed import Beside, merged
from gpucheck.describe.files.kinds import project_of
from gpucheck.describe.files.model import Project
from gpucheck.describe.files.rules import (
    compiler,
    cpu_build,
    described,
    driver,
    indexes,
    package_pins,
    workloads,
)
from gpucheck.describe.files.rules.complaint import Complaint, Target
from gpucheck.describe.files.text import UnreadableError, text_of
from gpucheck.describe.files.unjudged import unjudged
from gpucheck.facts.claims import Severity
from gpucheck.tables import Tables

_MOST = 200
"""Of one file: more help nobody."""
_MOST_REASONS = 10
_ALONE = Beside()


class Linted(msgspec.Struct, frozen=True, kw_only=True):
    """The faults of a file; ``kind`` is "" if it is of no kind that is known."""

    kind: str
    complaints: tuple[Complaint, ...] = ()
    unjudged: tuple[str, ...] = ()
    """What is not judged, and why."""


def lint(name: str, data: bytes, target: Target, tables: Tables, beside: Beside = _ALONE) -> Linted:
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
        unjudged=tuple(dict.fromkeys(unjudged(project, beside, target)))[:_MOST_REASONS],
    )


def _project(name: str, data: bytes) -> Project | None:
    found = _read(name, data)
    if isinstance(found, UnreadableError):
        raise found
    return found


@functools.lru_cache(maxsize=16)
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
