"""Environment reports of projects based on torch, and the start-up lines of programs.

``accelerate env``, ``transformers env``, ``diffusers env``; PyTorch Lightning; detectron2's table
of two columns; ``python -m xformers.info``; ``python -m bitsandbytes``; Ultralytics and ComfyUI.
"""

import re
from collections.abc import Callable

from gpucheck.facts.driver import Nvml
from gpucheck.language import say
from gpucheck.log_patterns.text import Line, Text
from gpucheck.ticket.readers import _fields as fields
from gpucheck.ticket.readers._fields import is_unknown, split_label
from gpucheck.ticket.readers.base import Machine

NAME = say("environment report of a project")
MARKS = (
    "gpu type:", "accelerator:", "pytorch_version:", "lightning:", "gpu available", "gpu name:",
    "pytorch.version", "gpu.compute_capability", "capability among", "settings found", "cudaspecs(",
    "yolov", "ultralytics ", "torch 1", "torch 2", "nvcc architecture flags",
    "pytorch compiling details",
    "device: cuda:", "total vram", "bitsandbytes v", 'torch_version"',
)  # fmt: skip

_COLUMNS = re.compile(r"^([A-Za-z][\w ().]{1,40}?)\s{2,40}(\S.{0,200})$")
_TABLE_GPU = re.compile(
    r"^GPU (\d{1,3}(?:,\d{1,3}){0,31})\s{2,40}(\S.{0,80}?)(?: \(arch=(\d{1,2}\.\d)\))?$"
)
_BANNER = re.compile(
    r"torch[- ](\d\.\d{1,2}[\w.+]{0,20}) (?:(CPU)\b|CUDA:\d{1,2} "
    r"\((\S.{0,60}?), \d{1,7}(?:\.\d)?Mi?B)"
)
_STATED = re.compile(
    r"(?:INFO[\s:]{1,8})?(?:Py)?Torch "
    r"(\d\.\d{1,2}\.\d{1,2}\+(?:cpu|cu\d{2,3}|rocm[\d.]{1,5}|xpu))\s*$",
    re.IGNORECASE,
)
_COMFY = re.compile(r"Device: cuda:(\d{1,2}) (\S.{0,60}?) : ")
_FLAGS = re.compile(r"code=(sm_\d{2,3}[af]?|compute_\d{2,3})")
_RUNTIME = re.compile(r"CUDA Runtime (\d{1,2}\.\d)")
_CAPABILITY = re.compile(
    r"capability(?: among GPUs detected)?:\s{0,60}\(?(\d{1,2})(?:\.|, )(\d)\)?", re.IGNORECASE
)
_SPECS = re.compile(
    r"highest_compute_capability=(?:ComputeCapability\(major=)?\(?(\d{1,2}), (?:minor=)?(\d)"
)
_BUILT = re.compile(r"PyTorch settings found: CUDA_VERSION=(\d{3})\b")
_JSON = re.compile(r'"torch_version": "(\d\.\d{1,2}[\w.+]{0,24})"')
_VALUES = (
    (_STATED.match, fields.torch_version), (_JSON.search, fields.torch_version),
    (_RUNTIME.search, fields.torch_cuda),
)  # fmt: skip
"""Lines of which the first group is a value that other formats have, too."""
_MOST_GPUS = 32  # chosen: above any machine
_NO_NAMES = ("none", "no", "na", "true", "false", "yes")
_MEMORY = re.compile(r",? ?\d{3,7} ?Mi?B$")
# People put more behind it: "GPU: RTX 5090, torch 2.5.1+cu124".
_BEHIND_NAME = re.compile(
    r"\s{0,4}[,;|/(\uff0c\uff1b\u3001\uff08]\s{0,4}(?:py)?(?:torch|driver|cuda|cudnn|python|v?ram|memory|os|"
    r"ubuntu|windows|linux|wsl|cpu|\d{1,3} ?gi?b|\u9a71\u52a8|\u663e\u5b58|\u7cfb\u7edf)",
    re.IGNORECASE,
)


def read(text: Text, machine: Machine) -> None:
    """Read labelled lines, the table of two columns, and single lines of a known form."""
    named = bool(machine.items(Nvml, "gpus"))
    for index in text.find(*_STARTS):
        line = text.lines[index]
        label, value = split_label(line.text)
        take = _LABELS.get(label)
        if take is not None:
            take(value, line, machine)
        elif label in _GPU_LABELS and not named:
            _gpu_behind(text, index, value, machine)
        else:
            _greeting(line, machine, named=named)
            _code(line, machine)
    if "gpu available" in text.lower or "detectron2" in text.lower:
        _table(text, machine)


