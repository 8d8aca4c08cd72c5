"""Installed distributions that are relevant to PyTorch, from their metadata."""

from typing import Annotated, ClassVar

from gpucheck.facts import Facts, Notes, Private, Section
from gpucheck.host import Host
from gpucheck.probes import _conda, _dist_info
from gpucheck.probes._dist_info import DistInfo
from gpucheck.probes._requirements import torch_requirement
from gpucheck.probes.interpreter import Interpreter
from gpucheck.tables.known_packages import KnownPackages

DEADLINE = 5.0
LANE = "target"

_STARTS = ("nvidia-", "cuda-", "torch", "pytorch-", "triton")
"""In addition to the packages of the table: CUDA's own, and names that begin with torch."""
_CUDAS_OWN = ("nvidia-", "cuda-")
_SAY_NOTHING = frozenset(("torch", "numpy"))
"""Distributions whose requirement of torch is not needed."""
_CONDA_STARTS = ("pytorch", "torch", "libtorch", "cuda", "cudnn", "nccl", "triton", "libcu",
                 "libnv", "numpy", "python", "mkl", "magma", "libcudnn", "nvidia")  # fmt: skip
_MOST = 1000


class Distribution(Facts, frozen=True, kw_only=True):
    """One installed distribution."""

    project: str | None = None
    """Normalised name: ``torchvision``, ``nvidia-cudnn-cu12``."""
    version: str | None = None
    location: Annotated[str | None, Private("path")] = None
    installer: str | None = None
    torch_requirement: str | None = None
    """Its requirement of torch, such as ``==2.6.0``; "" if it states none."""


class Packages(Section, frozen=True, kw_only=True):
    """Distributions of the target, in the order found; one project may occur twice."""

    name: ClassVar[str] = "packages"

    distributions: list[Distribution] | None = None
    conda_packages: list[str] | None = None
    """``name version build channel`` of conda's relevant packages; [] without conda."""

    def find(self, project: str) -> Distribution | None:
        """Return the distribution that an import would take, None if it is not installed."""
        return next((d for d in self.distributions or () if d.project == project), None)


def collect(host: Host, interpreter: Interpreter, known: KnownPackages) -> Packages:
    """Read the names of the metadata folders, and the metadata of a few distributions."""
    if interpreter.sys_path is None:
        why = interpreter.problem("sys_path") or "the target interpreter is unknown"
        return Packages(problems={"*": why})
    notes = Notes()
    notes.said("distributions", "sys.path of the target")
    notes.said("conda_packages", f"{interpreter.prefix}: conda-meta")
    infos = _dist_info.dist_infos(host, interpreter.sys_path)
    return Packages(
        distributions=[_distribution(host, one) for one in infos if _matters(one.project, known)][
            :_MOST
        ],
        conda_packages=_conda_packages(host, interpreter.prefix),
        sources=notes.sources,
        problems=notes.problems,
    )


def _matters(project: str, known: KnownPackages) -> bool:
    return project.startswith(_STARTS) or known.known(project) is not None


def _distribution(host: Host, info: DistInfo) -> Distribution:
    notes = Notes()
    notes.said("*", info.path)
    requirement: str | None = None
    version = info.version or None
    if version is None or not (info.project in _SAY_NOTHING or info.project.startswith(_CUDAS_OWN)):
        lines = _dist_info.header(host, info)
        required = lines.map(
            lambda said: torch_requirement(_dist_info.values(said, "Requires-Dist")) or ""
        )
        requirement = notes.take("torch_requirement", required)
        written = lines.map(lambda said: "".join(_dist_info.values(said, "Version")[:1]) or None)
        version = version or notes.take("version", written)
    else:
        notes.unknown("torch_requirement", "its metadata is not read")
    return Distribution(
        project=info.project,
        version=version,
        location=info.entry,
        installer=notes.take("installer", _dist_info.installer(host, info)),
        torch_requirement=requirement,
        sources=notes.sources,
        problems=notes.problems,
    )


def _conda_packages(host: Host, prefix: str | None) -> list[str]:
    found = []
    for record in _conda.conda_records(host, prefix):
        if record.project.startswith(_CONDA_STARTS):
            channel = _conda.channel(host, record).value or ""
            words = (record.project, record.version, record.build, channel)
            found.append(" ".join(words).rstrip())
    return found[:_MOST]
