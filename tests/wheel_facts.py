"""A CUDA torch with its wheels, and what the loader would take, for tests of the library rules."""

from typing import Any

from rules_machines import SITE, torch_of

from gpucheck.derived.wheels import pinned_wheel
from gpucheck.facts.libraries import NOT_READABLE, LoadedLibrary, Loading, MissingLibrary
from gpucheck.facts.torch import NvidiaWheels, PinnedWheel, SharedLibrary, TorchBuild

CUDNN_PATH = f"{SITE}/nvidia/cudnn/lib/libcudnn.so.9"
NCCL_PATH = f"{SITE}/nvidia/nccl/lib/libnccl.so.2"
PINS = {
    "nvidia-cublas-cu12": "==12.8.4.1",
    "nvidia-cudnn-cu12": "==9.10.2.21",
    "nvidia-nccl-cu12": "==2.27.5",
    "nvidia-cusparselt-cu12": "==0.7.1",
    "nvidia-cufft-cu12": "==11.3.3.83",
    "triton": "==3.5.1",
}


def torch_291(**more: Any) -> TorchBuild:  # noqa: ANN401  # fields of TorchBuild
    """Return torch 2.9.1 with its pins; it was compiled against cuDNN 9.8.0."""
    fields = {"pins": PINS, "cudnn": "9.10.2.21", "nccl": "2.27.5", **more}
    return torch_of("2.9.1+cu128", "12.8", **fields)


def copy_of(soname: str, path: str, version: str | None, **more: Any) -> LoadedLibrary:  # noqa: ANN401  # fields
    """Return a library that would be loaded."""
    return LoadedLibrary(
        soname=soname, path=path, real_path=path, version=version, sources={"*": path}, **more
    )


def cudnn(version: str | None = "9.10.2", path: str = CUDNN_PATH, **more: Any) -> LoadedLibrary:  # noqa: ANN401  # fields
    """Return the cuDNN that would be loaded."""
    return copy_of("libcudnn.so.9", path, version, **more)


def nccl(version: str | None = "2.27.5", path: str = NCCL_PATH, **more: Any) -> LoadedLibrary:  # noqa: ANN401  # fields
    """Return the NCCL that would be loaded."""
    return copy_of("libnccl.so.2", path, version, **more)


def loads(*libraries: LoadedLibrary, **more: Any) -> Loading:  # noqa: ANN401  # fields of Loading
    """Return what would be loaded, and nothing missing."""
    fields = {"missing": [], "runtime_opened": [], "symbol_versions_missing": [], **more}
    return Loading(libraries=list(libraries), sources={"*": "the loader"}, **fields)


def lost(soname: str, *, fatal: bool = True) -> MissingLibrary:
    """Return a library that the loader does not find."""
    return MissingLibrary(
        soname=soname, needed_by="libtorch_cuda.so", why="not found", path="", fatal=fatal,
        sources={"*": "the loader"},
    )  # fmt: skip


def unreadable(soname: str, path: str, *, fatal: bool = True) -> MissingLibrary:
    """Return a library that is there and that this user may not read."""
    return MissingLibrary(
        soname=soname, needed_by="libtorch_cuda.so", why=NOT_READABLE, path=path, fatal=fatal,
        sources={"*": "the loader"},
    )  # fmt: skip


def wheels(installed: dict[str, str] | None = None, **more: Any) -> NvidiaWheels:  # noqa: ANN401  # fields
    """Return the wheels as pinned, but for those named: project to version, "" for none."""
    versions = {
        **{project: specifier.removeprefix("==") for project, specifier in PINS.items()},
        **(installed or {}),
    }
    pins = [pinned_wheel(p, s, versions[p], {"*": "dist-info"}) for p, s in PINS.items()]
    fields: dict[str, Any] = {"pins": pins, "damaged": [], "shared": [], "unrecorded": [], **more}
    return NvidiaWheels(sources={"*": "RECORD"}, **fields)


def claim(path: str, *projects: str, owner: str | None) -> SharedLibrary:
    """Return a file that several wheels own."""
    return SharedLibrary(
        library=path.rpartition("/")[2], path=path, projects=list(projects), owner=owner,
        sources={"*": path},
    )  # fmt: skip


def pin(project: str, specifier: str, installed: str) -> PinnedWheel:
    """Return one pin."""
    return pinned_wheel(project, specifier, installed, {"*": "dist-info"})
