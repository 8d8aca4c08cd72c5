"""Installed distributions that are relevant to PyTorch, from their metadata."""

from gpucheck.facts import Notes
from gpucheck.facts.interpreter import Interpreter
from gpucheck.facts.packages import Distribution, Packages
from gpucheck.machine import Host
from gpucheck.probes.torch.reading import conda, dist_info
from gpucheck.probes.torch.reading.dist_info import DistInfo
from gpucheck.probes.torch.reading.requirements import torch_requirement
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


def collect(host: Host, interpreter: Interpreter, known: KnownPackages) -> Packages:
    """Read the names of the metadata folders, and the metadata of a few distributions."""
    if interpreter.sys_path is None:
        why = interpreter.problem("sys_path") or "the target interpreter is unknown"
        return Packages(problems={"*": why})
    notes = Notes()
    notes.said("distributions", "sys.path of the target")
    notes.said("conda_packages", f"{interpreter.prefix}: conda-meta")
    infos = dist_info.dist_infos(host, interpreter.sys_path)
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
        lines = dist_info.header(host, info)
        required = lines.map(
            lambda said: torch_requirement(dist_info.values(said, "Requires-Dist")) or ""
        )
        requirement = notes.take("torch_requirement", required)
        written = lines.map(lambda said: "".join(dist_info.values(said, "Version")[:1]) or None)
        version = version or notes.take("version", written)
    else:
        notes.unknown("torch_requirement", "its metadata is not read")
    return Distribution(
        project=info.project,
        version=version,
        location=info.entry,
        installer=notes.take("installer", dist_info.installer(host, info)),
        torch_requirement=requirement,
        sources=notes.sources,
        problems=notes.problems,
    )


def _conda_packages(host: Host, prefix: str | None) -> list[str]:
    found = []
    for record in conda.conda_records(host, prefix):
        if record.project.startswith(_CONDA_STARTS):
            channel = conda.channel(host, record).value or ""
            words = (record.project, record.version, record.build, channel)
            found.append(" ".join(words).rstrip())
    return found[:_MOST]
