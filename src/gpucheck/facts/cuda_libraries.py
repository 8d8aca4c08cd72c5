"""cuDNN, NCCL and the CUDA libraries on disk: wheels, conda, toolkits, the system."""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say

FoundVia = Literal["wheel", "conda", "torch", "toolkit", "system", "LD_LIBRARY_PATH"]


class CudaLibrary(Facts, frozen=True, kw_only=True):
    """One library file."""

    library: str | None = None
    """``cudnn``, ``nccl``, ``cudart``, ``cublas`` ..."""
    version: str | None = None
    """As complete as metadata, headers or the file name allow: ``9.19.0``, ``12``."""
    path: Annotated[str | None, Private("path")] = None
    found_via: FoundVia | None = None
    package: str | None = None
    """The distribution that owns it, such as ``nvidia-cudnn-cu12``; "" if unknown."""


class CudaLibraries(Section, frozen=True, kw_only=True):
    """Every copy that was found; those in wheels come first."""

    name: ClassVar[str] = "cuda_libraries"
    subject = say(
        "cuDNN, NCCL and the CUDA libraries on disk: wheels, conda, toolkits, the system."
    )

    libraries: list[CudaLibrary] | None = None
