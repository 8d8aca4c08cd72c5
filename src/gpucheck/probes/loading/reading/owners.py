"""The owner of a library: a wheel, torch, conda, a toolkit, the system or the driver."""

import posixpath
import re

from gpucheck.facts.libraries import Owner
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.machine import Host
from gpucheck.machine.paths import join

CUDA_STEMS = frozenset(
    (
        "cudart", "cublas", "cublasLt", "cudnn", "cufft", "cufftw", "cufile", "cupti", "curand",
        "cusolver", "cusolverMg", "cusparse", "cusparseLt", "nccl", "nvJitLink", "nvrtc",
        "nvrtc-builtins", "nvshmem_host", "nvToolsExt", "nvperf_host", "nccl-net", "nccl-tuner",
        "cudla", "nvtx3interop",
    )
)  # fmt: skip
"""Names of CUDA's libraries, without ``lib`` and ``.so``."""
_BASIC = frozenset(("c", "stdc++", "gomp", "iomp5", "omp", "gcc_s", "cuda", "nvidia-ml"))
_DRIVER = r"lib(?:cuda|nvidia-[a-z-]+|nvcuvid)\.so(?:\.[0-9.]+)?"
_DRIVER_FOLDER = r"/usr/lib/(?:[a-z0-9_]+-linux-gnu/(?:nvidia|tegra)|wsl/lib)/"
"""Folders of the driver's libraries; on a Jetson and on WSL they contain nothing else."""
_HASH = r"-[0-9a-f]{8}\Z"
_TOOLKIT = (
    r"(?:/usr/local/cuda[^/]*|/opt/cuda[^/]*|/usr/lib/cuda|.*/hpc_sdk/.*|.*/targets/[a-z0-9_-]+-linux)"
    r"/.*"
)
_SYSTEM = r"/(?:usr/)?(?:local/)?lib(?:32|64)?/.*|/nix/store/.*|/run/.*"
_OWN = r"(?:c10|torch|caffe2|shm)(?:_[a-z_]+)?|nvfuser_codegen"


def stem(soname: str) -> str:
    """Return the name without ``lib``, ``.so``, everything after it, and a wheel's hash."""
    return re.sub(_HASH, "", soname.partition(".so")[0].removeprefix("lib"))


def library_name(soname: str) -> str:
    """Return the short name of a relevant library; "" for any other."""
    name = stem(soname)
    if (
        name in CUDA_STEMS
        or name in _BASIC
        or name.startswith("cudnn_")
        or re.fullmatch(_OWN, name)
    ):
        return "nvshmem" if name == "nvshmem_host" else name
    return ""


def is_cuda(soname: str) -> bool:
    """Whether it is one of CUDA's libraries, including cuDNN and NCCL; libcuda is the driver's."""
    return stem(soname) in CUDA_STEMS or stem(soname).startswith("cudnn_")


class Owners:
    """Determines the owner of a file of the target."""

    def __init__(self, host: Host, interpreter: Interpreter, torch: TorchBuild) -> None:
        self._torch = self._both(host, torch.path)
        entries = [entry for entry in interpreter.sys_path or [] if "-packages" in entry]
        self._packages = tuple(path for entry in entries for path in self._both(host, entry))
        conda = interpreter.prefix if interpreter.kind == "conda" else None
        self._conda = self._both(host, join(conda, "lib") if conda else None)

    def owner(self, soname: str, path: str, real_path: str) -> Owner:
        """Return the owner of the file; the path with links resolved decides first."""
        if re.fullmatch(_DRIVER, soname) or re.match(_DRIVER_FOLDER, real_path):
            return "driver"
        for spelling in (real_path, posixpath.normpath(path)):
            if spelling.startswith(self._torch):
                return "torch"
            if spelling.startswith(self._packages):
                return "wheel"
        if self._conda and real_path.startswith(self._conda):
            return "conda"
        if re.fullmatch(_TOOLKIT, real_path):
            return "toolkit"
        return "system" if re.fullmatch(_SYSTEM, real_path) else "other"

    @staticmethod
    def _both(host: Host, folder: str | None) -> tuple[str, ...]:
        if not folder:
            return ()
        real = host.real_path(folder).value or folder
        return tuple(dict.fromkeys(f"{spelling.rstrip('/')}/" for spelling in (real, folder)))
