r"""What a compiled Windows file (``.pyd``, ``.dll``) needs of PyTorch and CUDA, and what it lacks.

An import entry names the DLL that has the symbol, so a symbol is looked up in that DLL only.
torch's DLLs are loaded by path before any extension. Other DLLs are searched in torch's folder, in
the folders that torch adds to the search path, next to the file, in the folders where wheels keep
their DLLs, in Windows and on PATH. Python itself does not search PATH, but a DLL on PATH may
already have been loaded.
"""

import ntpath
import re

from gpucheck.facts import Answer
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.binaries.elf.fatbin import MOST_ENTRIES, DeviceCode, device_code_at
from gpucheck.machine.binaries.pe import Pe, imported, is_none, libraries, missing_exports, read_pe
from gpucheck.probes.extensions.reading.files import CandidateFile
from gpucheck.probes.extensions.reading.needs import MOST_HEADERS, OWN_STEMS, Needs, all_codes
from gpucheck.probes.loading.reading.windows import Dlls, Folder, search_folders

_OF_TORCH = frozenset(f"{stem}.dll" for stem in OWN_STEMS)
# Without these, every symbol of torch would look as if it were missing.
_INDISPENSABLE = ("c10.dll", "torch_cpu.dll")
_CUDA = re.compile(
    r"(?:cudart|cublas|cublaslt|cudnn[a-z_]{0,40}|cufft|cufftw|curand|cusolver|cusolvermg|cusparse"
    r"|cusparselt|nvrtc|nvjitlink|cupti)(?:64)?_[0-9_.]{1,20}\.dll"
)
"""CUDA's DLLs; a wheel renames the ones that it bundles, with a hash before ``.dll``."""
_OF_MAJOR = re.compile(r"(?:cudart|cublas|cublaslt|nvrtc)64_(1[0-9])[0-9]?(?:_[0-9.]{1,10})?\.dll")
"""DLLs whose number is that of their CUDA: cudart64_110, cudart64_12, nvrtc64_120_0."""
_DRIVER = "nvcuda.dll"
_RUNTIME = re.compile(r"(?:vcruntime140(?:_1)?|msvcp140(?:_[12])?|concrt140|vcomp140)\.dll")
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
    return name in _OF_TORCH or _CUDA.fullmatch(name) is not None or name == _DRIVER


def _is_looked_for(name: str) -> bool:
    """Whether a DLL comes from elsewhere: a wheel renames the DLLs that it bundles."""
    return (
        name in _OF_TORCH
        or _CUDA.fullmatch(name) is not None
        or _RUNTIME.fullmatch(name) is not None
    )
