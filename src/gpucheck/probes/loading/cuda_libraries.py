"""cuDNN, NCCL and the CUDA libraries on disk: in wheels, conda, toolkits and the system."""

from gpucheck.facts import Notes
from gpucheck.facts.cuda_libraries import CudaLibraries, CudaLibrary
from gpucheck.facts.interpreter import Interpreter
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.probes.loading.reading.cuda_files import LibraryFile, library_files
from gpucheck.probes.loading.reading.versions import Place, library_version
from gpucheck.probes.torch.reading.conda import CondaRecord, conda_records
from gpucheck.probes.torch.reading.dist_info import DistInfo, dist_infos
from gpucheck.probes.torch.reading.files import find_torch

DEADLINE = 5.0
LANE = "packages"


def collect(host: Host, interpreter: Interpreter) -> CudaLibraries:
    """Search the wheels, torch's own folder, conda, LD_LIBRARY_PATH and the system."""
    if interpreter.sys_path is None:
        why = interpreter.problem("sys_path") or say("the target interpreter is unknown")
        return CudaLibraries(problems={"*": why})
    torches, _problems = find_torch(host, interpreter.sys_path)
    package = next((install.path for install in torches if install.kind == "package"), None)
    infos = dist_infos(host, interpreter.sys_path)
    conda = conda_records(host, interpreter.prefix)
    return CudaLibraries(
        libraries=[
            _library(host, file, infos, conda) for file in library_files(host, interpreter, package)
        ],
        sources={
            "*": say("wheels, torch/lib, conda, LD_LIBRARY_PATH, toolkits and system folders")
        },
    )


def _library(
    host: Host, file: LibraryFile, infos: list[DistInfo], conda: list[CondaRecord]
) -> CudaLibrary:
    notes = Notes()
    notes.known("*", file.path)
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
