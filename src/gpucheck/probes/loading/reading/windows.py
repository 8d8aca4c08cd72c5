"""Fills the section ``loading`` on Windows: the DLLs that torch loads and what they need."""

import ntpath
import re
from typing import Literal

import msgspec

from gpucheck.facts import Answer
from gpucheck.facts.libraries import NOT_FOUND, LoadedLibrary, Loading, MissingLibrary, Owner
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.binaries.pe import libraries, read_pe
from gpucheck.probes.loading.reading.versions import file_number

_SOURCE = say("the import tables of torch's DLLs, followed through the folders that torch adds")
_RUNTIME = ("vcruntime140.dll", "msvcp140.dll")
_RUNTIME_X64 = "vcruntime140_1.dll"
_NAME = re.compile(r"(?P<stem>[A-Za-z][A-Za-z0-9]*?(?:_[a-z_]+[a-z])?)(?:64)?(?:_[0-9_.]+)?\.dll")
_CUDA = ("cudart", "cublas", "cublasLt", "cudnn", "cufft", "cupti", "curand", "cusolver",
         "cusparse", "nvJitLink", "nvrtc", "nvToolsExt")  # fmt: skip
_OWN = ("c10", "torch", "caffe2", "shm")
_MOST = 2000  # chosen: as of Linux, far above what a process with torch loads

_Place = Literal[
    "windows-torch-lib", "windows-library-bin", "windows-cuda-path", "windows-path",
    "windows-system",
]  # fmt: skip
_MOST_FOLDERS = 128  # chosen: PATH of Windows has some dozens
_NOT_ASKED = r"(?:api|ext)-ms-.*\.dll|python3[0-9]*t?\.dll|nvcuda\.dll|nvml\.dll"
"""Names that Windows maps to its own libraries, Python itself, and the driver's libraries."""


def resolve(host: Host, interpreter: Interpreter, torch: TorchBuild) -> Loading:
    """Return what importing torch loads and what is missing."""
    lib = ntpath.join(torch.path or "", "lib")
    folders = search_folders(host, interpreter, torch, lib)
    dlls = Dlls(host, folders)
    own = dlls.inside(lib)
    if not own:
        return Loading(problems={"*": say("{folder} has no DLL of torch", folder=lib)})
    found: dict[str, tuple[Dll, str]] = {}
    missing: dict[str, str] = {}
    runtime = [*_RUNTIME, *(() if host.identity().machine == "ARM64" else (_RUNTIME_X64,))]
    queue = [(ntpath.basename(path), "torch") for path in own] + [
        (runtime_dll, "torch") for runtime_dll in runtime
    ]
    while queue and len(found) < _MOST:
        name, by = queue.pop(0)
        if name.lower() in found or name.lower() in missing or _is_given(name):
            continue
        dll = dlls.find(name)
        if dll is None:
            missing[name.lower()] = by
            continue
        found[dll.name] = (dll, by)
        if dll.folder.place == "windows-system":
            continue  # Windows satisfies the needs of its own DLLs
        wanted = imports(host, dll.path)
        if wanted.value is None:
            return Loading(problems={"*": wanted.complaint})
        queue += [(need, ntpath.basename(dll.path)) for need in wanted.value]
    if missing and dlls.problem:
        return Loading(problems={"*": dlls.problem})
    return Loading(
        libraries=[_library(dll, by) for dll, by in found.values() if _short(dll.name)],
        missing=[_missing(name, by) for name, by in missing.items()],
        runtime_opened=[],
        preloading="every DLL in torch's lib folder",
        symbol_versions_missing=[],
        sources={"*": _SOURCE},
    )


class Folder(msgspec.Struct, frozen=True):
    """A folder that is searched."""

    path: str
    place: _Place
    entry: str = ""
    """The entry of PATH, "" for any other folder."""


class Dll(msgspec.Struct, frozen=True):
    """A DLL that was found."""

    name: str
    path: str
    folder: Folder