def _gpu_behind(text: Text, index: int, value: str, machine: Machine) -> None:
    """``GPU type: NVIDIA A100``, or Lightning's list below ``- GPU:``."""
    value = _BEHIND_NAME.split(value, maxsplit=1)[0]
    if value:
        if not is_unknown(value) and value.lower() not in _NO_NAMES:
            fields.gpu(0, _MEMORY.sub("", value), text.lines[index], machine)
        return
    for at, line in enumerate(text.after(index, _MOST_GPUS)):
        name = line.text.strip(" \t-*")
        if not name or ":" in name:
            return
        fields.gpu(at, name, line, machine)


def _greeting(line: Line, machine: Machine, *, named: bool) -> None:
    """Read the line that a program prints at its start: its torch, its CUDA and its GPU."""
    banner = _BANNER.search(line.text)
    if banner is not None:
        fields.torch_version(banner[1], line, machine)
        if banner[3]:
            fields.cuda_available("true", line, machine)
            if not named:
                fields.gpu(0, banner[3], line, machine)
    device = _COMFY.search(line.text)
    if device is not None:
        fields.cuda_available("true", line, machine)
        if not named:
            fields.gpu(int(device[1]), device[2], line, machine)
    for find, take in _VALUES:
        if (found := find(line.text)) is not None:
            take(found[1], line, machine)


def _code(line: Line, machine: Machine) -> None:
    """Read what a build was made for, and the capability of the only GPU."""
    # Build logs have such flags too, for what is being built; a truncated list proves nothing.
    flags = _FLAGS.findall(line.text) if "architecture flags" in line.text else []
    if flags and not line.text.endswith(("...", "…", ";", ",")):
        fields.arch_list(" ".join(flags), line, machine)
    built = _BUILT.search(line.text)
    if built is not None:
        fields.torch_cuda(f"{built[1][:2]}.{built[1][2]}", line, machine)
    capability = _CAPABILITY.search(line.text) or _SPECS.search(line.text)
    if capability is not None and len(machine.items(Nvml, "gpus")) <= 1:
        fields.capability(0, f"{capability[1]}.{capability[2]}", line, machine)


def _table(text: Text, machine: Machine) -> None:
    """Read detectron2's table, which has no colons."""
    named = bool(machine.items(Nvml, "gpus"))
    for line in text.lines:
        found = _COLUMNS.match(line.text)
        gpu = _TABLE_GPU.match(line.text)
        take = _COLUMN_LABELS.get(found[1].lower()) if found is not None else None
        if found is not None and take is not None:
            take(found[2], line, machine)
        elif gpu is not None and not named:
            for number in gpu[1].split(","):
                fields.gpu(int(number), gpu[2], line, machine)
                if gpu[3]:
                    fields.capability(int(number), gpu[3], line, machine)


def _only_version(value: str, line: Line, machine: Machine) -> None:
    fields.torch_version(value.strip("'\","), line, machine)


def _available(value: str, line: Line, machine: Machine) -> None:
    fields.cuda_available("true" if value.startswith("available") else value, line, machine)


def _built_for(value: str, line: Line, machine: Machine) -> None:
    fields.torch_cuda(value.strip("'\","), line, machine)


def _compiler(value: str, line: Line, machine: Machine) -> None:
    if value.startswith("CUDA "):
        fields.toolkit(value.removeprefix("CUDA "), line, machine)


_GPU_LABELS = ("gpu type", "gpu", "accelerator", "gpu name", "gpu.name")
_LABELS: dict[str, Callable[[str, Line, Machine], None]] = {
    "pytorch_version": _only_version,
    "pytorch.version": _only_version,
    "torch_version": _only_version,
    "pytorch.cuda": _available,
    "available": _available,
    "torch cuda available": _available,
    "torch cuda version": _built_for,
    "pytorch cuda version": _built_for,
    "build.nvcc_version": fields.toolkit,
}
_COLUMN_LABELS: dict[str, Callable[[str, Line, Machine], None]] = {
    "pytorch": _only_version,
    "gpu available": fields.cuda_available,
    "driver version": fields.driver_release,
    "cuda compiler": _compiler,
    "python": fields.python_version,
}
_STARTS = (
    *(f"{label}:" for label in ("gpu type", "accelerator", "pytorch_version", "pytorch.version",
      "pytorch.cuda", "gpu.name", "gpu name", "torch_version", "available", "torch cuda available",
      "torch cuda version", "pytorch cuda version", "build.nvcc_version", " gpu")),
    "torch-", "torch 1", "torch 2", "device: cuda:", "architecture flags",
    "cuda runtime ", "settings found:",
    "compute_capability", "compute capability", 'torch_version"',
)  # fmt: skip
