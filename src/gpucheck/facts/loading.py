"""Which file the dynamic loader would load for each of torch's libraries."""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Facts, Private, Section
from gpucheck.language import say

Owner = Literal["wheel", "torch", "conda", "toolkit", "system", "driver", "other"]


NOT_READABLE = "cannot be read by this user"
"""Why an existing library is missing: the loader skips files that permissions hide from it."""
NOT_FOUND = "not found"
"""Why any other library is missing, in the words of the loader."""
_WHY = (say("cannot be read by this user"), say("not found"))
"""The same for the catalogues: values of facts are plain text, which is looked up as it is."""

FoundVia = Literal[
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
    found_via: FoundVia | None = None
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
