"""Facts that several formats state in the same words: releases, builds, GPUs, packages."""

import re

from gpucheck.facts.driver import CudaDriver, Nvml, NvmlGpu
from gpucheck.facts.libraries import Compiler, Toolkit, Toolkits
from gpucheck.facts.request import Pasted
from gpucheck.facts.system import LimitsOfProcess, System
from gpucheck.facts.torch import Distribution, Interpreter, Packages, TorchBuild
from gpucheck.language import say
from gpucheck.log_patterns.text import Line, Text
from gpucheck.tables.versions import minor
from gpucheck.ticket.readers.base import Machine

# Splits a line of a report into its label and its value: ``* PyTorch version : 2.1.0``.

_BULLET = re.compile(r"[\s\-*+#•·]{1,12}")
_ASIDE = re.compile(r"\s?\((?:e\.?g\.?|i\.e\.|if |conda|`|x)[^()]{0,60}\)")
_NO_COLON = re.compile(
    r"(pytorch version|cuda used to build pytorch)\s{1,4}(?=[0-9A-Z])", re.IGNORECASE
)
# Chosen: with 20, two of 752 labelled tickets get another answer.
_LONGEST_LABEL, _LONGEST = 80, 200
_DECORATION = " `*\t\"'"
_UNKNOWN = (
    "could not collect", "n/a", "", "unknown", "not available", "none found", "<fill in>",
    "no cuda", "no response", "_no response_",
)  # fmt: skip


def split_label(text: str) -> tuple[str, str]:
    """Return a line's label, lower case and without bullets and examples, and its value.

    Both are "" if the line has no label.
    """
    bullet = _BULLET.match(text)
    if bullet is not None:
        text = text[bullet.end() :]
    label, colon, value = text[:_LONGEST].partition(":")
    if not colon or len(label) > _LONGEST_LABEL:
        bare = _NO_COLON.match(text)
        if bare is None:
            return "", ""
        return bare[1].lower(), text[bare.end() : _LONGEST].strip()
    label = _ASIDE.sub("", label).strip(_DECORATION).lower()
    return label, value.strip(" `*\t")


def is_unknown(value: str) -> bool:
    """Whether the value means unknown, which is not the same as absent."""
    return value.lower().strip(".") in _UNKNOWN


# Not the end of a longer number or of a path.
VERSION = re.compile(r"(?<![\w.])v?(\d{1,4}(?:\.\d{1,6}){1,4}(?:[abc.+-]\w[\w.+]{0,40})?)")
_RELEASE = re.compile(r"(?<![\w.])(\d{1,4}(?:\.\d{1,4}){1,2})(?![\w.])")
# A release of torch has one digit before the first point.
_TORCH = re.compile(
    r"(?<![\w.])v?(\d\.\d{1,2}(?:\.\d{1,2})?(?:[ab]\d{1,2}|rc\d)?(?:\.dev\d{8})?(?:\+[\w.]{1,40})?)"
)
# Three digits before the point: versions of CUDA and torch have one or two.
_DRIVER = re.compile(r"(\d{3}\.\d{1,3}(?:\.\d{1,3})?)(?![\w.])")
_GCC = re.compile(r"(\d{1,2}\.\d{1,2}\.\d{1,2})(?:\s\d{8})?(?:\s\(.{0,60}\))?$")
_GLIBC = re.compile(r"glibc[ -](\d\.\d{1,3})")
_SIZE = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?([KMGT])i?B?", re.IGNORECASE)
_UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
CODE = re.compile(r"(?:sm|compute)_\d{2,3}[af]?")
_OTHERS = re.compile(
    r"\b(?:AMD|ATI|Radeon|Instinct|gfx\d|Intel|Arc|Apple|Ascend|MTT|HL-\d)", re.IGNORECASE
)
"""Makers and products of GPUs other than NVIDIA's."""
_WITHOUT_CUDA = ("none", "no", "not supported", "could not collect")
_YES, _NO = ("true", "yes"), ("false", "no")
_NEITHER = ("none", "null")