def search_folders(
    host: Host, interpreter: Interpreter, torch: TorchBuild, lib: str
) -> list[Folder]:
    """Return the searched folders, in the order of the search as far as it is defined."""
    env = {name.upper(): value for name, value in host.env().items()}
    system = env.get("SYSTEMROOT") or r"C:\Windows"
    found = [Folder(lib, "windows-torch-lib")]
    prefixes = dict.fromkeys(filter(None, (interpreter.prefix, interpreter.base_prefix)))
    for prefix in prefixes:
        found.append(Folder(ntpath.join(prefix, "Library", "bin"), "windows-library-bin"))
        found.append(Folder(ntpath.join(prefix, "bin"), "windows-library-bin"))
        found.append(Folder(prefix, "windows-library-bin"))
    if torch.cuda:
        programs = env.get("PROGRAMFILES") or r"C:\Program Files"
        toolkit = ntpath.join(programs, "NVIDIA GPU Computing Toolkit", "CUDA", f"v{torch.cuda}")
        named = env.get(f"CUDA_PATH_V{torch.cuda.replace('.', '_')}", toolkit)
        found.append(Folder(ntpath.join(named, "bin"), "windows-cuda-path"))
        tools = ntpath.join(programs, "NVIDIA Corporation", "NvToolsExt")
        named = env.get("NVTOOLSEXT_PATH", tools)
        found.append(Folder(ntpath.join(named, "bin", "x64"), "windows-cuda-path"))
    found.append(Folder(ntpath.join(system, "System32"), "windows-system"))
    found.append(Folder(system, "windows-system"))
    entries = [entry.strip('"') for entry in env.get("PATH", "").split(";")]
    return found + [Folder(entry, "windows-path", entry) for entry in entries if entry]


def _library(dll: Dll, by: str) -> LoadedLibrary:
    owner: Owner = "other"
    if dll.folder.place == "windows-torch-lib":
        owner = "torch"
    elif dll.folder.place == "windows-cuda-path":
        owner = "toolkit"
    elif dll.folder.place == "windows-system":
        owner = "system"
    return LoadedLibrary(
        soname=ntpath.basename(dll.path),
        library=_short(dll.name),
        path=dll.path,
        real_path=dll.path,
        found_via=dll.folder.place,
        variable_entry=dll.folder.entry,
        needed_by=by,
        owner=owner,
        version=file_number(dll.path).replace("_", ".") or None,
        passed_over=[],
        sources={"*": _SOURCE},
        problems={"version": say("its name has no version")},
    )


def _missing(name: str, by: str) -> MissingLibrary:
    return MissingLibrary(
        soname=name,
        needed_by=by,
        searched=say("torch's lib folder, Library\\bin, the toolkit, Windows, PATH"),
        why=NOT_FOUND,
        path="",
        fatal=True,
        sources={"*": _SOURCE},
    )


def _short(name: str) -> str:
    """Return the short name of a relevant DLL: ``cudart`` for cudart64_12.dll; "" for others."""
    match = _NAME.fullmatch(name)
    stem = match["stem"] if match is not None else ""
    short = next((library for library in _CUDA if library.lower() == stem.lower()), "")
    if short or stem.lower().startswith("cudnn_"):
        return short or stem
    if stem.split("_")[0] in _OWN or name in (*_RUNTIME, _RUNTIME_X64):
        return stem or name.removesuffix(".dll")
    return ""


# torch adds folders to the search path (its own, ``Library\bin`` of the environment, a toolkit's)
# and loads each of its DLLs by path. A DLL that is not found in this way is searched again with
# PATH. Only the import tables are read: a DLL that is delay-loaded, or loaded by name, may be
# absent.
class Dlls:
    """The folders in order; each is listed once, because file names differ in case."""

    def __init__(self, host: Host, folders: list[Folder]) -> None:
        self._host = host
        self._folders = folders[:_MOST_FOLDERS]
        self._names: dict[str, dict[str, str]] = {}
        self.problem = ""
        """Why a DLL that is not found may exist all the same."""

    def find(self, name: str) -> Dll | None:
        """Return the first DLL of that name."""
        for folder in self._folders:
            real = self._listed(folder.path).get(name.lower())
            if real is not None:
                return Dll(name.lower(), ntpath.join(folder.path, real), folder)
        return None

    def inside(self, folder: str) -> list[str]:
        """Return the paths of the DLLs in a folder."""
        names = self._listed(folder)
        return [ntpath.join(folder, names[name]) for name in sorted(names)]

    def _listed(self, folder: str) -> dict[str, str]:
        if folder not in self._names:
            listing = self._host.listing(folder)
            if listing.value is None and not listing.missing:
                self.problem = self.problem or listing.complaint
            names = [name for name in listing.value or () if name.lower().endswith(".dll")]
            self._names[folder] = {name.lower(): name for name in names}
        return self._names[folder]


def _is_given(name: str) -> bool:
    """Whether a DLL need not be searched: Windows, the process or the driver provides it."""
    return re.fullmatch(_NOT_ASKED, name.lower()) is not None


def imports(host: Host, path: str) -> Answer[list[str]]:
    """Return the names of the DLLs that a 64-bit DLL needs when it is loaded."""
    pe = read_pe(host, path)
    if pe.value is None:
        return Answer(None, path, pe.problem, pe.missing)
    return libraries(host, pe.value)
