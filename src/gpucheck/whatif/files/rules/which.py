"""Which installs of a file are judged."""

from gpucheck.whatif.files.builds import FAMILY
from gpucheck.whatif.files.model import Install, Project

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
