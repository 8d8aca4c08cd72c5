"""cuDNN, NCCL and the CUDA libraries on disk: in wheels, conda, toolkits and the system."""

import re
from collections.abc import Iterable

import msgspec

from gpucheck.facts import Notes
from gpucheck.facts.libraries import CudaLibraries, CudaLibrary, CudaLibraryFoundVia
from gpucheck.facts.torch import Interpreter
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import distinct, is_windows, join, name, parent, pattern
from gpucheck.probes.reading.dist_info import CondaRecord, DistInfo, conda_records, dist_infos
from gpucheck.probes.reading.torch_files import find_torch
from gpucheck.probes.reading.versions import Place, library_version

DEADLINE = 5.0  # seconds for a probe that reads files (docs/architecture.md, 1.5)
LANE = "packages"

_LIBRARIES = (
    "cudnn", "nccl", "cudart", "cublasLt", "cublas", "nvrtc", "nvJitLink", "cusparseLt",
    "cusparse", "cusolver", "cufft", "curand", "cupti", "nvshmem", "cufile",
)  # fmt: skip
_NAMES = "|".join(_LIBRARIES)
_SO = rf"lib({_NAMES})(?:_host)?(?:-[0-9a-f]{{8}})?\.so((?:\.[0-9]+)*)"
"""Wheels that bundle libraries put a hash into their names."""
_DLL = rf"({_NAMES})64_([0-9]+(?:\.[0-9]+)*)(?:_0)?\.dll"
_SO_PATTERN = "lib[cn][ucv]*.so*"
_SYSTEM_FOLDERS = (
    "/usr/lib/{machine}-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
)
_MOST_FOLDERS = 64  # chosen: each is listed; variables are not bounded otherwise


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
            _library(host, file, infos, conda)
            for file in _library_files(host, interpreter, package)
        ],
        sources={
            "*": say("wheels, torch/lib, conda, LD_LIBRARY_PATH, toolkits and system folders")
        },
    )


class LibraryFile(msgspec.Struct, frozen=True, kw_only=True):
    """One library in one folder, under the name with the most detailed version."""

    library: str
    path: str
    via: CudaLibraryFoundVia
    number: str
    """The text after ``.so.``; "" if there is none."""


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


def _library_files(host: Host, python: Interpreter, torch: str | None) -> list[LibraryFile]:
    """Return every copy, wheels first; ``torch`` is the folder of the package."""
    found: list[LibraryFile] = []
    for entry in distinct(python.sys_path or []):
        found += _best(_in_wheels(host, entry), "wheel")
    seen = {_real(host, parent(file.path)) for file in found}
    for folder, via in _folders(host, python, torch):
        real = _real(host, folder)
        if real in seen or name(real) == "stubs":
            continue
        seen.add(real)
        files = "*.dll" if is_windows(folder) else _SO_PATTERN
        inside = host.glob(pattern(real, files)).value or ()
        found += _best([join(folder, name(path)) for path in inside], via)
    return found


def _in_wheels(host: Host, entry: str) -> list[str]:
    inner = ("bin", "*.dll") if is_windows(entry) else ("lib*", _SO_PATTERN)
    return host.glob(pattern(entry, "nvidia", "*", *inner)).value or []


def _folders(
    host: Host, python: Interpreter, torch: str | None
) -> Iterable[tuple[str, CudaLibraryFoundVia]]:
    if torch:
        yield join(torch, "lib"), "torch"
    if python.kind == "conda" and python.prefix:
        windows = is_windows(python.prefix)
        yield join(python.prefix, *(("Library", "bin") if windows else ("lib",))), "conda"
    if host.identity().os != "linux":
        return
    for folder in distinct(host.env().get("LD_LIBRARY_PATH", "").split(":"))[:_MOST_FOLDERS]:
        yield folder, "LD_LIBRARY_PATH"
    for folder in _toolkit_folders(host):
        yield folder, "toolkit"
    for shape in _SYSTEM_FOLDERS:
        yield shape.format(machine=host.identity().machine), "system"


def _toolkit_folders(host: Host) -> list[str]:
    env = host.env()
    home = env.get("CUDA_HOME") or env.get("CUDA_PATH") or ""
    named = [join(home, "lib64"), join(home, "lib")] if home else []
    found = host.glob("/usr/local/cuda*/lib64").value or []
    apart = host.glob("/usr/local/cuda*/targets/*/lib").value or []
    return (named + found + apart)[:_MOST_FOLDERS]


def _best(paths: Iterable[str], via: CudaLibraryFoundVia) -> list[LibraryFile]:
    """Return one file per library and major version; links to it have shorter numbers."""
    best: dict[tuple[str, str, str], LibraryFile] = {}
    unnumbered = []
    for path in paths:
        match = re.fullmatch(_SO, name(path)) or re.fullmatch(_DLL, name(path))
        if match is None:
            continue
        library, number = match.group(1), match.group(2).lstrip(".")
        file = LibraryFile(library=library, path=path, via=via, number=number)
        key = (parent(path), library, number.partition(".")[0])
        if not number:
            unnumbered.append(file)
        elif key not in best or len(number) > len(best[key].number):
            best[key] = file
    numbered = {(folder, library) for folder, library, _major in best}
    alone = [file for file in unnumbered if (parent(file.path), file.library) not in numbered]
    return [*best.values(), *alone]


def _real(host: Host, path: str) -> str:
    return host.real_path(path).value or path
