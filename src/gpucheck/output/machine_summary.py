"""The machine in six lines: one per area, with its state in a word and a few facts."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from gpucheck.engine import DRIVER_SERVES, Report
from gpucheck.facts import Facts
from gpucheck.facts.driver import CudaDriver, Driver, NvidiaSmi, Nvml, NvmlGpu
from gpucheck.facts.libraries import CudaLibraries, CudaLibrary, Toolkits
from gpucheck.facts.numbers import whole_number
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Snapshot
from gpucheck.facts.system import OS_NAMES, Container, Environment, Pci, System
from gpucheck.facts.torch import TorchBuild, TorchInstall
from gpucheck.findings import all_rules
from gpucheck.findings.form import Area as Name
from gpucheck.findings.form import Finding
from gpucheck.language import in_series, phrase, say, say_many
from gpucheck.output.words import (
    bracketed,
    clean,
    counted,
    in_line,
    in_parts,
    listing,
    product_named,
    shown,
    size,
    without_status,
)

Status = Literal["ok", "error", "warning", "note", "unknown", "none"]

_OF_GPUS = ("nvml.gpus", "pci.", "cuda_driver.dev", "kernel_log.xids", "kernel_log.fallen_off_bus")
_OF_DRIVER = ("nvml.driver_release", "nvml.cuda", "cuda_driver.cuda", "driver.", "nvidia_smi.")
_OF_SELFTESTS = "selftests.results."
_LIBRARY_KINDS = ("cudnn-status", "cudnn-not-used", "cublas-status")
_WSL_2 = 2  # WSL 1 has no GPU driver at all
_FIRST_BUILD_OF_WINDOWS_11 = 22000  # Windows 11 still calls itself 10.0; only the build tells
_SHORT_MASK = 16  # chosen: eight GPUs by number (0,1,2,3,4,5,6,7) fit, a UUID does not
_PLACES = {"system": say("system"), "toolkit": say("toolkit")}
_STATUS: dict[str, Status] = {"error": "error", "warning": "warning", "info": "note"}
_IN_WORDS = {"cudnn": "cuDNN", "nccl": "NCCL", "cublas": "cuBLAS"}
_BUILDS = {
    "cpu": say("CPU build"),
    "rocm": say("ROCm build"),
    "xpu": say("XPU build"),
    "cuda": say("CUDA build"),
}
_VENDORS = {
    "amd": "AMD",
    "intel": "Intel",
    "aspeed": "ASPEED",
    "matrox": "Matrox",
    "virtual": say("a virtual display"),
}
_MODULES = {"open": say("open kernel modules"), "proprietary": say("proprietary kernel modules")}


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
        _torch(report),
        _libraries(snapshot),
        _toolkit(snapshot),
        _system(snapshot),
    ]
    placed = [(finding, _area_of(finding, snapshot)) for finding in report.standing]
    if any(asked.question == DRIVER_SERVES for asked in report.open_questions):
        plain[1] = msgspec.structs.replace(plain[1], status="unknown")
    return [
        _judged(area, [finding for finding, name in placed if name == area.name]) for area in plain
    ]


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
    if family == "gpucheck" and first.startswith("torch."):
        return "PyTorch"
    if family == "gpucheck" and first.startswith(_OF_DRIVER):
        return "Driver"
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
        return Area("GPUs", "ok", in_parts([_from_nvml(nvml.gpus), _visible(snapshot)]))
    names = gpu_names(snapshot)
    if names:
        gpus = counted(names)
        gpus = say("{gpus} on the PCI bus", gpus=gpus) if pci.gpus else gpus
        return Area("GPUs", "ok", in_parts([gpus, _visible(snapshot)]))
    if snapshot.get(System).wsl:
        return _gpus_inside_wsl(snapshot)
    if pci.gpus == [] and pci.adapters is not None:
        adapters = in_series([clean(name) for name in pci.adapters])
        also = say("display adapters: {adapters}", adapters=adapters) if adapters else ""
        return Area("GPUs", "none", bracketed(say("no NVIDIA GPU"), also))
    if pci.gpus == []:
        others = in_series(
            [
                _VENDORS.get(vendor) or say("maker {id}", id=clean(vendor))
                for vendor in pci.other_display_vendors or ()
            ]
        )
        also = say("other display controllers: {vendors}", vendors=others) if others else ""
        return Area("GPUs", "none", bracketed(say("no NVIDIA GPU on the PCI bus"), also))
    if snapshot.get(System).os == "macos":
        return Area("GPUs", "none", say("this Mac has no NVIDIA GPU"))
    return Area("GPUs", "unknown", _either(snapshot, _why(pci, "gpus"), _why(nvml, "gpus")))


def _either(snapshot: Snapshot, kernel: str, nvml: str) -> str:
    """Return why neither knows; Windows shows no bus and no module, so there only NVML can know."""
    return (nvml or kernel) if snapshot.get(System).os == "windows" else (kernel or nvml)


def _gpus_inside_wsl(snapshot: Snapshot) -> Area:
    """Return what is known where no bus has GPUs: inside WSL 2 Windows' driver hands them out."""
    if snapshot.get(System).wsl == 1:
        return Area("GPUs", "none", say("WSL 1 cannot use a GPU"))
    why = _why(snapshot.get(Nvml), "gpus")
    words = say("WSL shows GPUs only through the driver of Windows, which did not answer")
    return Area("GPUs", "unknown", bracketed(words, why))


