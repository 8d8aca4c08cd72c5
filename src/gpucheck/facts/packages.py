"""Installed distributions that matter to PyTorch."""

from typing import Annotated, ClassVar

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say


class Distribution(Facts, frozen=True, kw_only=True):
    """One installed distribution."""

    project: str | None = None
    """Normalised name: ``torchvision``, ``nvidia-cudnn-cu12``."""
    version: str | None = None
    location: Annotated[str | None, Private("path")] = None
    installer: str | None = None
    torch_requirement: str | None = None
    """Its requirement of torch, such as ``==2.6.0``; "" if it states none."""
    requirements: dict[str, str] | None = None
    """The versions that its metadata requires of torch, NumPy, Triton, CUDA's wheels and other
    packages of this section, by project; requirements that this target does not have are left out.
    """


class Packages(Section, frozen=True, kw_only=True):
    """Distributions of the target, in the order of sys.path; a project may occur twice."""

    name: ClassVar[str] = "packages"
    subject = say("Installed distributions that matter to PyTorch.")

    distributions: list[Distribution] | None = None
    conda_packages: Annotated[list[str] | None, Private("conda")] = None
    """``name version build channel`` of conda's relevant packages; [] without conda."""

    def find(self, project: str) -> Distribution | None:
        """Return the distribution that an import would take, None if it is not installed."""
        return next((d for d in self.distributions or () if d.project == project), None)
