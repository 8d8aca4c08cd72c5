"""``python -m torch.utils.collect_env`` of every generation, and reports with the same labels.

These include issue forms ("PyTorch Version (e.g., 1.0): 1.2"), ``vllm collect-env``, and the tables
of mmcv, mmengine and sglang. "CUDA runtime version" in them is that of nvcc. "Could not collect"
means unknown, not absent.
"""

import re
from collections.abc import Callable

from gpucheck.facts.driver import Nvml
from gpucheck.language import say
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.readers import _fields as fields
from gpucheck.ticket.readers._fields import (
    is_unknown,
    read_conda_package,
    read_platform,
    read_system,
    split_label,
)
from gpucheck.ticket.readers.base import Machine

NAME = "collect_env"
MARKS = (
    "pytorch version", "cuda used to build pytorch", "is cuda available", "cuda runtime version",
    "nvidia driver version", "cuda available", "python platform", "cuda driver version",
    "gpu models and configuration", "lightning:", "pytorch: ",
)  # fmt: skip

_GPU = re.compile(r"GPU ?(\d{1,3}(?:,\s?\d{1,3}){0,63})\s?: (\S.{0,100})")
_PIP = re.compile(r"\[(pip\d?|conda)\] (\S.{1,120})")
_PINNED = re.compile(r"([A-Za-z][\w.-]{0,80})(?:==| \(|\s{1,60})(\d[\w.+!-]{0,60})")
_NO_NAMES = ("compute", "could not", "n/a", "none", "uuid", "mib")
_MOST_GPUS = 64  # chosen: above any machine; a damaged list must end


def read(text: Text, machine: Machine) -> None:
    """Read every labelled line, wherever it is."""
    for index, line in enumerate(text.lines):
        label, value = split_label(line.text)
        reader = _LABELS.get(label)
        if reader is not None:
            reader(value, line, machine)
            if label in _GPU_LABELS and not value:
                _gpus_below(text, index, machine)
        elif label.startswith("gpu") or "[" in line.text[:8]:
            _other(line, machine)


def _torch_version(value: str, line: Line, machine: Machine) -> None:
    """``2.1.0``; Hugging Face's tools print ``PyTorch version (GPU?): 1.12.1+cu116 (False)``."""
    fields.torch_version(value, line, machine)
    if value.endswith(("(True)", "(CUDA)")):
        fields.cuda_available("true", line, machine)
    elif value.endswith("(False)"):
        fields.cuda_available("false", line, machine)


def _gpus(value: str, line: Line, machine: Machine) -> None:
    """Read one GPU after the label; several GPUs follow on the lines below."""
    if is_unknown(value):
        if value:
            machine.unknown(Nvml, "gpus", say("{source}: {why}", source=line.source, why=value))
        return
    found = _GPU.match(value)
    if found is not None:
        _name_gpus(found, line, machine)


def _gpus_below(text: Text, index: int, machine: Machine) -> None:
    for line in text.after(index, _MOST_GPUS):
        found = _GPU.search(line.text)
        if found is not None:
            _name_gpus(found, line, machine)
        elif line.text.strip():
            break


def _name_gpus(found: re.Match[str], line: Line, machine: Machine) -> None:
    name = found[2].partition(" (UUID")[0]
    for number in found[1].split(","):
        fields.gpu(int(number), name, line, machine)


def _other(line: Line, machine: Machine) -> None:
    """Read a GPU line of its own (mmcv, sglang), or a line of the package list."""
    plain = line.text.strip(" -*`")
    found = _PIP.match(plain)
    if found is not None:
        cells = found[2].split()
        if found[1] == "conda" and len(cells) > 1:
            read_conda_package(cells, line, machine)
            return
        pinned = _PINNED.match(found[2])
        if pinned is not None:
            fields.package(pinned[1], pinned[2], line, machine)
        return
    found = _GPU.match(plain)
    if found is not None and not found[2].lower().startswith(_NO_NAMES):
        _name_gpus(found, line, machine)


def _companion(project: str) -> Callable[[str, Line, Machine], None]:
    def take(value: str, line: Line, machine: Machine) -> None:
        found = fields.VERSION.match(value)
        if found is not None:
            fields.package(project, found[1], line, machine)

    return take


_GPU_LABELS = ("gpu models and configuration",)
_LABELS: dict[str, Callable[[str, Line, Machine], None]] = {
    "pytorch version": _torch_version,
    "pytorch version (gpu?)": _torch_version,
    "pytorch version (accelerator?)": _torch_version,
    "torch version": _torch_version,
    "torch": _torch_version,
    "pytorch": _torch_version,
    "cuda used to build pytorch": fields.torch_cuda,
    "rocm used to build pytorch": fields.torch_hip,
    "is cuda available": fields.cuda_available,
    "cuda available": fields.cuda_available,
    "cuda runtime version": fields.toolkit,
    "nvcc": fields.toolkit,
    "nvidia driver version": fields.driver_release,
    "cuda driver version": fields.driver_release,
    "gpu models and configuration": _gpus,
    "python version": fields.python_version,
    "python": fields.python_version,
    "python platform": read_platform,
    "platform": read_platform,
    "os": read_system,
    "libc version": fields.libc,
    "gcc version": fields.gcc,
    "gcc": fields.gcc,
    "torchvision": _companion("torchvision"),
    "torchvision version": _companion("torchvision"),
    "torchaudio": _companion("torchaudio"),
    "numpy": _companion("numpy"),
    "numpy version": _companion("numpy"),
    "triton": _companion("triton"),
}