def torch_version(value: str, line: Line, machine: Machine) -> None:
    """Read the release of an installed torch: ``2.1.0+cu118``."""
    found = _TORCH.match(value)
    known = machine.value(TorchBuild, "version") or ""
    if found is not None and known.partition("+")[0] != found[1]:  # pip's list truncates "+cu118"
        machine.fill(TorchBuild, "installed", value=True, line=line)
        machine.fill(TorchBuild, "version", found[1], line)


def torch_cuda(value: str, line: Line, machine: Machine) -> None:
    """Read the CUDA that torch was built for, as torch reports it; "None" means no CUDA.

    It counts only together with a release of torch, because a report that could not import torch
    prints the same.
    """
    if value.lower() in _WITHOUT_CUDA and machine.knows(TorchBuild, "version"):
        if not machine.knows(TorchBuild, "built_for"):
            machine.fill(TorchBuild, "built_for", "cpu", line)
            machine.fill(TorchBuild, "cuda", "", line)
        return
    found = VERSION.match(value)
    cuda = minor(found[1]) if found is not None else None
    if cuda is not None:
        machine.fill(TorchBuild, "built_for", "cuda", line)
        machine.fill(TorchBuild, "cuda", cuda, line)


def torch_hip(value: str, line: Line, machine: Machine) -> None:
    """Read the ROCm that torch was built for."""
    found = VERSION.match(value)
    if found is not None:
        machine.fill(TorchBuild, "built_for", "rocm", line)
        machine.fill(TorchBuild, "hip", found[1], line)


def cuda_available(value: str, line: Line, machine: Machine) -> None:
    """Read the result of ``torch.cuda.is_available()``."""
    word = value.lower()
    if word.startswith(_YES):
        machine.fill(Pasted, "cuda_available", value=True, line=line)
        machine.fill(CudaDriver, "init_code", 0, line)
    elif word.startswith(_NO) and not word.startswith(_NEITHER):
        machine.fill(Pasted, "cuda_available", value=False, line=line)


def arch_list(value: str, line: Line, machine: Machine) -> None:
    """Read the GPU code in torch: ``sm_80``, ``compute_90``."""
    codes = list(dict.fromkeys(CODE.findall(value)))
    if codes:
        machine.fill(TorchBuild, "arch_list", codes, line)


def toolkit(value: str, line: Line, machine: Machine) -> None:
    """Read the release of nvcc."""
    found = VERSION.search(value)
    version = minor(found[1]) if found is not None else None
    if version is None:
        why = value or say("no value")
        machine.unknown(
            Toolkits, "selected_version", say("{source}: {why}", source=line.source, why=why)
        )
        return
    machine.fill(Toolkits, "selected_version", version, line)
    toolkit_draft = machine.item(Toolkits, "toolkits", Toolkit, version, line)
    toolkit_draft.fill("version", version, line.source)
    toolkit_draft.fill("has_nvcc", value=True, source=line.source)


def driver_release(value: str, line: Line, machine: Machine) -> None:
    """Read the driver's release, as NVML reports it."""
    found = _DRIVER.match(value)
    if found is not None:
        machine.fill(Nvml, "driver_release", found[1], line)
        machine.fill(Nvml, "init_code", 0, line)
    elif value:
        why = say("{source}: {why}", source=line.source, why=value)
        machine.unknown(Nvml, "driver_release", why)


def gpu(index: int, name: str, line: Line, machine: Machine) -> None:
    """Read an NVIDIA GPU with its number; the same words may list GPUs of other makers."""
    if _OTHERS.search(name) is not None:
        return
    draft = machine.item(Nvml, "gpus", NvmlGpu, index, line)
    draft.fill("index", index, line.source)
    name = name.strip(" `|*'\"")
    if name and not name.endswith("...") and not is_unknown(name):
        draft.fill("device_name", name, line.source)


