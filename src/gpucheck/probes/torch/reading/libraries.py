"""The CUDA, cuDNN and NCCL of a torch package, pinned or bundled."""

import re

from gpucheck.facts import Answer
from gpucheck.facts.torch_build import Platform
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import is_windows, join, name, pattern
from gpucheck.probes.torch.reading import binaries
from gpucheck.probes.torch.reading.conda import CondaRecord
from gpucheck.probes.torch.reading.files import TorchFiles
from gpucheck.probes.torch.reading.pins import exact

# Copies that auditwheel makes have 8 digits of a hash in their names.
_CARRIED = {
    "cudnn": ("libcudnn*.so*", r"libcudnn(?:-[0-9a-f]{8})?\.so\.([0-9]+(?:\.[0-9]+)*)"),
    "nccl": ("libnccl*.so*", r"libnccl(?:-[0-9a-f]{8})?\.so\.([0-9]+(?:\.[0-9]+)*)"),
}
_CUDNN_DLL = r"cudnn64_([0-9]+)\.dll"
_CUDNN_IN_BUILD = r"cudnn([0-9]+(?:\.[0-9]+)*)"
_CONDA_NAMES = {"cudnn": ("cudnn", "libcudnn"), "nccl": ("nccl",)}


class Libraries:
    """The libraries of one torch package.

    Args:
        host: the machine.
        package: the location of torch.
        prefix: the prefix of the interpreter; conda-forge installs torch's libraries there.
        built_for: "cuda", another platform, or None if unknown.
    """

    def __init__(
        self, host: Host, package: TorchFiles, prefix: str, built_for: Platform | None
    ) -> None:
        self._host = host
        self._lib = join(package.path, "lib")
        self._prefix = prefix
        self._built_for = built_for

    def arch_list(self) -> Answer[list[str]]:
        """Return the codes compiled in; [] for a build without CUDA."""
        if self._built_for is None:
            return Answer(None, self._lib, say("the platform that torch was built for is unknown"))
        if self._built_for != "cuda":
            return Answer([], say("torch/version.py: it is not a CUDA build"))
        path = self._find("torch_python")
        if path is None:
            return Answer(None, self._lib, say("there is no {library}", library="libtorch_python"))
        return binaries.arch_list(self._host, path)

    def has_cuda(self) -> Answer[bool]:
        """Whether the library with the CUDA code exists."""
        path = self._find("torch_cuda") or self._find("torch_cuda_cpp")
        if path is not None:
            return Answer(value=True, source=path)
        return self._host.stat(self._lib).map(lambda _stat: False)

    def mapped_bytes(self) -> Answer[int]:
        """Return how much of the address space the libraries of an import take, if it is limited.

        Those with the code for the CPU and for CUDA are nearly all of it.
        """
        limited = self._host.origin == "live" and self._host.limits().address_space_bytes
        if not limited or limited < 0:
            return Answer(None, self._lib, say("the address space is not known to be limited"))
        from gpucheck.machine.binaries.elf import mapped_bytes  # noqa: PLC0415  # rarely needed

        names = ("torch_cpu", "torch_cuda", "torch_cuda_linalg")
        found = [path for name in names if (path := self._find(name)) is not None]
        return Answer(sum(mapped_bytes(self._host, path) for path in found), self._lib)

    def cxx11_abi(self) -> Answer[bool]:
        """Whether std::string is that of C++11; on Linux only."""
        if is_windows(self._lib):
            return Answer(None, self._lib, say("Windows has only one C++ ABI"))
        path = self._find("c10")
        if path is None:
            return Answer(None, self._lib, say("there is no {library}", library="libc10"))
        return binaries.cxx11_abi(self._host, path)

    def cudnn(self, pins: Answer[dict[str, str]], conda: list[CondaRecord]) -> Answer[str]:
        """Return the cuDNN that is pinned or bundled; "" if there is neither."""
        found = self._pinned_or_carried("cudnn", pins)
        if found is not None:
            return found
        dlls = self._host.glob(pattern(self._lib, "cudnn64_*.dll")).value or ()
        for path in dlls:
            match = re.fullmatch(_CUDNN_DLL, name(path))
            if match:
                return Answer(match.group(1), path)
        for record in conda:
            match = (
                re.search(_CUDNN_IN_BUILD, record.build) if record.project == "pytorch" else None
            )
            if match:
                return Answer(match.group(1), record.path)
        return self._in_conda("cudnn", conda) or self._neither(pins)

    def nccl(self, pins: Answer[dict[str, str]], conda: list[CondaRecord]) -> Answer[str]:
        """Return the NCCL that is pinned or bundled; "" for a build without NCCL."""
        found = self._pinned_or_carried("nccl", pins)
        if found is not None:
            return found
        if is_windows(self._lib):
            return Answer("", say("Windows builds have no NCCL"))
        inside = Answer[str](
            None, self._lib, say("it is compiled into libtorch_cuda, and no file names its version")
        )
        return self._in_conda("nccl", conda) or inside

    def _pinned_or_carried(self, library: str, pins: Answer[dict[str, str]]) -> Answer[str] | None:
        if self._built_for is None:
            return Answer(None, self._lib, say("the platform that torch was built for is unknown"))
        if self._built_for != "cuda":
            return Answer("", say("torch/version.py: it is not a CUDA build"))
        for project, specifier in (pins.value or {}).items():
            if project.startswith(f"nvidia-{library}"):
                return Answer(exact(specifier) or specifier, pins.source)
        files, shape = _CARRIED[library]
        carried = [
            (match.group(1), path)
            for path in self._host.glob(pattern(self._lib, files)).value or ()
            if (match := re.fullmatch(shape, name(path)))
        ]
        return Answer(*max(carried, key=lambda found: len(found[0]))) if carried else None

    def _in_conda(self, library: str, conda: list[CondaRecord]) -> Answer[str] | None:
        """Return the version that conda has installed for its own torch."""
        if not any(record.project == "pytorch" for record in conda):
            return None
        records = [r for r in conda if r.project in _CONDA_NAMES[library]]
        return Answer(records[0].version, records[0].path) if records else None

    def _neither(self, pins: Answer[dict[str, str]]) -> Answer[str]:
        if pins.value is None:
            return Answer(None, pins.source, pins.problem)
        return Answer("", f"{pins.source}, {self._lib}")

    def _find(self, stem: str) -> str | None:
        """Return the path of one of torch's own libraries, such as ``torch_python``."""
        paths = (
            join(self._lib, f"lib{stem}.so"),
            join(self._lib, f"{stem}.dll"),
            join(self._lib, f"lib{stem}.dylib"),
            join(self._prefix, "lib", f"lib{stem}.so"),
            join(self._prefix, "Library", "bin", f"{stem}.dll"),
        )
        return next((path for path in paths if self._host.exists(path).value), None)
