"""What Windows' loader takes: the DLLs of torch, and what a compiled file needs."""

import ntpath
import re
from typing import Literal

import msgspec

from gpucheck.facts import Answer
from gpucheck.facts.libraries import NOT_FOUND, LoadedLibrary, Loading, MissingLibrary, Owner
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.binaries.fatbin import MOST_ENTRIES, DeviceCode, device_code_at
from gpucheck.machine.binaries.pe import Pe, imported, is_none, libraries, missing_exports, read_pe
from gpucheck.probes.reading.extension_files import CandidateFile
from gpucheck.probes.reading.extension_needs import MOST_HEADERS, OWN_STEMS, Needs, all_codes
from gpucheck.probes.reading.versions import file_number

# Fills the section ``loading`` on Windows: the DLLs that torch loads and what they need.

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


# What a compiled Windows file (``.pyd``, ``.dll``) needs of PyTorch and CUDA, and what it lacks.
#
# An import entry names the DLL that has the symbol, so a symbol is looked up in that DLL only.
# torch's DLLs are loaded by path before any extension. Other DLLs are searched in torch's folder,
# in the folders that torch adds to the search path, next to the file, in the folders where wheels
# keep their DLLs, in Windows and on PATH. Python itself does not search PATH, but a DLL on PATH may
# already have been loaded.

_OF_TORCH = frozenset(f"{stem}.dll" for stem in OWN_STEMS)
# Without these, every symbol of torch would look as if it were missing.
_INDISPENSABLE = ("c10.dll", "torch_cpu.dll")
_NEEDS_WINDOWS_CUDA = re.compile(
    r"(?:cudart|cublas|cublaslt|cudnn[a-z_]{0,40}|cufft|cufftw|curand|cusolver|cusolvermg|cusparse"
    r"|cusparselt|nvrtc|nvjitlink|cupti)(?:64)?_[0-9_.]{1,20}\.dll"
)
"""CUDA's DLLs; a wheel renames the ones that it bundles, with a hash before ``.dll``."""
_OF_MAJOR = re.compile(r"(?:cudart|cublas|cublaslt|nvrtc)64_(1[0-9])[0-9]?(?:_[0-9.]{1,10})?\.dll")
"""DLLs whose number is that of their CUDA: cudart64_110, cudart64_12, nvrtc64_120_0."""
_DRIVER = "nvcuda.dll"
_NEEDS_WINDOWS_RUNTIME = re.compile(
    r"(?:vcruntime140(?:_1)?|msvcp140(?:_[12])?|concrt140|vcomp140)\.dll"
)
"""Microsoft's Visual C++ runtime; it is not part of Windows."""
_SECTIONS = (".nv_fatb", "__nv_rel")
"""The sections of ELF files under the names that fit into the eight characters of PE files."""
_ALIGNMENT = 16
"""Alignment of the GPU code containers that Microsoft's linker joins."""