def _from_nvml(gpus: Sequence[NvmlGpu]) -> str:
    words = counted([_gpu(gpu) for gpu in gpus])
    if not any(gpu.mig_enabled for gpu in gpus):
        return words
    instances = sum(len(gpu.mig_devices or ()) for gpu in gpus if gpu.mig_enabled)
    mig = say_many(instances, "MIG is on, {count} instance", "MIG is on, {count} instances")
    return in_parts([words, mig])


def _gpu(gpu: NvmlGpu) -> str:
    name = clean(gpu.device_name or "NVIDIA GPU")
    more: list[str] = []
    if gpu.compute_capability:
        version = clean(gpu.compute_capability)
        more.append(say("compute capability {version}", version=version))
    if gpu.memory_total_bytes:
        more.append(size(gpu.memory_total_bytes))
    if gpu.lost:
        more.append(say("lost"))
    return bracketed(name, in_line(more))


def _visible(snapshot: Snapshot) -> str:
    value = snapshot.get(Environment).get("CUDA_VISIBLE_DEVICES")
    if value is None:
        return ""
    count = snapshot.get(CudaDriver).device_count
    mask = "CUDA_VISIBLE_DEVICES"
    mask = f"{mask}={shown(value, mask)}" if len(value) <= _SHORT_MASK else mask
    if count is None:
        return say("{mask} is set", mask=mask)
    if count == len(snapshot.get(Nvml).gpus or ()):
        return ""  # it hides none
    only = snapshot.get(CudaDriver).devices or []
    if count == 1 and len(only) == 1 and only[0].device_name:
        return say("{mask} leaves {gpu} visible", mask=mask, gpu=clean(only[0].device_name))
    return say("{mask} leaves {count} visible", mask=mask, count=count)


def _driver(snapshot: Snapshot) -> Area:
    driver = snapshot.get(Driver)
    release = driver_release(snapshot)
    if release:
        words = [clean(release), *_supported_cuda(snapshot)]
        words += [_MODULES[driver.module_flavour]] if driver.module_flavour else []
        return Area("Driver", "ok", in_line(words))
    if snapshot.get(System).os == "macos":
        return Area("Driver", "none", say("there is no NVIDIA driver for this macOS"))
    wsl = snapshot.get(System).wsl
    if driver.module_loaded is False and wsl != _WSL_2:
        packages = listing(driver.packages or (), 60)
        installed = say("installed: {packages}", packages=packages) if packages else ""
        none = say("no NVIDIA kernel module is loaded")
        if snapshot.get(System).os == "windows":
            none = say("no NVIDIA driver is in use")
        return Area("Driver", "none", in_parts([none, installed]))
    nvml = snapshot.get(Nvml)
    if wsl == _WSL_2:
        silent = say("the driver of Windows did not answer")
        return Area("Driver", "unknown", bracketed(silent, _why(nvml, "driver_release")))
    reasons = _why(driver, "module_loaded"), _why(nvml, "driver_release")
    return Area("Driver", "unknown", _either(snapshot, *reasons))


