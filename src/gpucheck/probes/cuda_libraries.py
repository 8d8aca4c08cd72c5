"""cuDNN, NCCL and the CUDA libraries on disk: in wheels, conda, toolkits and the system."""

from typing import Annotated, ClassVar

from gpucheck.facts import Facts, Notes, Private, Section
from gpucheck.host import Host
from gpucheck.probes._conda import CondaRecord, conda_records
from gpucheck.probes._cuda_files import FoundVia, LibraryFile, library_files
from gpucheck.probes._dist_info import DistInfo, dist_infos
from gpucheck.probes._library_versions import Place, library_version
from gpucheck.probes._torch_files import find_torch
from gpucheck.probes.interpreter import Interpreter

DEADLINE = 5.0
LANE = "target"


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
    """Every copy found, wheels first."""

    name: ClassVar[str] = "cuda_libraries"

    libraries: list[CudaLibrary] | None = None


def collect(host: Host, interpreter: Interpreter) -> CudaLibraries:
    """Search the wheels, torch's own folder, conda, LD_LIBRARY_PATH and the system."""
    if interpreter.sys_path is None:
        why = interpreter.problem("sys_path") or "the target interpreter is unknown"
        return CudaLibraries(problems={"*": why})
    torches, _problems = find_torch(host, interpreter.sys_path)
    package = next((one.path for one in torches if one.kind == "package"), None)
    infos = dist_infos(host, interpreter.sys_path)
    conda = conda_records(host, interpreter.prefix)
    return CudaLibraries(
        libraries=[
            _library(host, one, infos, conda) for one in library_files(host, interpreter, package)
        ],
        sources={"*": "wheels, torch/lib, conda, LD_LIBRARY_PATH, toolkits and system folders"},
    )


def _library(
    host: Host, file: LibraryFile, infos: list[DistInfo], conda: list[CondaRecord]
) -> CudaLibrary:
    notes = Notes()
    notes.said("*", file.path)
    place: Place = file.via if file.via in ("wheel", "conda", "system") else "other"
    version, package = library_version(host, file.library, file.path, place, infos, conda)
    return CudaLibrary(
        library=file.library,
        version=notes.take("version", version),
        path=file.path,
        found_via=file.via,
        package=package,
        sources=notes.sources,
        problems=notes.problems,
    )