class WindowsNeedsReader:
    """Reads compiled files and compares their needs with what one torch provides."""

    def __init__(self, host: Host, torch: TorchBuild, interpreter: Interpreter) -> None:
        self._host = host
        self._lib = ntpath.join(torch.path or "", "lib")
        self._folders = search_folders(host, interpreter, torch, self._lib)
        self._dlls = Dlls(host, self._folders)
        self._is_cuda = torch.built_for == "cuda"
        self._files: dict[str, Pe] = {}
        self._headers_left = MOST_HEADERS
        self.unread: list[str] = []
        """The files that could not be read, and why."""

    def read(self, file: CandidateFile) -> Needs | None:
        """Return what the file needs; None if it needs neither PyTorch nor CUDA."""
        answer = read_pe(self._host, file.path)
        pe = answer.value
        wanted = libraries(self._host, pe) if pe is not None else None
        if pe is None or wanted is None or wanted.value is None:
            problem = answer.problem or (wanted.problem if wanted is not None else "")
            if is_none(problem):
                return None
            self.unread.append(say("{source}: {why}", source=file.path, why=problem))
            return None
        names = [dll.lower() for dll in wanted.value]
        if not any(_matters(dll) for dll in names):
            return None
        self._files[file.path] = pe
        majors = (match[1] for dll in names if (match := _OF_MAJOR.fullmatch(dll)))
        of_torch = any(dll in _OF_TORCH for dll in names)
        return Needs(file, names, torch=of_torch, cuda=next(majors, ""))

    def resolve(self, files: list[Needs]) -> None:
        """Fill in the missing DLLs and symbols, and the GPU code in each file."""
        for needs in files:
            needs.missing_libraries = self._missing(needs)
        self._compare_symbols([needs for needs in files if needs.needs_torch])
        for needs in sorted(files, key=lambda needs: not needs.needs_torch):
            needs.codes = self._codes(needs)

    def _missing(self, needs: Needs) -> Answer[list[str]]:
        sought = [dll for dll in needs.needed if _is_looked_for(dll)]
        missing = [dll for dll in sought if self._dlls.find(dll) is None]
        near = Dlls(self._host, self._near(needs.file)) if missing else self._dlls
        missing = [dll for dll in missing if near.find(dll) is None]
        problem = self._dlls.problem or near.problem
        if missing and problem:
            return Answer(None, needs.file.path, problem)
        return Answer(missing, needs.file.path)

    def _near(self, file: CandidateFile) -> list[Folder]:
        """Return the folder of the file, those around it, and those where wheels keep DLLs."""
        package = ntpath.join(file.entry, file.top)
        own = [ntpath.dirname(file.path), package, ntpath.join(package, "lib")]
        own.append(ntpath.join(package, "bin"))
        own += self._host.glob(ntpath.join(file.entry, "*.libs")).value or ()
        own += self._host.glob(ntpath.join(file.entry, "nvidia", "*", "bin")).value or ()
        return [Folder(path, "windows-path") for path in dict.fromkeys(own)]

    def _compare_symbols(self, files: list[Needs]) -> None:
        """Fill in the symbols that torch's DLLs do not export; each DLL is read once."""
        if not files:
            return
        dlls = {
            needed_dll: self._of_torch(needed_dll) for needs in files for needed_dll in needs.needed
        }
        needed: dict[str, Answer[dict[str, list[str]]]] = {}
        for needs in files:
            there = [needed_dll for needed_dll in needs.needed if dlls[needed_dll] is not None]
            needed[needs.file.path] = imported(self._host, self._files[needs.file.path], there)
        wanted: dict[str, set[str]] = {}
        for answer in needed.values():
            for dll, names in (answer.value or {}).items():
                wanted.setdefault(dll, set()).update(names)
        lacking = {dll: self._lacks(dlls[dll] or "", names) for dll, names in wanted.items()}
        complaint = self._complaint()
        for needs in files:
            answer = needed[needs.file.path]
            problem = complaint or answer.problem
            problem = problem or next(
                (lacking[dll].problem for dll in answer.value or () if lacking[dll].value is None),
                "",
            )
            if problem or answer.value is None:
                needs.missing_symbols = Answer(None, needs.file.path, problem)
                continue
            found = [
                name
                for dll, names in answer.value.items()
                for name in names
                if name in (lacking[dll].value or ())
            ]
            needs.missing_symbols = Answer(found, needs.file.path)

    def _of_torch(self, dll: str) -> str | None:
        """Return the path of one of torch's DLLs; None for any other or a missing one."""
        found = self._dlls.find(dll) if dll in _OF_TORCH else None
        return (
            found.path
            if found is not None and found.folder.place == "windows-torch-lib"
            else (None)
        )

    def _complaint(self) -> str:
        """Return why torch's symbols are unknown; "" if they are known."""
        lost = next((dll for dll in _INDISPENSABLE if self._of_torch(dll) is None), None)
        if lost is None:
            return ""
        return say("{folder} has no readable {library}", folder=self._lib, library=lost)

    def _lacks(self, path: str, names: set[str]) -> Answer[set[str]]:
        pe = read_pe(self._host, path)
        if pe.value is None:
            return Answer(None, path, pe.complaint)
        return missing_exports(self._host, pe.value, names)

    def _codes(self, needs: Needs) -> Answer[list[str]]:
        path = needs.file.path
        if not self._is_cuda:
            return Answer(None, path, say("not read: torch is not built for CUDA"))
        if needs.cannot_load:
            return Answer(None, path, say("not read: the file cannot be loaded"))
        most = min(MOST_ENTRIES, self._headers_left)
        if most <= 0:
            return Answer(None, path, say("not read: other files have too much GPU code"))
        places = [
            (section.name, section.offset, section.length)
            for section in self._files[path].sections
            if section.name in _SECTIONS
        ]
        answer: Answer[DeviceCode] = device_code_at(self._host, path, places, most, _ALIGNMENT)
        if answer.value is not None:
            self._headers_left -= answer.value.headers
        return answer.map(all_codes)


def _matters(name: str) -> bool:
    return name in _OF_TORCH or _NEEDS_WINDOWS_CUDA.fullmatch(name) is not None or name == _DRIVER


def _is_looked_for(name: str) -> bool:
    """Whether a DLL comes from elsewhere: a wheel renames the DLLs that it bundles."""
    return (
        name in _OF_TORCH
        or _NEEDS_WINDOWS_CUDA.fullmatch(name) is not None
        or _NEEDS_WINDOWS_RUNTIME.fullmatch(name) is not None
    )
