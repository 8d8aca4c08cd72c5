"""The machine in six lines: one per area, with its state in a word and a few facts."""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from gpucheck.engine import Report
from gpucheck.facts import Facts
from gpucheck.facts.container import Container
from gpucheck.facts.cuda_driver import CudaDriver
from gpucheck.facts.cuda_libraries import CudaLibraries, CudaLibrary
from gpucheck.facts.driver import Driver
from gpucheck.facts.environment import Environment
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.nvml import Nvml, NvmlGpu
from gpucheck.facts.pci import Pci
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import System
from gpucheck.facts.toolkits import Toolkits
from gpucheck.facts.torch_build import TorchBuild
from gpucheck.findings import all_rules
from gpucheck.findings.form import Finding
from gpucheck.findings.form.rule import Area as Name
from gpucheck.output.summary import driver_cuda, driver_release, gpu_names
from gpucheck.output.words import clean, counted, plural, size

Status = Literal["ok", "error", "warning", "note", "unknown", "none"]

_OF_GPUS = ("nvml.gpus", "pci.", "cuda_driver.dev", "kernel_log.xids", "kernel_log.fallen_off_bus")
_OF_SELFTESTS = "selftests.results."
_LIBRARY_KINDS = ("cudnn-status", "cudnn-not-used", "cublas-status")
_WSL_2 = 2
_FIRST_BUILD_OF_WINDOWS_11 = 22000
_SHORT_MASK = 16
_OS_NAMES = {"linux": "Linux", "windows": "Windows", "macos": "macOS"}
_STATUS: dict[str, Status] = {"error": "error", "warning": "warning", "info": "note"}
_IN_WORDS = {"cudnn": "cuDNN", "nccl": "NCCL", "cublas": "cuBLAS"}
_BUILDS = {"cpu": "CPU build", "rocm": "ROCm build", "xpu": "XPU build", "cuda": "CUDA build"}


class Area(msgspec.Struct, frozen=True):
    """One line: ``none`` is used for what does not exist, ``unknown`` for what is unknown."""

    name: Name
    status: Status
    words: str
    slugs: tuple[str, ...] = ()


def areas(report: Report) -> list[Area]:
    """Return the areas of the machine, from the GPU up to the system."""
    snapshot = report.snapshot
    plain = [
        _gpus(snapshot),
        _driver(snapshot),
        _torch(snapshot),
        _libraries(snapshot),
        _toolkit(snapshot),
        _system(snapshot),
    ]
    placed = [(finding, _area_of(finding, snapshot)) for finding in report.standing]
    return [_judged(area, [one for one, name in placed if name == area.name]) for area in plain]


def _judged(area: Area, mine: Sequence[Finding]) -> Area:
    """Give an area the state of its worst finding; the findings are sorted worst first."""
    if not mine:
        return area
    slugs = tuple(finding.slug for finding in mine)
    return msgspec.structs.replace(area, status=_STATUS[mine[0].severity.value], slugs=slugs)


def _area_of(finding: Finding, snapshot: Snapshot) -> Name | None:
    """Return the area that a finding is about; None for one that only the self-tests show."""
    first = finding.evidence[0].fact if finding.evidence else ""
    rule = all_rules().get(finding.slug)
    if rule is not None and rule.area is not None:
        return rule.area
    family = rule.family if rule else "gpucheck"
    if family == "torch":
        return "PyTorch"
    if family == "libraries":
        return "Toolkit" if first.startswith("toolkits") else "CUDA libraries"
    if first.startswith(_OF_SELFTESTS) and family != "driver":
        return _area_of_selftest(first.split(".")[2], snapshot)
    if first.startswith(_OF_GPUS) and "driver_release" not in first:
        return "GPUs"
    return "Driver" if family == "driver" else "System"


def _area_of_selftest(index: str, snapshot: Snapshot) -> Name | None:
    """Return the area of a failed self-test: the device it ran on, or the library that failed."""
    results = snapshot.get(SelfTests).results or []
    at = whole_number(index)
    result = results[at] if at is not None and at < len(results) else None
    if result is None:
        return None
    if result.kind in _LIBRARY_KINDS:
        return "CUDA libraries"
    return "GPUs" if result.device.startswith("cuda") else None