def capability(index: int, value: str, line: Line, machine: Machine) -> None:
    """Read the compute capability of a GPU, such as ``8.6``."""
    draft = machine.item(Nvml, "gpus", NvmlGpu, index, line)
    draft.fill("index", index, line.source)
    draft.fill("compute_capability", value, line.source)


def python_version(value: str, line: Line, machine: Machine) -> None:
    """Read the release of the interpreter."""
    found = _RELEASE.match(value)
    if found is not None:
        machine.fill(Interpreter, "status", "ok", line)
        machine.fill(Interpreter, "version", found[1], line)


def libc(value: str, line: Line, machine: Machine) -> None:
    """Read a C library such as ``glibc-2.35``."""
    found = _GLIBC.match(value.lower())
    if found is not None:
        machine.fill(System, "libc", "glibc", line)
        machine.fill(System, "glibc", found[1], line)


def gcc(value: str, line: Line, machine: Machine) -> None:
    """Read the first line of ``gcc --version``: the release is at its end."""
    found = _GCC.search(value)
    if found is not None:
        compiler = machine.item(Toolkits, "compilers", Compiler, "gcc", line)
        compiler.fill("command", "gcc", line.source)
        compiler.fill("version", found[1], line.source)


def shm_size(value: str, line: Line, machine: Machine) -> None:
    """Read the size of ``/dev/shm``: ``64M``, ``64.00 MB``."""
    found = _SIZE.search(value)
    if found is not None:
        size = int(float(found[1]) * _UNITS[found[2].upper()])
        machine.fill(LimitsOfProcess, "shm_total_bytes", size, line)


def cannot_import_torch(text: Text) -> bool:
    """Whether a Python had no torch: a list with torch is then from another environment."""
    return "no module named 'torch'" in text.lower or "no module named torch\n" in text.lower


def package(name: str, version: str, line: Line, machine: Machine) -> str:
    """Read an installed distribution; return its normalised name."""
    project = re.sub(r"[-_.]+", "-", name).lower()
    distribution = machine.item(Packages, "distributions", Distribution, project, line)
    distribution.fill("project", project, line.source)
    distribution.fill("version", version.rstrip(").,"), line.source)
    if project == "torch":
        torch_version(version, line, machine)
    return project


# A package as conda names it: ``pytorch 2.0.1 py3.10_cuda11.7_cudnn8.5.0_0 pytorch``.
#
# The build string shows what torch was made for; ``pytorch-mutex`` has it in one word.

_OF_PIP = "pypi"
# Of a build: py3.10_cuda11.8_cudnn8.7.0_0, or cuda118 of conda-forge.
_CUDA = re.compile(r"(?:^|_)(?:cuda|gpu_cuda|cu)_?(\d{1,2}\.\d|\d{3})")
_CPU = re.compile(r"(?:^|_)cpu")
_MATTERS = ("torch", "cud", "nccl", "magma", "numpy", "triton", "nvidia", "libtorch")
_CONDA_TORCH = ("pytorch", "pytorch-gpu", "pytorch-cpu", "libtorch")


def read_conda_package(cells: list[str], line: Line, machine: Machine) -> None:
    """Take name, version, build and channel; a package from PyPI belongs to pip."""
    name, version = cells[0].lower(), cells[1]
    build = cells[2] if len(cells) > 2 else ""  # noqa: PLR2004  # the third cell
    if cells[-1] == _OF_PIP or build.startswith(_OF_PIP):
        package(name, version, line, machine)
        return
    if not version[:1].isdecimal():
        return
    if any(word in name for word in _MATTERS):
        machine.add(Packages, "conda_packages", " ".join(cells[:4]), line)
    if name in _CONDA_TORCH:
        torch_version(version, line, machine)
        machine.fill(TorchBuild, "installer", "conda", line)
        _built_for(build, line, machine)
    elif name == "pytorch-mutex":
        _built_for(build if build != "cuda" else "", line, machine)
    elif name in ("torchvision", "torchaudio", "numpy"):
        package(name, version, line, machine)


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


# The operating system from what programs call it: ``Ubuntu 22.04.3 LTS``, ``Linux-5.4.0-...``.

