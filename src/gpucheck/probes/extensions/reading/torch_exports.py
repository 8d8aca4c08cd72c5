"""What torch's own libraries provide to an extension: their symbols and the libraries they load."""

from collections.abc import Iterable

from gpucheck.facts import Answer
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.binaries.elf import Elf, missing_symbols, read_elf
from gpucheck.machine.paths import join, name, pattern

OWN_STEMS = (
    "c10", "c10_cuda", "c10_hip", "c10_xpu", "caffe2_nvrtc", "nvfuser_codegen", "shm", "torch",
    "torch_cpu", "torch_cuda", "torch_cuda_cpp", "torch_cuda_cu", "torch_cuda_linalg",
    "torch_global_deps", "torch_hip", "torch_nvshmem", "torch_python", "torch_xpu",
    "torch_xpu_ops",
)  # fmt: skip
"""Names of PyTorch's own libraries, without platform-specific parts."""
_OWN = frozenset(f"lib{stem}.so" for stem in OWN_STEMS)
_GLOBS = ("libc10*.so", "libtorch*.so", "libcaffe2*.so", "libnvfuser*.so", "libshm.so")
_INDISPENSABLE = ("libc10.so", "libtorch_cpu.so")
_FIRST = (
    "libc10.so",
    "libtorch_cpu.so",
    "libtorch_python.so",
    "libc10_cuda.so",
    "libtorch_cuda.so",
)


class TorchLibraries:
    """The libraries of one torch package; conda keeps them in the library folder of its prefix."""

    def __init__(self, host: Host, package: str, prefix: str) -> None:
        self._host = host
        self._lib = join(package, "lib")
        found: dict[str, str] = {}
        for folder in (self._lib, join(prefix, "lib")) if prefix else (self._lib,):
            for stem in _GLOBS:
                for path in host.glob(pattern(folder, stem)).value or ():
                    if self.are(name(path)):
                        found.setdefault(name(path), path)
        ranked = [soname for soname in _FIRST if soname in found] + [
            o for o in found if o not in _FIRST
        ]
        self._paths = {soname: found[soname] for soname in ranked}
        self._read: dict[str, Elf | None] = {}

    @staticmethod
    def are(soname: str) -> bool:
        """Whether a library is one of PyTorch's own, by its name."""
        return soname in _OWN

    def has(self, soname: str) -> bool:
        """Whether torch has this library."""
        return soname in self._paths

    def complaint(self) -> str:
        """Return why its symbols are unknown; "" if they are known."""
        for library in _INDISPENSABLE:
            if self._elf(library) is None:
                return say("{folder} has no readable {library}", folder=self._lib, library=library)
        return ""

    def needed(self) -> set[str]:
        """Return the SONAMEs that torch's libraries need: they are loaded before an extension."""
        elves = [self._elf(soname) for soname in self._paths]
        return {soname for elf in elves if elf is not None for soname in elf.needed}

    def lacks(self, symbols: Iterable[str]) -> Answer[set[str]]:
        """Return the symbols that none of torch's libraries defines."""
        left = set(symbols)
        for soname in self._paths:
            elf = self._elf(soname)
            if not left or elf is None:
                continue
            answer = missing_symbols(self._host, elf, left)
            if answer.value is None:
                return answer
            left = answer.value
        return Answer(left, self._lib)

    def _elf(self, soname: str) -> Elf | None:
        if soname not in self._read:
            path = self._paths.get(soname)
            self._read[soname] = read_elf(self._host, path).value if path is not None else None
        return self._read[soname]
