"""CUDA's libraries and toolkits, what torch would load, and what is compiled against them."""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say

CudaLibraryFoundVia = Literal["wheel", "conda", "torch", "toolkit", "system", "LD_LIBRARY_PATH"]


class CudaLibrary(Facts, frozen=True, kw_only=True):
    """One library file."""

    library: str | None = None
    """``cudnn``, ``nccl``, ``cudart``, ``cublas`` ..."""
    version: str | None = None
    """As complete as metadata, headers or the file name allow: ``9.19.0``, ``12``."""
    path: Annotated[str | None, Private("path")] = None
    found_via: CudaLibraryFoundVia | None = None
    package: str | None = None
    """The distribution that owns it, such as ``nvidia-cudnn-cu12``; "" if unknown."""


class CudaLibraries(Section, frozen=True, kw_only=True):
    """Every copy that was found; those in wheels come first."""

    name: ClassVar[str] = "cuda_libraries"
    subject = say(
        "cuDNN, NCCL and the CUDA libraries on disk: wheels, conda, toolkits, the system."
    )

    libraries: list[CudaLibrary] | None = None


Owner = Literal["wheel", "torch", "conda", "toolkit", "system", "driver", "other"]


NOT_READABLE = "cannot be read by this user"
"""Why an existing library is missing: the loader skips files that permissions hide from it."""
NOT_FOUND = "not found"
"""Why any other library is missing, in the words of the loader."""
_WHY = (say("cannot be read by this user"), say("not found"))
"""The same for the catalogues: values of facts are plain text, which is looked up as it is."""

LoadedVia = Literal[
    "preload", "LD_PRELOAD", "ld.so.preload", "path", "rpath", "LD_LIBRARY_PATH", "runpath",
    "ld.so.cache", "default", "windows-torch-lib", "windows-library-bin", "windows-cuda-path",
    "windows-path", "windows-system",
]  # fmt: skip
"""``preload``: torch itself opens it by its path before it needs it; ``path``: it is requested by
path; ``default``: a folder that is built into the loader."""


class LoadedLibrary(Facts, frozen=True, kw_only=True):
    """A library that is loaded by ``import torch``, or that torch opens on first use."""

    soname: str = ""
    """The name by which it is requested: ``libcudnn.so.9``."""
    library: str = ""
    """``cudnn``, ``cudart``, ``cublas``, ``nccl``, ``torch_cuda`` ...; "" for any other."""
    path: Annotated[str | None, Private("path")] = None
    """The path by which the loader finds it."""
    real_path: Annotated[str | None, Private("path")] = None
    """The path with links resolved."""
    found_via: LoadedVia | None = None
    variable_entry: Annotated[str | None, Private("path")] = None
    """The entry of LD_LIBRARY_PATH, LD_PRELOAD or PATH that it is from; "" if none."""
    needed_by: str | None = None
    """The first object that needs it: ``libtorch_cuda.so``."""
    owner: Owner | None = None
    version: str | None = None
    passed_over: Annotated[list[str] | None, Private("paths")] = None
    """Other copies in the loader's search path that are not taken."""


class MissingLibrary(Facts, frozen=True, kw_only=True):
    """A library that the loader does not find."""

    soname: str = ""
    needed_by: str = ""
    searched: str = ""
    """Where the loader searches, in short: ``RPATH, LD_LIBRARY_PATH, ld.so.cache``."""
    why: str = ""
    """"not found", or what is wrong with the file that is found: ``file too short``."""
    path: Annotated[str | None, Private("path")] = None
    """The file that cannot be loaded, or the folder that keeps this user out; "" if neither."""
    fatal: bool | None = None
    """Whether ``import torch`` fails because of it; False if it is opened only on first use."""


class MissingVersion(Facts, frozen=True, kw_only=True):
    """A version or symbol that one library needs from another, which does not define it."""

    needed_by: str = ""
    """``libtorch_cpu.so``"""
    library: str = ""
    """``libstdc++.so.6``"""
    path: Annotated[str | None, Private("path")] = None
    """The copy of the library that would be loaded."""
    version: str = ""
    """``GLIBCXX_3.4.30``, or the name of the symbol."""
    newest: str = ""
    """The newest available version of that family; "" for a symbol."""
    fatal: bool | None = None
    """Whether ``import torch`` fails because of it; False if it is needed only on first use."""


