"""Which installs of a file are judged."""

from gpucheck.describe.files.builds import FAMILY
from gpucheck.describe.files.machines import machines_of
from gpucheck.describe.files.model import Install, Project
from gpucheck.describe.files.rules.complaint import Target
from gpucheck.tables import Tables
from gpucheck.tables.gpu_products import GpuProducts

_MOST = 200
"""Of one file: nobody writes more by hand, and each costs several judgements."""


def certain_installs(project: Project) -> list[Install]:
    """Return the installs that every build runs."""
    return [one for one in project.installs if not one.conditional][:_MOST]


def final_installs(project: Project) -> list[Install]:
    """Return the installs that decide which PyTorch there is in the end.

    If several install PyTorch, or one may, what is left in the end is not certain.
    """
    if project.kind != "dockerfile":
        return certain_installs(project)
    found = [one for stage in project.stages if stage.in_final for one in stage.installs]
    of_torch = [one for one in found if any(pin.name in FAMILY for pin in one.pins)]
    return [one for one in of_torch if not one.conditional] if len(of_torch) == 1 else []


def machines_for(
    said: str, target: Target, tables: Tables, gpu: str | None = None
) -> tuple[str, ...]:
    """Return the processors for which a part of a file is judged.

    Where the file says none, it is the one that the GPU, or a GPU of the target, is sold with.
    """
    products = tables.get(GpuProducts)
    gpus = target.gpus if gpu is None else (gpu,)
    return machines_of(said, next((one for of in gpus if (one := products.processor(of))), None))
