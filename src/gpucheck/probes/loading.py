"""Which file the dynamic loader would take for each of torch's libraries; nothing is loaded."""

from typing import Annotated, ClassVar, Literal

from gpucheck.facts import Facts, Private, Section
from gpucheck.host import Host
from gpucheck.probes._library_owner import Owner
from gpucheck.probes.interpreter import Interpreter
from gpucheck.probes.torch_build import TorchBuild
from gpucheck.tables.runtime_opens import RuntimeOpens

DEADLINE = 5.0
LANE = "target"

NOT_READABLE = "cannot be read by this user"
"""Why a library is missing that is there: the loader passes over what permissions hide from it."""

FoundVia = Literal[
    "preload", "LD_PRELOAD", "ld.so.preload", "path", "rpath", "LD_LIBRARY_PATH", "runpath",
    "ld.so.cache", "default", "windows-torch-lib", "windows-library-bin", "windows-cuda-path",
    "windows-path", "windows-system",
]  # fmt: skip
"""``preload``: torch itself opens it by its path before it needs it; ``path``: it is named by
path; ``default``: a folder that the loader has built in."""


class LoadedLibrary(Facts, frozen=True, kw_only=True):
    """A library that torch would have in its process, or would open when it is used."""

    soname: str = ""
    """The name by which it is asked for: ``libcudnn.so.9``."""
    library: str = ""
    """``cudnn``, ``cudart``, ``cublas``, ``nccl``, ``torch_cuda`` ...; "" for any other."""
    path: Annotated[str | None, Private("path")] = None
    """As the loader comes to it."""
    real_path: Annotated[str | None, Private("path")] = None
    """With links followed."""
    found_via: FoundVia | None = None
    variable_entry: Annotated[str | None, Private("path")] = None
    """The entry of LD_LIBRARY_PATH, LD_PRELOAD or PATH that won; "" when no variable did."""
    needed_by: str | None = None
    """The first object that needs it: ``libtorch_cuda.so``."""
    owner: Owner | None = None
    version: str | None = None
    passed_over: Annotated[list[str] | None, Private("paths")] = None
    """Other copies on the loader's way that are not taken."""


class MissingLibrary(Facts, frozen=True, kw_only=True):
    """A library that the loader does not find."""

    soname: str = ""
    needed_by: str = ""
    searched: str = ""
    """Where the loader looks, in short: ``RPATH, LD_LIBRARY_PATH, ld.so.cache``."""
    why: str = ""
    """"not found", or what is wrong with the file that is found: ``file too short``."""
    path: Annotated[str | None, Private("path")] = None
    """The file that cannot be loaded, or the folder that keeps this user out; "" when none."""
    fatal: bool | None = None
    """Whether ``import torch`` fails of it; False for one that is opened only when used."""


class MissingVersion(Facts, frozen=True, kw_only=True):
    """A version or a symbol that a library lacks and another needs of it."""

    needed_by: str = ""
    """``libtorch_cpu.so``"""
    library: str = ""
    """``libstdc++.so.6``"""
    path: Annotated[str | None, Private("path")] = None
    """The copy of the library that would be loaded."""
    version: str = ""
    """``GLIBCXX_3.4.30``, or the name of the symbol."""
    newest: str = ""
    """The newest version of that kind that is there; "" for a symbol."""
    fatal: bool | None = None
    """Whether ``import torch`` fails of it; False for what is needed only when it is used."""


class Loading(Section, frozen=True, kw_only=True):
    """What ``import torch`` would load, resolved as the dynamic loader does it."""

    name: ClassVar[str] = "loading"

    libraries: list[LoadedLibrary] | None = None
    """CUDA's libraries, torch's own, and the C, C++ and OpenMP libraries; [] without torch."""
    missing: list[MissingLibrary] | None = None
    runtime_opened: list[LoadedLibrary] | None = None
    """Libraries that are opened by name when they are used, such as parts of cuDNN."""
    preloading: str | None = None
    """What torch loads by path before its own libraries, in words; "" for nothing."""
    symbol_versions_missing: list[MissingVersion] | None = None


def collect(
    host: Host, interpreter: Interpreter, torch: TorchBuild, opens: RuntimeOpens
) -> Loading:
    """Follow the loader from the interpreter through torch's libraries."""
    if torch.installed is False:
        none = "torch is not installed"
        return Loading(
            libraries=[], missing=[], runtime_opened=[], preloading="", symbol_versions_missing=[],
            sources={"*": none},
        )  # fmt: skip
    if torch.installed is None:
        return Loading(problems={"*": torch.problem("installed") or "torch is unknown"})
    if host.identity().os == "macos":
        return Loading(problems={"*": "the loader of macOS is not followed"})
    if host.identity().os == "windows":
        from gpucheck.probes import _loading_windows  # noqa: PLC0415  # needed there only

        return _loading_windows.resolve(host, interpreter, torch)
    from gpucheck.probes import _loading  # noqa: PLC0415  # needed in the child only

    return _loading.resolve(host, interpreter, torch, opens)
