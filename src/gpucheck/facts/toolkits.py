"""CUDA toolkits on disk, the one that a build would use, and the host compilers."""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say

FoundVia = Literal["CUDA_HOME", "PATH", "/usr/local", "conda", "wheel", "distribution"]


class Toolkit(Facts, frozen=True, kw_only=True):
    """One CUDA toolkit or a part of one."""

    path: Annotated[str | None, Private("path")] = None
    version: str | None = None
    """``12.4`` or ``12.4.1``, as complete as its files allow."""
    has_nvcc: bool | None = None
    has_headers: bool | None = None
    has_cudart: bool | None = None
    found_via: FoundVia | None = None


class Compiler(Facts, frozen=True, kw_only=True):
    """A host compiler on PATH."""

    command: str | None = None
    path: Annotated[str | None, Private("path")] = None
    version: str | None = None


class Toolkits(Section, frozen=True, kw_only=True):
    """The toolkits and compilers that the build of an extension would find."""

    name: ClassVar[str] = "toolkits"
    subject = say("CUDA toolkits on disk, the one that a build would use, and the host compilers.")

    toolkits: list[Toolkit] | None = None
    selected: Annotated[str | None, Private("path")] = None
    """The toolkit that torch's extension builder would use (CUDA_HOME, CUDA_PATH, nvcc on PATH,
    /usr/local/cuda, in this order); "" if there is none."""
    selected_version: str | None = None
    selected_via: str | None = None
    compilers: list[Compiler] | None = None
    named_in_vain: list[str] | None = None
    """Those of CC and CXX that name a program which is not there."""
    setuptools: bool | None = None
    """Whether the target has setuptools, with which PyTorch compiles extensions."""
    python_headers: bool | None = None
    """Whether Python.h of the target exists, which extensions are compiled with."""