# The first that occurs counts: a derivative of Ubuntu that names it takes its packages.
_DISTRIBUTIONS = {
    "ubuntu": "ubuntu", "debian": "debian", "centos": "centos", "red hat": "rhel", "rhel": "rhel",
    "rocky": "rocky", "alma": "almalinux", "fedora": "fedora", "arch linux": "arch",
    "manjaro": "manjaro", "opensuse": "opensuse-leap", "suse linux": "sles", "amazon linux": "amzn",
    "linux mint": "linuxmint", "oracle linux": "ol", "pop!_os": "pop", "alpine": "alpine",
    "gentoo": "gentoo", "nixos": "nixos",
}  # fmt: skip
_NUMBER = re.compile(r"(?<![\w.])v?(\d{1,2}(?:\.\d{1,2}){0,2})(?![\w])")
_WINDOWS = re.compile(
    r"(?:microsoft )?windows(?:\b|\d)|win(?:10|11|32|64)\b|win-\w|windows-\d", re.IGNORECASE
)
_MACOS = re.compile(r"mac ?os|os ?x\b|darwin", re.IGNORECASE)
_MACHINES = ("x86_64", "aarch64", "arm64", "ppc64le", "amd64")
_KERNEL = re.compile(r"Linux[- ](\d{1,2}\.\d{1,3}\.[\w.+~-]{1,80})")


def read_system(value: str, line: Line, machine: Machine) -> None:
    """Read the value of a label such as ``OS:``."""
    low = value.lower()
    if _is_wsl(low):
        machine.fill(System, "os", "linux", line)
        machine.fill(System, "wsl", 2, line)
    name = next((name for name in _DISTRIBUTIONS if name in low), None)
    if name is not None:
        machine.fill(System, "os", "linux", line)
        machine.fill(System, "distribution", _DISTRIBUTIONS[name], line)
        number = _NUMBER.search(low, low.index(name) + len(name))
        if number is not None:
            machine.fill(System, "distribution_version", number[1], line)
        machine.fill(System, "pretty_name", value.partition(" (x86")[0][:80], line)
    elif _MACOS.search(value):
        machine.fill(System, "os", "macos", line)
    elif _WINDOWS.search(value):
        machine.fill(System, "os", "windows", line)
    elif low.startswith("linux"):
        machine.fill(System, "os", "linux", line)
    _machine(low, line, machine)


def read_platform(value: str, line: Line, machine: Machine) -> None:
    """Read the output of ``platform.platform()``."""
    low = value.lower()
    if low.startswith("linux"):
        machine.fill(System, "os", "linux", line)
        kernel = _KERNEL.match(value)
        if kernel is not None:
            release = re.split(r"-(?:x86_64|aarch64|ppc64le)", kernel[1])[0]
            machine.fill(System, "kernel", release, line)
        _wsl(value, line, machine)
    elif _WINDOWS.match(value):
        machine.fill(System, "os", "windows", line)
    elif low.startswith(("macos", "darwin")):
        machine.fill(System, "os", "macos", line)
    _machine(low, line, machine)


def _wsl(platform: str, line: Line, machine: Machine) -> None:
    """WSL 1 calls its kernel ``4.4.0-19041-Microsoft``, WSL 2 ``5.15.153.1-microsoft-standard``."""
    if "-Microsoft" in platform and "-4.4.0-" in platform:
        machine.fill(System, "wsl", 1, line)
    elif "microsoft" in platform.lower():
        machine.fill(System, "wsl", 2, line)
    else:
        machine.fill(System, "wsl", 0, line)


def _is_wsl(low: str) -> bool:
    return re.search(r"\bwsl\s?2?\b", low) is not None


def _machine(low: str, line: Line, machine: Machine) -> None:
    found = next((name for name in _MACHINES if name in low), None)
    if found is not None:
        plain = {"amd64": "x86_64", "arm64": "aarch64"}.get(found, found)
        machine.fill(System, "machine", plain, line)