def _gpus(snapshot: Snapshot) -> Area:
    nvml, pci = snapshot.get(Nvml), snapshot.get(Pci)
    if nvml.gpus:
        return Area("GPUs", "ok", _from_nvml(nvml.gpus) + _visible(snapshot))
    names = gpu_names(snapshot)
    if names:
        on_bus = " on the PCI bus" if pci.gpus else ""
        return Area("GPUs", "ok", f"{counted(names)}{on_bus}{_visible(snapshot)}")
    if snapshot.get(System).wsl:
        return _gpus_inside_wsl(snapshot)
    if pci.gpus == []:
        others = ", ".join(clean(vendor) for vendor in pci.other_display_vendors or ())
        also = f" (other display controllers: {others})" if others else ""
        return Area("GPUs", "none", f"no NVIDIA GPU on the PCI bus{also}")
    if snapshot.get(System).os == "macos":
        return Area("GPUs", "none", "macOS has no NVIDIA GPU")
    return Area("GPUs", "unknown", _why(pci, "gpus") or _why(nvml, "gpus"))


def _gpus_inside_wsl(snapshot: Snapshot) -> Area:
    """Return what is known where no bus has GPUs: inside WSL 2 Windows' driver hands them out."""
    if snapshot.get(System).wsl == 1:
        return Area("GPUs", "none", "WSL 1 has no GPU")
    why = _why(snapshot.get(Nvml), "gpus")
    because = f" ({why})" if why else ""
    words = f"WSL shows GPUs only through the driver of Windows, which did not answer{because}"
    return Area("GPUs", "unknown", words)


def _from_nvml(gpus: Sequence[NvmlGpu]) -> str:
    words = counted([_gpu(gpu) for gpu in gpus])
    instances = sum(len(gpu.mig_devices or ()) for gpu in gpus if gpu.mig_enabled)
    if any(gpu.mig_enabled for gpu in gpus):
        words += f"; MIG is on, {plural(instances, 'instance')}"
    return words


def _gpu(gpu: NvmlGpu) -> str:
    name = clean(gpu.device_name or "NVIDIA GPU")
    more = []
    if gpu.compute_capability:
        more.append(f"compute capability {clean(gpu.compute_capability)}")
    if gpu.memory_total_bytes:
        more.append(size(gpu.memory_total_bytes))
    if gpu.lost:
        more.append("lost")
    return f"{name} ({', '.join(more)})" if more else name


def _visible(snapshot: Snapshot) -> str:
    value = snapshot.get(Environment).get("CUDA_VISIBLE_DEVICES")
    if value is None:
        return ""
    cuda = snapshot.get(CudaDriver)
    seen = f" leaves {cuda.device_count} visible" if cuda.device_count is not None else " is set"
    short = f"={clean(value)}" if len(value) <= _SHORT_MASK else ""
    return f"; CUDA_VISIBLE_DEVICES{short}{seen}"


def _driver(snapshot: Snapshot) -> Area:
    driver = snapshot.get(Driver)
    release, cuda = driver_release(snapshot), driver_cuda(snapshot)
    if release:
        words = [clean(release)]
        words += [f"speaks CUDA {clean(cuda)}"] if cuda else []
        words += [f"{driver.module_flavour} kernel modules"] if driver.module_flavour else []
        return Area("Driver", "ok", ", ".join(words))
    if snapshot.get(System).os == "macos":
        return Area("Driver", "none", "macOS has no NVIDIA driver")
    wsl = snapshot.get(System).wsl
    if driver.module_loaded is False and wsl != _WSL_2:
        packages = clean(", ".join(driver.packages or ()), 60)
        installed = f"; installed: {packages}" if packages else ""
        return Area("Driver", "none", f"no NVIDIA kernel module is loaded{installed}")
    nvml = snapshot.get(Nvml)
    if wsl == _WSL_2:
        return Area("Driver", "unknown", f"that of Windows: {_why(nvml, 'driver_release')}")
    return Area("Driver", "unknown", _why(driver, "module_loaded") or _why(nvml, "driver_release"))