def _supported_cuda(snapshot: Snapshot) -> list[str]:
    """Return up to which CUDA the driver goes, and whether this takes a cuda-compat library."""
    cuda = driver_cuda(snapshot)
    if not cuda:
        return []
    if is_by_compat(snapshot):
        return [say("supports CUDA up to {cuda} with cuda-compat", cuda=clean(cuda))]
    return [say("supports CUDA up to {cuda}", cuda=clean(cuda))]


def _torch(report: Report) -> Area:
    torch = report.snapshot.get(TorchBuild)
    if torch.installed is False:
        return Area("PyTorch", "none", _why_no_torch(torch.installs or []))
    if not torch.installed:
        return Area("PyTorch", "unknown", _why(torch, "installed"))
    build = _BUILDS.get(torch.built_for or "") or say("build of unknown kind")
    if torch.built_for == "cpu" and report.snapshot.get(System).os == "macos":
        build = say("build for macOS, with MPS")
    words = [clean(torch.version) if torch.version else say("of unknown version"), build]
    words += [f"CUDA {clean(torch.cuda)}"] if torch.cuda else []
    words += [f"cuDNN {clean(torch.cudnn)}"] if torch.cudnn else []
    words += [f"NCCL {clean(torch.nccl)}"] if torch.nccl else []
    if torch.installer:
        words.append(say("installed by {installer}", installer=clean(torch.installer)))
    return Area("PyTorch", _status_of_torch(torch, report), in_line(words))


def _status_of_torch(torch: TorchBuild, report: Report) -> Status:
    """Return the state of a PyTorch of which no finding speaks."""
    if not torch.version or not torch.built_for:
        return "unknown"
    waits_for_gpu = report.verdict == "broken" and gpu_names(report.snapshot)
    # Once the GPU works, this build is the next fault.
    return "note" if torch.built_for == "cpu" and waits_for_gpu else "ok"


def _why_no_torch(found: Sequence[TorchInstall]) -> str:
    first = found[0] if found else None
    if first is not None and first.path and any(install.kind == "package" for install in found):
        return say("installed, but Python imports {path} instead", path=clean(first.path))
    return say("not installed in this Python")


def _libraries(snapshot: Snapshot) -> Area:
    section = snapshot.get(CudaLibraries)
    if section.libraries is None:
        return Area("CUDA libraries", "unknown", _why(section, "libraries"))
    if not section.libraries:
        if snapshot.get(TorchBuild).built_for == "cuda":
            return Area(
                "CUDA libraries", "unknown", say("not found where they usually are; not checked")
            )
        return Area("CUDA libraries", "none", "")
    first = _first_of_each(section.libraries, snapshot.get(TorchBuild).cuda or "")
    main = [name for name in ("cudnn", "nccl", "cublas") if name in first]
    libraries_shown = [_library(first[name]) for name in main or list(first)[:3]]
    more = len(section.libraries) - len(libraries_shown)
    if more and libraries_shown:
        libraries_shown.append(say_many(more, "{count} further file", "{count} further files"))
    elif more:
        libraries_shown.append(say_many(more, "{count} file", "{count} files"))
    return Area("CUDA libraries", "ok", in_series(libraries_shown))


def _first_of_each(libraries: Sequence[CudaLibrary], cuda: str) -> dict[str, CudaLibrary]:
    """Return the first copy of each library; of cuBLAS the one for torch's CUDA, if there is one.

    Its file is named after the major of CUDA, and torch computes with the one of its own CUDA.
    """
    first: dict[str, CudaLibrary] = {}
    for library in libraries:
        kept = first.setdefault(library.library or "", library)
        if library.library == "cublas" and _major(library.version) == _major(cuda) != _major(
            kept.version
        ):
            first["cublas"] = library
    first.pop("", None)
    return first


def _major(version: str | None) -> str:
    return (version or "").partition(".")[0]


