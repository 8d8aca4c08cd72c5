"""What a rule says about a line of a file, and which installs of it are judged."""

import msgspec

from gpucheck.describe.files.builds import FAMILY
from gpucheck.describe.files.model import Install, Project, machines_of
from gpucheck.facts.claims import Severity
from gpucheck.tables import Tables
from gpucheck.tables.gpus import GpuProducts

# What a rule says about a line of a file, and what the files are meant for.


class Complaint(msgspec.Struct, frozen=True, kw_only=True):
    """A fault in a line; ``rule`` is a finding's slug if there is one for it."""

    line: int
    severity: Severity
    rule: str
    sentence: str
    fix: str = ""


class FileTarget(msgspec.Struct, frozen=True, kw_only=True):
    """What the user says about the machine that the files are for; empty means unknown."""

    gpus: tuple[str, ...] = ()
    driver: str = ""
    python: str = ""


# Which installs of a file are judged.

_MOST = 200
"""Of one file: nobody writes more by hand, and each costs several judgements."""


def certain_installs(project: Project) -> list[Install]:
    """Return the installs that every build runs."""
    return [install for install in project.installs if not install.conditional][:_MOST]


def final_installs(project: Project) -> list[Install]:
    """Return the installs that decide which PyTorch there is in the end.

    If several install PyTorch, or one may, what is left in the end is not certain.
    """
    if project.kind != "dockerfile":
        return certain_installs(project)
    found = [install for stage in project.stages if stage.in_final for install in stage.installs]
    of_torch = [install for install in found if any(pin.name in FAMILY for pin in install.pins)]
    return (
        [install for install in of_torch if not install.conditional] if len(of_torch) == 1 else []
    )


def machines_for(
    declared: str, target: FileTarget, tables: Tables, gpu: str | None = None
) -> tuple[str, ...]:
    """Return the processors for which a part of a file is judged.

    Where the file says none, it is the one that the GPU, or a GPU of the target, is sold with.
    """
    products = tables.get(GpuProducts)
    gpus = target.gpus if gpu is None else (gpu,)
    return machines_of(
        declared, next((machine for of in gpus if (machine := products.processor(of))), None)
    )
