"""Why a compiled package cannot be loaded beside the installed torch."""

import msgspec

from gpucheck.facts import UnknownFactError
from gpucheck.findings import Confidence, Severity
from gpucheck.probes.packages import Packages
from gpucheck.probes.torch_build import TorchBuild
from gpucheck.views import Gpus, View
from gpucheck.views.extension_packages import CompiledPackage, File

_OF_TORCH = ("libtorch", "libc10", "libcaffe2")
_BY_TORCHS_CUDA = ("bitsandbytes",)
"""Packages without a line of PyTorch in them that load their library for torch's CUDA."""
_GO_ON_WITHOUT = ("torchao",)
"""Packages that say so and go on when their compiled code cannot be loaded."""
_LOAD_CUDA_THEMSELVES = ("transformer-engine", "transformer-engine-torch")


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong, in words that follow the name of the package."""

    words: str
    evidence: tuple[str, ...]
    severity: Severity = Severity.ERROR
    confidence: Confidence = Confidence.CERTAIN


class ExtensionFaults(View):
    """Judges the files of a compiled package."""

    def __init__(self, torch: TorchBuild, gpus: Gpus, packages: Packages) -> None:
        self._torch = torch
        self._gpus = gpus
        self._packages = packages

    def of(self, package: CompiledPackage) -> Fault | None:
        """Return what keeps the package from being loaded; None when nothing is known to."""
        fault = self._found(package)
        if fault is None or package.name not in _GO_ON_WITHOUT:
            return fault
        # Its compiled code is for CUDA alone: with another build nothing is missed.
        for_cuda = self._torch.built_for == "cuda"
        return msgspec.structs.replace(fault, severity=Severity.WARNING) if for_cuda else None

    def is_open(self, package: CompiledPackage) -> bool:
        """Whether it is not known what the package lacks."""
        return any(
            file.extension.needs_torch and file.extension.missing_symbols is None
            for file in package.files
        )

    def _found(self, package: CompiledPackage) -> Fault | None:
        of_torch = [file for file in package.files if file.extension.needs_torch]
        judges = (self._for_cuda_build, self._other_strings, self._other_torch)
        for judge in judges:
            for file in of_torch:
                if (fault := judge(file)) is not None:
                    return fault
        if package.name in _BY_TORCHS_CUDA:
            return self._without_this_cuda(package)
        if package.name in _LOAD_CUDA_THEMSELVES:
            return None
        return next((found for file in of_torch if (found := self._other_cuda(file))), None)

    def _for_cuda_build(self, file: File) -> Fault | None:
        """Return the fault of a file that was built for CUDA beside a CPU build."""
        missing = [
            one for one in file.extension.missing_libraries or () if one.startswith(_OF_TORCH)
        ]
        if not missing:
            return None
        build = {"cpu": "a CPU build", "rocm": "a ROCm build", "xpu": "an XPU build"}.get(
            self._torch.built_for or ""
        )
        if build is None:
            words = f"needs {missing[0]}, which torch {self._torch.version} does not have"
            return Fault(words=words, evidence=(f"{file.fact}.missing_libraries",))
        return Fault(
            words=f"was compiled for a CUDA build of PyTorch (it needs {missing[0]}), and torch "
            f"{self._torch.version} is {build}",
            evidence=(f"{file.fact}.missing_libraries", "torch.built_for"),
            severity=Severity.ERROR if self._may_have_gpu() else Severity.WARNING,
        )

    def _may_have_gpu(self) -> bool:
        try:
            return self._gpus.present()
        except UnknownFactError:
            return True

    def _other_strings(self, file: File) -> Fault | None:
        abi, here = file.extension.cxx11_abi, self._torch.cxx11_abi
        if not file.extension.missing_symbols or abi is None or here is None or abi == here:
            return None
        kinds = {True: "the strings of C++11", False: "the strings of before C++11"}
        return Fault(
            words=f"was compiled with {kinds[abi]}, torch {self._torch.version} with "
            f"{kinds[here]}: it lacks {_lacking(file)}",
            evidence=(f"{file.fact}.missing_symbols", f"{file.fact}.cxx11_abi", "torch.cxx11_abi"),
        )

    def _other_torch(self, file: File) -> Fault | None:
        if not file.extension.missing_symbols:
            return None
        return Fault(
            words=f"was compiled for another PyTorch: torch {self._torch.version} lacks "
            f"{_lacking(file)}",
            evidence=(f"{file.fact}.missing_symbols",),
        )

    def _other_cuda(self, file: File) -> Fault | None:
        needed, here = file.extension.cuda, (self._torch.cuda or "").partition(".")[0]
        missing = file.extension.missing_libraries
        if not needed or not here or needed == here or not missing:
            return None
        stray = self._has_runtime_of(needed)
        return Fault(
            words=f"was compiled for CUDA {needed}, and nothing leads the loader to {missing[0]}: "
            f"torch {self._torch.version} brings CUDA {here}",
            evidence=(f"{file.fact}.missing_libraries", "torch.cuda"),
            confidence=Confidence.LIKELY if stray else Confidence.CERTAIN,
        )

    def _has_runtime_of(self, major: str) -> bool:
        """Whether the wheel of a CUDA runtime is installed; from 13 on its name has no number."""
        unnumbered = self._packages.find("nvidia-cuda-runtime")
        return self._packages.find(f"nvidia-cuda-runtime-cu{major}") is not None or (
            unnumbered is not None and (unnumbered.version or "").startswith(f"{major}.")
        )

    def _without_this_cuda(self, package: CompiledPackage) -> Fault | None:
        here = (self._torch.cuda or "").partition(".")[0]
        with_cuda = [file for file in package.files if file.extension.cuda]
        if self._torch.built_for != "cuda" or not here or not with_cuda:
            return None
        majors = sorted({file.extension.cuda or "" for file in with_cuda}, key=int)
        if here in majors:
            return None
        return Fault(
            words=f"has libraries for CUDA {' and '.join(majors)} only, and torch "
            f"{self._torch.version} is built for CUDA {self._torch.cuda}",
            evidence=(f"{with_cuda[0].fact}.cuda", "torch.cuda"),
        )


def _lacking(file: File) -> str:
    names = file.extension.missing_symbols or []
    count = file.extension.missing_symbol_count or len(names)
    more = f" and {count - 1} more symbols" if count > 1 else ""
    return f"{names[0]}{more}"
