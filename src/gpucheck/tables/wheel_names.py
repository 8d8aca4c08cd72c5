"""The names of NVIDIA's wheels: which library is in which wheel, and for which CUDA."""

import re
from collections.abc import Collection

_SUFFIX = r"-cu([0-9]{2})\Z"
_WHEELS = {
    "cudnn": "nvidia-cudnn", "nccl": "nvidia-nccl", "cudart": "nvidia-cuda-runtime",
    "cublas": "nvidia-cublas", "cublasLt": "nvidia-cublas", "nvrtc": "nvidia-cuda-nvrtc",
    "nvJitLink": "nvidia-nvjitlink", "cusparse": "nvidia-cusparse",
    "cusparseLt": "nvidia-cusparselt", "cusolver": "nvidia-cusolver", "cufft": "nvidia-cufft",
    "curand": "nvidia-curand", "cupti": "nvidia-cuda-cupti", "nvshmem": "nvidia-nvshmem",
    "cufile": "nvidia-cufile", "nvToolsExt": "nvidia-nvtx", "nvtx3interop": "nvidia-nvtx",
}  # fmt: skip
_KEPT_COMPATIBLE = (
    "nvidia-cublas", "nvidia-cuda-cupti", "nvidia-cuda-nvrtc", "nvidia-cuda-runtime",
    "nvidia-cudnn", "nvidia-cufft", "nvidia-cufile", "nvidia-curand", "nvidia-cusolver",
    "nvidia-cusparse", "nvidia-nccl", "nvidia-nvjitlink", "nvidia-nvtx",
)  # fmt: skip
"""Wheels whose newer releases are compatible with older ones of the same major version."""
_UNNUMBERED_FROM = 13
"""From this CUDA on, the wheels of CUDA's own libraries have no number in their names."""
_ONE_PLACE = ("nvidia-cudnn", "nvidia-cusparselt", "nvidia-nccl", "nvidia-nvshmem")
"""Wheels that write the same files for every CUDA."""
_ONE_PLACE_BEFORE_13 = ("nvidia-curand", "nvidia-cusolver", "nvidia-nvtx")
"""Wheels of CUDA's own libraries whose sonames CUDA 11 and 12 share."""
_TRITON_FOLDER = (
    "triton", "pytorch-triton", "pytorch-triton-rocm", "pytorch-triton-xpu", "triton-rocm",
    "triton-xpu",
)  # fmt: skip
"""Wheels that write the folder ``triton``; CUDA builds of PyTorch require the first one."""
_LIBRARY = r"lib([A-Za-z0-9]+)(?:[_-][A-Za-z0-9_-]+)?\.so"


def wheel_of(library: str) -> str | None:
    """Return the wheel of a library ("cublas"), without the CUDA suffix."""
    return _WHEELS.get(library)


def wheel_of_file(file: str) -> str | None:
    """Return the wheel of a library file such as ``libcudnn_ops.so.9``, without the CUDA suffix."""
    match = re.match(_LIBRARY, file)
    return wheel_of(match.group(1)) if match else None


def stem(project: str) -> str:
    """Return a project name without the CUDA suffix: ``nvidia-cudnn``."""
    return re.sub(_SUFFIX, "", project)


def cuda_of(project: str) -> str:
    """Return the CUDA major of a project ("12"); "" if its name has none, from CUDA 13 on."""
    match = re.search(_SUFFIX, project)
    return match.group(1) if match else ""


def wheel_for_cuda(wheel: str, major: str) -> str:
    """Return the project of a CUDA library's wheel ("nvidia-cublas") for a CUDA major."""
    return f"{wheel}-cu{major}" if int(major) < _UNNUMBERED_FROM else wheel


def is_kept_compatible(project: str) -> bool:
    """Whether newer releases of a wheel are compatible with older ones of the same major."""
    return stem(project) in _KEPT_COMPATIBLE


def overwritten_by(major: str, projects: Collection[str]) -> list[str]:
    """Return the projects whose files the wheels of a PyTorch for a CUDA major overwrite.

    If they are removed after that, the files of the new wheels are gone.
    """
    before = _ONE_PLACE_BEFORE_13 if int(major) < _UNNUMBERED_FROM else ()
    found = [
        project
        for project in projects
        if cuda_of(project) not in {"", major} and stem(project) in (*_ONE_PLACE, *before)
    ]
    tritons = [project for project in projects if project in _TRITON_FOLDER]
    return found + (tritons if set(tritons) - {"triton"} else [])
