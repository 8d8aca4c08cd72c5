"""cuDNN, NCCL and the CUDA libraries on disk: wheels, conda, toolkits, the system."""

import re
from typing import Annotated, ClassVar

from gpucheck.facts import Answer, Facts, Notes, Private, Section
from gpucheck.host import Host
from gpucheck.probes._conda import CondaRecord, conda_records
from gpucheck.probes._cuda_files import FoundVia, LibraryFile, library_files
from gpucheck.probes._cuda_version import cudnn_header, nccl_header
from gpucheck.probes._dist_info import DistInfo, dist_infos
from gpucheck.probes._paths import join, name, parent
from gpucheck.probes._torch_files import find_torch
from gpucheck.probes.interpreter import Interpreter

DEADLINE = 5.0
LANE = "target"

_WHEELS = {
    "cudnn": "nvidia-cudnn", "nccl": "nvidia-nccl", "cudart": "nvidia-cuda-runtime",
    "cublas": "nvidia-cublas", "cublasLt": "nvidia-cublas", "nvrtc": "nvidia-cuda-nvrtc",
    "nvJitLink": "nvidia-nvjitlink", "cusparse": "nvidia-cusparse",
    "cusparseLt": "nvidia-cusparselt", "cusolver": "nvidia-cusolver", "cufft": "nvidia-cufft",
    "curand": "nvidia-curand", "cupti": "nvidia-cuda-cupti", "nvshmem": "nvidia-nvshmem",
    "cufile": "nvidia-cufile",
}  # fmt: skip
_CONDA = {
    "cudnn": ("libcudnn", "cudnn"), "nccl": ("nccl",), "cudart": ("cuda-cudart", "cudatoolkit"),
    "cublas": ("libcublas", "cudatoolkit"), "cublasLt": ("libcublas", "cudatoolkit"),
    "nvrtc": ("cuda-nvrtc", "cudatoolkit"), "nvJitLink": ("libnvjitlink",),
    "cusparse": ("libcusparse", "cudatoolkit"), "cusolver": ("libcusolver", "cudatoolkit"),
    "cufft": ("libcufft", "cudatoolkit"), "curand": ("libcurand", "cudatoolkit"),
    "cupti": ("cuda-cupti", "cudatoolkit"),
}  # fmt: skip
_HEADERS = {"cudnn": cudnn_header, "nccl": nccl_header}
_CUDA_FOLDER = re.compile(r"cu[0-9]{2}")
_FULL = 3
"""Parts of a version that needs no header."""


class CudaLibrary(Facts, frozen=True, kw_only=True):
    """One library file."""

    library: str | None = None
    """``cudnn``, ``nccl``, ``cudart``, ``cublas`` ..."""
    version: str | None = None
    """As far as metadata, headers or the file name tell: ``9.19.0``, ``12``."""
    path: Annotated[str | None, Private("path")] = None
    found_via: FoundVia | None = None
    package: str | None = None
    """The distribution that owns it, such as ``nvidia-cudnn-cu12``; "" when unknown."""


class CudaLibraries(Section, frozen=True, kw_only=True):
    """Every copy found, wheels first."""

    name: ClassVar[str] = "cuda_libraries"

    libraries: list[CudaLibrary] | None = None


def collect(host: Host, interpreter: Interpreter) -> CudaLibraries:
    """Look through the wheels, torch's own folder, conda, LD_LIBRARY_PATH and the system."""
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
    header = _header_version(host, file)
    owner = _owner(file, infos, header.value or "") if file.via == "wheel" else None
    version = header
    if version.value is None and owner is not None:
        version = Answer(owner.version, owner.path)
    if version.value is None:
        version = Answer(file.number or None, file.path, "its name has no version")
    record = _record(file, conda) if file.via == "conda" else None
    package = owner.project if owner is not None else ""
    return CudaLibrary(
        library=file.library,
        version=notes.take("version", version),
        path=file.path,
        found_via=file.via,
        package=record.project if record is not None else package,
        sources=notes.sources,
        problems=notes.problems,
    )


def _header_version(host: Host, file: LibraryFile) -> Answer[str]:
    """Return what the header beside the library says, where the file's name says too little."""
    read = _HEADERS.get(file.library)
    if read is None or len(file.number.split(".")) >= _FULL:
        return Answer(None, file.path, "no header is asked")
    folder = parent(file.path)
    includes = [join(parent(folder), "include")]
    if file.via == "system":
        includes.append(join(parent(parent(folder)), "include"))
    answers = [read(host, include) for include in includes]
    return next((answer for answer in answers if answer.value is not None), answers[0])


def _owner(file: LibraryFile, infos: list[DistInfo], version: str) -> DistInfo | None:
    """Return the distribution of a wheel's library; None when two could have written it.

    ``nvidia/cu13`` holds the libraries of projects without a suffix, ``nvidia/cudnn`` those of
    ``nvidia-cudnn-cu12`` and its like.
    """
    base = _WHEELS[file.library]
    shared = bool(_CUDA_FOLDER.fullmatch(name(parent(parent(file.path)))))
    owners = [
        info
        for info in infos
        if info.entry == file.entry
        and (info.project == base if shared else info.project.startswith(f"{base}-cu"))
    ]
    if len(owners) > 1 and version:
        owners = [info for info in owners if info.version.startswith(version)]
    return owners[0] if len(owners) == 1 else None


def _record(file: LibraryFile, conda: list[CondaRecord]) -> CondaRecord | None:
    projects = _CONDA.get(file.library, ())
    return next((r for project in projects for r in conda if r.project == project), None)
