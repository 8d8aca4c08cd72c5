"""Judges the content of one project file."""

import msgspec

from gpucheck.facts.claims import Severity
from gpucheck.tables import Tables
from gpucheck.whatif.files.kinds import project_of
from gpucheck.whatif.files.rules import (
    compiler,
    cpu_build,
    described,
    driver,
    indexes,
    workloads,
)
from gpucheck.whatif.files.rules.complaint import Complaint, Target
from gpucheck.whatif.files.text import text_of

_MOST = 200
"""Of one file: more help nobody."""


class Linted(msgspec.Struct, frozen=True, kw_only=True):
    """The faults of a file; ``kind`` is "" if it is of no kind that is known."""

    kind: str
    complaints: tuple[Complaint, ...] = ()


def lint(name: str, data: bytes, target: Target, tables: Tables) -> Linted:
    """Judge a file by its name and content.

    Raises:
        UnreadableError: it cannot be read.
    """
    project = project_of(name, text_of(data))
    if project is None:
        return Linted(kind="")
    found: dict[tuple[int, str, str], Complaint] = {}
    for one in (
        *cpu_build.complaints(project, target, tables),
        *indexes.complaints(project, target),
        *driver.complaints(project, target, tables),
        *described.complaints(project, target, tables),
        *compiler.complaints(project, tables),
        *workloads.complaints(project),
    ):
        found.setdefault((one.line, one.rule, str(one.sentence)), one)
    order = list(Severity)
    ranked = sorted(found.values(), key=lambda one: (one.line, order.index(one.severity), one.rule))
    return Linted(kind=project.kind, complaints=tuple(ranked[:_MOST]))
