"""The reason why a compiled package cannot be loaded with the installed torch."""

import msgspec

from gpucheck.derived import Derived, Gpus
from gpucheck.derived.extensions import CompiledPackage, File
from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.torch import Packages, TorchBuild
from gpucheck.language import listed, say, say_many
from gpucheck.tables.packages import KnownPackages

_OF_VISUAL_CPP = ("vcruntime140", "msvcp140", "concrt140", "vcomp140")
_BUILDS = {
    "cpu": say("a CPU build"),
    "rocm": say("a ROCm build"),
    "xpu": say("an XPU build"),
}
_OF_TORCH = ("libtorch", "libc10", "libcaffe2", "torch", "c10", "caffe2")


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong, in words that follow the name of the package."""

    words: str
    evidence: tuple[str, ...]
    severity: Severity = Severity.ERROR
    confidence: Confidence = Confidence.CERTAIN
    of_system: str = ""
    """The missing library of the system, if that is the fault."""


class ExtensionFaults(Derived):
    """Judges the files of a compiled package.

    Only a file that is linked with torch is at fault for a library that the loader alone does not
    find. Other files may have their libraries loaded by their package on first use, which does not
    concern PyTorch.
    """

    def __init__(
        self, torch: TorchBuild, gpus: Gpus, packages: Packages, known: KnownPackages
    ) -> None:
        self._torch = torch
        self._gpus = gpus
        self._packages = packages
        self._known = known

    def of(self, package: CompiledPackage) -> Fault | None:
        """Return what prevents the package from being loaded; None if nothing is known to."""
        fault = self._found(package)
        row = self._known.known(package.name)
        if fault is None or row is None or not row.goes_on_without:
            return fault
        # Its compiled code is only for CUDA: with another build nothing is missing.
        for_cuda = self._torch.built_for == "cuda"
        return msgspec.structs.replace(fault, severity=Severity.WARNING) if for_cuda else None

    def open_fact(self, package: CompiledPackage) -> str:
        """Return the fact that leaves open what the package lacks; "" if none does."""
        for file in package.files:
            extension = file.extension
            if not extension.needs_torch:
                continue
            if extension.missing_symbols is None:
                return f"{file.fact}.missing_symbols"
            if extension.missing_libraries is None:
                return f"{file.fact}.missing_libraries"
            if extension.loads_missing and self._other_cuda(file) is not None:
                return f"{file.fact}.loads_missing"
        return ""

    def _found(self, package: CompiledPackage) -> Fault | None:
        """Return the first fault; a fault that does not prevent use of the package comes last."""
        of_torch = [file for file in package.files if file.extension.needs_torch]
        judges = (
            self._for_cuda_build,
            self._other_strings,
            self._other_torch,
            self._other_cuda,
            self._without_runtime,
        )
        for indispensable in (True, False):
            files = [file for file in of_torch if _is_indispensable(file) is indispensable]
            for judge in judges:
                for file in files:
                    fault = judge(file)
                    if fault is None or (
                        judge == self._other_cuda and file.extension.loads_missing
                    ):
                        continue
                    return fault if indispensable else _mentioned(file, fault)
        row = self._known.known(package.name)
        return (
            self._without_this_cuda(package) if row is not None and row.library_per_cuda else None
        )

    def _for_cuda_build(self, file: File) -> Fault | None:
        """Return the fault of a file that was built for CUDA, with a CPU build of torch."""
        missing = [
            soname
            for soname in file.extension.missing_libraries or ()
            if soname.startswith(_OF_TORCH)
        ]
        if not missing:
            return None
        build = _BUILDS.get(self._torch.built_for or "")
        if build is None:
            words = say(
                "needs {library}, which torch {version} does not have",
                library=missing[0],
                version=self._torch.version,
            )
            return Fault(words=words, evidence=(f"{file.fact}.missing_libraries",))
        return Fault(
            words=say(
                "was compiled for a CUDA build of PyTorch (it needs {library}), and torch "
                "{version} is {build}",
                library=missing[0],
                version=self._torch.version,
                build=build,
            ),
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
        lacking, version = _lacking(file), self._torch.version
        return Fault(
            words=say(
                "was compiled with the string type of C++11, and torch {version} with the older "
                "one: it lacks {symbols}",
                version=version,
                symbols=lacking,
            )
            if abi
            else say(
                "was compiled with the string type from before C++11, and torch {version} with "
                "that of C++11: it lacks {symbols}",
                version=version,
                symbols=lacking,
            ),
            evidence=(*_symbols(file), f"{file.fact}.cxx11_abi", "torch.cxx11_abi"),
        )

    def _other_torch(self, file: File) -> Fault | None:
        if not file.extension.missing_symbols:
            return None
        return Fault(
            words=say(
                "was compiled for another PyTorch: torch {version} lacks {symbols}",
                version=self._torch.version,
                symbols=_lacking(file),
            ),
            evidence=_symbols(file),
        )

    def _other_cuda(self, file: File) -> Fault | None:
        needed, here = file.extension.cuda, (self._torch.cuda or "").partition(".")[0]
        lost = file.extension.missing_libraries or ()
        missing = [soname for soname in lost if not soname.startswith(_OF_VISUAL_CPP)]
        if not needed or not here or needed == here or not missing:
            return None
        stray = self._has_runtime_of(needed)
        return Fault(
            words=say(
                "was compiled for CUDA {needed}, and the loader does not find {library}: torch "
                "{version} brings CUDA {cuda}",
                needed=needed,
                library=missing[0],
                version=self._torch.version,
                cuda=here,
            ),
            evidence=(f"{file.fact}.missing_libraries", "torch.cuda"),
            confidence=Confidence.LIKELY if stray else Confidence.CERTAIN,
        )

    def _without_runtime(self, file: File) -> Fault | None:
        """Return the fault of a file that lacks a DLL of the Visual C++ runtime."""
        lost = file.extension.missing_libraries or ()
        missing = next((soname for soname in lost if soname.startswith(_OF_VISUAL_CPP)), "")
        if not missing:
            return None
        return Fault(
            words=say(
                "needs {library} of Microsoft's Visual C++ runtime, which is not installed",
                library=missing,
            ),
            evidence=(f"{file.fact}.missing_libraries",),
            of_system=missing,
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
            words=say(
                "has only libraries for CUDA {majors}, and torch {version} is built for CUDA "
                "{cuda}",
                majors=listed(majors),
                version=self._torch.version,
                cuda=self._torch.cuda,
            ),
            evidence=(f"{with_cuda[0].fact}.cuda", "torch.cuda"),
        )


def _is_indispensable(file: File) -> bool:
    """Whether the package cannot be used without the file, as far as the files show."""
    return not file.is_variant and not file.extension.optional


def _mentioned(file: File, fault: Fault) -> Fault:
    """Return the fault of a file that has alternatives, as information."""
    if file.extension.optional:
        words = say(
            "has {file}, which {fault}; the package works without PyTorch, and only this file "
            "needs it",
            file=file.extension.file,
            fault=fault.words,
        )
    else:
        words = say(
            "has {file}, which {fault}; the package has several files of this kind, and uses one "
            "or none",
            file=file.extension.file,
            fault=fault.words,
        )
    return msgspec.structs.replace(
        fault,
        words=words,
        severity=Severity.INFO,
        confidence=Confidence.LIKELY,
    )


def _symbols(file: File) -> tuple[str, ...]:
    """Return the facts about missing symbols: also how many, where only some of them are listed."""
    names, count = file.extension.missing_symbols or [], file.extension.missing_symbol_count or 0
    some = f"{file.fact}.missing_symbols"
    return (some, f"{file.fact}.missing_symbol_count") if count > len(names) else (some,)


def _lacking(file: File) -> str:
    names = file.extension.missing_symbols or []
    count = file.extension.missing_symbol_count or len(names)
    if count <= 1:
        return names[0]
    return say_many(
        count - 1,
        "{symbol} and one more symbol",
        "{symbol} and {count} more symbols",
        symbol=names[0],
    )