def _torch(snapshot: Snapshot) -> Area:
    torch = snapshot.get(TorchBuild)
    if torch.installed is False:
        return Area("PyTorch", "none", "not installed in this Python")
    if not torch.installed:
        return Area("PyTorch", "unknown", _why(torch, "installed"))
    build = _BUILDS.get(torch.built_for or "", "build of unknown kind")
    words = [clean(torch.version or "of unknown version"), build]
    words += [f"CUDA {clean(torch.cuda)}"] if torch.cuda else []
    words += [f"cuDNN {clean(torch.cudnn)}"] if torch.cudnn else []
    words += [f"NCCL {clean(torch.nccl)}"] if torch.nccl else []
    words += [f"installed by {clean(torch.installer)}"] if torch.installer else []
    status: Status = "ok" if torch.version and torch.built_for else "unknown"
    return Area("PyTorch", status, ", ".join(words))


def _libraries(snapshot: Snapshot) -> Area:
    section = snapshot.get(CudaLibraries)
    if section.libraries is None:
        return Area("CUDA libraries", "unknown", _why(section, "libraries"))
    if not section.libraries:
        return Area("CUDA libraries", "none", "none found")
    first = {lib.library: lib for lib in reversed(section.libraries) if lib.library}
    main = [name for name in ("cudnn", "nccl", "cublas") if name in first]
    told = [_library(first[name]) for name in main or list(first)[:3]]
    more = len(section.libraries) - len(told)
    told += [plural(more, "further file" if told else "file")] if more else []
    return Area("CUDA libraries", "ok", ", ".join(told))


def _library(library: CudaLibrary) -> str:
    name = _IN_WORDS.get(library.library or "", library.library or "?")
    version = f" {clean(library.version)}" if library.version else ""
    via = f" ({library.found_via})" if library.found_via else ""
    return f"{clean(name)}{version}{via}"


def _toolkit(snapshot: Snapshot) -> Area:
    section = snapshot.get(Toolkits)
    if section.selected:
        version = section.selected_version
        told = f"CUDA {clean(version)}" if version else "of unknown version"
        via = section.selected_via if section.selected_via != section.selected else ""
        found = f" (by {clean(via)})" if via else ""
        return Area("Toolkit", "ok", f"{told} at {clean(section.selected)}{found}")
    if section.selected == "":
        return Area("Toolkit", "none", "none found; only compiling CUDA code needs one")
    return Area("Toolkit", "unknown", _why(section, "selected"))


def _system(snapshot: Snapshot) -> Area:
    system, container = snapshot.get(System), snapshot.get(Container)
    if system.os is None:
        return Area("System", "unknown", _why(system, "os"))
    words = [
        *_name_and_kernel(system),
        clean(system.machine or ""),
        f"glibc {clean(system.glibc)}" if system.glibc else "",
        f"WSL {system.wsl}" if system.wsl else "",
        clean(system.jetson or ""),
        f"in a container ({container.runtime})" if container.runtime else "",
    ]
    return Area("System", "ok", _joined(words))


def _name_and_kernel(system: System) -> tuple[str, str]:
    """Return the system and its kernel; the kernel of Windows is its version, that of macOS Darwin.

    Older Pythons call Windows 11 "10": its build tells them apart.
    """
    name = clean(system.pretty_name or _OS_NAMES[system.os or "linux"])
    kernel = clean(system.kernel or "")
    if system.os != "windows":
        label = "Darwin" if system.os == "macos" else "kernel"
        return name, f"{label} {kernel}" if kernel else ""
    version = clean(system.distribution_version or "")
    build = whole_number(version.rpartition(".")[2]) or 0
    if kernel == "10" and build >= _FIRST_BUILD_OF_WINDOWS_11:
        kernel = "11"
    return f"{name} {kernel}".strip(), f"version {version}" if version else ""


def _joined(words: Iterable[str]) -> str:
    return ", ".join(word for word in words if word)


def _why(section: Facts, field: str) -> str:
    return clean(section.problem(field), 160)
