"""Installed distributions that matter to PyTorch, from their metadata."""

from typing import Annotated, ClassVar

from gpucheck.facts import Facts, Notes, Private, Section
from gpucheck.host import Host
from gpucheck.probes import _conda, _dist_info
from gpucheck.probes._dist_info import DistInfo
from gpucheck.probes._requirements import parse
from gpucheck.probes.interpreter import Interpreter

DEADLINE = 5.0
LANE = "target"

_STARTS = ("nvidia-", "cuda-", "torch", "pytorch-", "triton", "xformers", "flash-attn", "apex")
_PROJECTS = frozenset(
    {
        "accelerate",
        "bitsandbytes",
        "causal-conv1d",
        "cupy-cuda11x",
        "cupy-cuda12x",
        "cupy-cuda13x",
        "deepspeed",
        "detectron2",
        "dgl",
        "fairscale",
        "flashinfer-python",
        "functorch",
        "gpustat",
        "jax",
        "jaxlib",
        "jax-cuda12-plugin",
        "jax-cuda13-plugin",
        "lightning",
        "mamba-ssm",
        "mmcv",
        "mmcv-full",
        "mmcv-lite",
        "numba",
        "numpy",
        "onnxruntime-gpu",
        "pynvml",
        "pytorch3d",
        "sageattention",
        "sgl-kernel",
        "sglang",
        "spconv-cu120",
        "tensorflow",
        "tensorrt",
        "transformer-engine",
        "transformers",
        "vllm",
    }
)
_READ = frozenset(
    {
        "functorch",
        "torch-tensorrt",
        "torchao",
        "torchaudio",
        "torchcodec",
        "torchdata",
        "torchrec",
        "torchtext",
        "torchvision",
        "vllm",
        "xformers",
    }
)
"""Whose metadata is read for the torch that they require: they are bound to one release."""
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
    """Its requirement of torch, such as ``==2.6.0``; "" when it states none."""


class Packages(Section, frozen=True, kw_only=True):
    """Distributions of the target, first found first; one project may stand there twice."""

    name: ClassVar[str] = "packages"

    distributions: list[Distribution] | None = None
    conda_packages: list[str] | None = None
    """``name version build channel`` of conda's packages that matter; [] without conda."""

    def find(self, project: str) -> Distribution | None:
        """Return the distribution that an import would take, None when it is not installed."""
        return next((d for d in self.distributions or () if d.project == project), None)


def collect(host: Host, interpreter: Interpreter) -> Packages:
    """Read the names of the metadata folders, and the few metadata that matter."""
    if interpreter.sys_path is None:
        why = interpreter.problem("sys_path") or "the target interpreter is unknown"
        return Packages(problems={"*": why})
    notes = Notes()
    notes.said("distributions", "sys.path of the target")
    notes.said("conda_packages", f"{interpreter.prefix}: conda-meta")
    infos = _dist_info.dist_infos(host, interpreter.sys_path)
    return Packages(
        distributions=[_distribution(host, i) for i in infos if _matters(i.project)][:_MOST],
        conda_packages=_conda_packages(host, interpreter.prefix),
        sources=notes.sources,
        problems=notes.problems,
    )


def _matters(project: str) -> bool:
    return project in _PROJECTS or project.startswith(_STARTS)


def _distribution(host: Host, info: DistInfo) -> Distribution:
    notes = Notes()
    notes.said("*", info.path)
    requirement: str | None = None
    version = info.version or None
    if info.project in _READ or version is None:
        lines = _dist_info.header(host, info)
        required = lines.map(
            lambda said: _torch_requirement(_dist_info.values(said, "Requires-Dist"))
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


def _torch_requirement(lines: list[str]) -> str:
    """Return the specifier of torch; extras are another question."""
    for line in lines:
        if not line.lower().startswith("torch"):
            continue
        requirement = parse(line)
        if requirement.project == "torch" and "extra" not in requirement.marker:
            return requirement.specifier
    return ""


def _conda_packages(host: Host, prefix: str | None) -> list[str]:
    found = []
    for record in _conda.conda_records(host, prefix):
        if record.project.startswith(_CONDA_STARTS):
            channel = _conda.channel(host, record).value or ""
            words = (record.project, record.version, record.build, channel)
            found.append(" ".join(words).rstrip())
    return found[:_MOST]