def _library(library: CudaLibrary) -> str:
    name = _IN_WORDS.get(library.library or "", library.library or "?")
    version = f" {clean(library.version)}" if library.version else ""
    via = library.found_via or ""
    return bracketed(f"{clean(name)}{version}", _PLACES.get(via) or clean(via))


def _toolkit(snapshot: Snapshot) -> Area:
    section = snapshot.get(Toolkits)
    if section.selected:
        at = clean(section.selected)
        version = section.selected_version
        if version:
            described = say("CUDA {version} at {path}", version=clean(version), path=at)
        else:
            described = say("CUDA of unknown version at {path}", path=at)
        via = section.selected_via if section.selected_via != section.selected else ""
        found = say("by {variable}", variable=phrase(clean(via))) if via else ""
        return Area("Toolkit", "ok", bracketed(described, found))
    if section.selected == "":
        return Area("Toolkit", "none", say("needed only to compile CUDA code"))
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
        say("in a container ({runtime})", runtime=container.runtime) if container.runtime else "",
    ]
    return Area("System", "ok", in_line([word for word in words if word]))


def _name_and_kernel(system: System) -> tuple[str, str]:
    """Return the system and its kernel; the kernel of Windows is its version, that of macOS Darwin.

    Older Pythons call Windows 11 "10": its build tells them apart.
    """
    name = clean(system.pretty_name or OS_NAMES[system.os or "linux"])
    kernel = clean(system.kernel or "")
    if system.os != "windows":
        if not kernel or system.os == "macos":
            return name, f"Darwin {kernel}" if kernel else ""
        return name, say("kernel {kernel}", kernel=kernel)
    version = clean(system.distribution_version or "")
    build = whole_number(version.rpartition(".")[2]) or 0
    if kernel == "10" and build >= _FIRST_BUILD_OF_WINDOWS_11:
        kernel = "11"
    return f"{name} {kernel}".strip(), say("version {version}", version=version) if version else ""


def _why(section: Facts, field: str) -> str:
    return without_status(section.problem(field), 160)


# The GPUs and the driver in a few words.

_COMPAT_REFUSED = 804
"""The result of ``cuInit`` if the GPU does not support the loaded cuda-compat library."""


def gpu_names(snapshot: Snapshot) -> list[str]:
    """Return the names of the GPUs that a CUDA program sees, otherwise of all GPUs."""
    cuda = snapshot.get(CudaDriver)
    if cuda.init_code == 0 and cuda.devices:
        return [device.device_name or "NVIDIA GPU" for device in cuda.devices]
    nvml = snapshot.get(Nvml).gpus
    if nvml:
        return [gpu.device_name or "NVIDIA GPU" for gpu in nvml]
    pci = snapshot.get(Pci)
    if pci.gpus:
        return [
            product_named(gpu.product)
            if gpu.product
            else say("NVIDIA device {id}", id=gpu.device_id or "?")
            for gpu in pci.gpus
        ]
    if pci.jetson_gpu:
        return [say("the GPU of a Jetson")]
    return list(snapshot.get(NvidiaSmi).gpu_names or [])


def driver_release(snapshot: Snapshot) -> str:
    """Return the release of the running driver, "" if unknown."""
    return (
        snapshot.get(Nvml).driver_release
        or snapshot.get(Driver).module_release
        or snapshot.get(NvidiaSmi).driver_release
        or ""
    )


def driver_cuda(snapshot: Snapshot) -> str:
    """Return the CUDA version that the driver reports, "" if it does not.

    With a cuda-compat library that CUDA refuses, it is the version of that library: it says nothing
    about the driver.
    """
    loaded = snapshot.get(CudaDriver)
    if loaded.init_code == _COMPAT_REFUSED:
        return ""
    return loaded.cuda or snapshot.get(Nvml).cuda or snapshot.get(NvidiaSmi).cuda or ""


def is_by_compat(snapshot: Snapshot) -> bool:
    """Whether a cuda-compat library, and not the driver's own, supports the reported CUDA."""
    loaded = snapshot.get(CudaDriver)
    has_compat = "compat" in (loaded.library or "").split("/")
    return bool(loaded.cuda) and loaded.cuda == driver_cuda(snapshot) and has_compat
