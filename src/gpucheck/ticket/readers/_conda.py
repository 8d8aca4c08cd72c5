"""A package as conda names it: ``pytorch 2.0.1 py3.10_cuda11.7_cudnn8.5.0_0 pytorch``.

The build string shows what torch was made for; ``pytorch-mutex`` has it in one word.
"""

import re

from gpucheck.facts.torch import Packages, TorchBuild
from gpucheck.log_patterns.text import Line
from gpucheck.tables.versions import minor
from gpucheck.ticket.readers import _said as said
from gpucheck.ticket.readers.base import Machine

_OF_PIP = "pypi"
# Of a build: py3.10_cuda11.8_cudnn8.7.0_0, or cuda118 of conda-forge.
_CUDA = re.compile(r"(?:^|_)(?:cuda|gpu_cuda|cu)_?(\d{1,2}\.\d|\d{3})")
_CPU = re.compile(r"(?:^|_)cpu")
_MATTERS = ("torch", "cud", "nccl", "magma", "numpy", "triton", "nvidia", "libtorch")
_TORCH = ("pytorch", "pytorch-gpu", "pytorch-cpu", "libtorch")


def read_conda_package(cells: list[str], line: Line, machine: Machine) -> None:
    """Take name, version, build and channel; a package from PyPI belongs to pip."""
    name, version = cells[0].lower(), cells[1]
    build = cells[2] if len(cells) > 2 else ""  # noqa: PLR2004  # the third cell
    if cells[-1] == _OF_PIP or build.startswith(_OF_PIP):
        said.package(name, version, line, machine)
        return
    if not version[:1].isdecimal():
        return
    if any(word in name for word in _MATTERS):
        machine.add(Packages, "conda_packages", " ".join(cells[:4]), line)
    if name in _TORCH:
        said.torch_version(version, line, machine)
        machine.fill(TorchBuild, "installer", "conda", line)
        _built_for(build, line, machine)
    elif name == "pytorch-mutex":
        _built_for(build if build != "cuda" else "", line, machine)
    elif name in ("torchvision", "torchaudio", "numpy"):
        said.package(name, version, line, machine)


def _built_for(build: str, line: Line, machine: Machine) -> None:
    cuda = _CUDA.search(build)
    if cuda is not None:
        version = cuda[1] if "." in cuda[1] else minor(f"cu{cuda[1]}")
        machine.fill(TorchBuild, "built_for", "cuda", line)
        if version is not None:
            machine.fill(TorchBuild, "cuda", version, line)
    elif _CPU.search(build):
        machine.fill(TorchBuild, "built_for", "cpu", line)
        machine.fill(TorchBuild, "cuda", "", line)
