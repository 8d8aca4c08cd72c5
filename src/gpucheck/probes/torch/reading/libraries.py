"""The CUDA, cuDNN and NCCL of a torch package, pinned or bundled."""

import re

from gpucheck.facts import Answer
from gpucheck.facts.torch import Platform
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import is_windows, join, name, pattern
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

_CODE = rb"(?:sm|compute)_[0-9]{2,3}[af]?"
# Between zero bytes: the whole constant, not a part of a message.
_ARCH_LIST = rb"\x00(" + _CODE + rb"(?: " + _CODE + rb")*)\x00"
_LONG_LIST = _CODE + rb"(?: " + _CODE + rb"){2,31}(?=\x00)"
"""So many codes in a row, up to the end of a string, are not a coincidence."""
_CHECK_FAIL = b"torchCheckFailEPKcS2_jRK"
"""Prefix of a symbol of libc10 whose last argument is a std::string."""
_NEW_STRING = b"NSt7__cxx11"
_OLD_STRING = b"Ss"


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
        return _arch_list(self._host, path)

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
        return _cxx11_abi(self._host, path)

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


def _arch_list(host: Host, path: str) -> Answer[list[str]]:
    """Return the result of ``torch.cuda.get_arch_list()``: the codes the build was made for.

    The build writes them as one constant into libtorch_python: ``sm_80 sm_90 compute_90``. If there
    are several different constants of this form, the answer is unknown.
    """
    for start in (b"\x00sm_", b"\x00compute_"):
        hits = host.find_in_file(path, start, section=".rodata")
        if hits.value is None:
            return Answer(None, hits.source, hits.problem, hits.missing)
        found = {match for hit in hits.value for match in re.findall(_ARCH_LIST, hit)}
        lists = [match for match in found if b" " in match] or list(found)
        if len(lists) == 1:
            return Answer(lists[0].decode().split(" "), hits.source)
        if lists:
            return Answer(
                None, path, say("it has {count} lists of architectures", count=len(lists))
            )
    return _after_other_bytes(host, path)


def _after_other_bytes(host: Host, path: str) -> Answer[list[str]]:
    """Find a list that does not start a string: a compiler may place it after other bytes."""
    hits = host.find_in_file(path, b" sm_", section=".rodata")
    found = {match for hit in hits.value or () for match in re.findall(_LONG_LIST, hit)}
    # Each code of the list is a match of its own; the later ones have only the rest of the list.
    lists = [
        codes for codes in found if not any(codes != other and codes in other for other in found)
    ]
    if len(lists) == 1:
        return Answer(lists[0].decode().split(" "), hits.source)
    return Answer(None, path, say("it has no list of architectures"))


def _cxx11_abi(host: Host, path: str) -> Answer[bool]:
    """Whether torch was built with C++11 strings, from the symbols of libc10."""
    hits = host.find_in_file(path, _CHECK_FAIL, context=len(_NEW_STRING), section=".dynstr")
    return hits.map(_abi)


def _abi(hits: list[bytes]) -> bool | None:
    ends = [hit.partition(_CHECK_FAIL)[2] for hit in hits]
    if any(end.startswith(_NEW_STRING) for end in ends):
        return True
    return False if any(end.startswith(_OLD_STRING) for end in ends) else None