class Loading(Section, frozen=True, kw_only=True):
    """What ``import torch`` would load, resolved as the dynamic loader does."""

    name: ClassVar[str] = "loading"
    subject = say("Which file the dynamic loader would load for each of torch's libraries.")

    libraries: list[LoadedLibrary] | None = None
    """CUDA's libraries, torch's own, and the C, C++ and OpenMP libraries; [] without torch."""
    missing: list[MissingLibrary] | None = None
    runtime_opened: list[LoadedLibrary] | None = None
    """Libraries that are opened by name on first use, such as parts of cuDNN."""
    preloading: str | None = None
    """What torch loads by path before its own libraries, in words; "" for nothing."""
    symbol_versions_missing: list[MissingVersion] | None = None


ToolkitFoundVia = Literal["CUDA_HOME", "PATH", "/usr/local", "conda", "wheel", "distribution"]


class Toolkit(Facts, frozen=True, kw_only=True):
    """One CUDA toolkit or a part of one."""

    path: Annotated[str | None, Private("path")] = None
    version: str | None = None
    """``12.4`` or ``12.4.1``, as complete as its files allow."""
    has_nvcc: bool | None = None
    has_headers: bool | None = None
    has_cudart: bool | None = None
    found_via: ToolkitFoundVia | None = None


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


class Extension(Facts, frozen=True, kw_only=True):
    """One compiled file that needs PyTorch or CUDA."""

    package: Annotated[str | None, Private("package")] = None
    """The distribution that it belongs to, otherwise the folder or module: ``flash-attn``."""
    version: str | None = None
    """The version of the distribution; "" if none claims the file."""
    file: Annotated[str | None, Private("path")] = None
    """Its path in site-packages: ``torchvision/_C.so``."""
    path: Annotated[str | None, Private("path")] = None
    variant_of: Annotated[str | None, Private("path")] = None
    """``file`` without its numbers; the package loads one of the files that share it."""
    python: str | None = None
    """The CPython version in the file name's tag, such as ``311``; "" if there is no tag."""
    needs_torch: bool | None = None
    built_with: str | None = None
    """The CUDA toolkit that compiled it, such as ``12.8``; not available from files."""
    requires_torch: bool | None = None
    """Whether the metadata of its distribution requires torch."""
    optional: bool | None = None
    """Whether its package works without torch: it does not require torch, and some of its other
    files do not need it.

    Such a package supports several frameworks, and its part for torch may be unused.
    """
    cuda: str | None = None
    """Major release of the CUDA libraries that it needs, such as ``12``; "" if it needs none."""
    missing_libraries: list[str] | None = None
    """Libraries of PyTorch and CUDA that it needs and that the loader alone would not find.

    For a file that is not linked with torch this is not a fault: its package may load them first.
    """
    loads_missing: bool | None = None
    """Whether Python code of its package calls the loader for one of ``missing_libraries``."""
    nowhere: list[str] | None = None
    """Those of ``missing_libraries`` of CUDA not found in any place from which a
    package may load them itself: its own folder, NVIDIA's wheels, toolkits. Only for files that are
    not linked with torch and have no variant that can be loaded."""
    missing_symbols: list[str] | None = None
    """Some of the torch symbols that it needs and this torch does not have, in C++ notation."""
    missing_symbol_count: int | None = None
    cxx11_abi: bool | None = None
    """Whether it was compiled with C++11 strings, if its missing symbols show this."""
    codes: list[str] | None = None
    """The GPU code in it: ``sm_80`` (cubin), ``compute_90`` (PTX); [] if there is none."""


class Extensions(Section, frozen=True, kw_only=True):
    """Installed files that were compiled against torch or CUDA, other than torch itself."""

    name: ClassVar[str] = "extensions"
    subject = say("Compiled extensions of PyTorch in the target environment.")

    extensions: list[Extension] | None = None
    looked_at: int | None = None
    """How many compiled files were examined."""
    left_out: str | None = None
    """Why not all files were examined; "" if all were."""
