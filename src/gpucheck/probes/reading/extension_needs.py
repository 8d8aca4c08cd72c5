"""What a compiled file needs of PyTorch and CUDA, and whether it is available."""

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

from gpucheck.facts import Answer
from gpucheck.facts.libraries import Loading
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.binaries.elf import Elf, is_none, read_elf, read_needed
from gpucheck.machine.binaries.elf_symbols import missing_symbols, undefined_symbols
from gpucheck.machine.binaries.fatbin import MOST_ENTRIES, DeviceCode, device_code
from gpucheck.machine.binaries.library_search import Search
from gpucheck.machine.paths import join, name, parent, pattern
from gpucheck.probes.reading.extension_files import CandidateFile
from gpucheck.probes.reading.versions import is_cuda

# Names of C++ symbols: which ones belong to PyTorch, and how a person would write them.

# Only namespaces that no other project uses; functions of C (THP...) without one.
_OF_TORCH = re.compile(
    r"_Z(?:T[VISTCW]|GV)?N[rVKRO]{0,3}(?:3c10|2at|5torch|6caffe2)|_Z[0-9]{1,3}THPVariable"
)
_C_NAMES = ("aoti_torch_", "torch_", "THPVariable")
"""Prefixes of PyTorch's C functions, including its stable interface, and its Python types."""
_SPECIAL = {"TV": "virtual table of ", "TI": "type information of ", "TS": "type name of "}
_NEW_STRING = "7__cxx11"
_OLD_STRING = r"(?:R?K?)Ss$"  # std::string before C++11 as the last parameter of a mangled name
_LENGTH = re.compile(r"[1-9][0-9]{0,3}")
_PLAIN = r"[A-Za-z_][A-Za-z0-9_]{0,200}"
_LONGEST = 160  # chosen: templates may be endless, and the beginning names the function


def is_of_torch(symbol: str) -> bool:
    """Whether only PyTorch's own libraries define a symbol of this name."""
    return symbol.startswith(_C_NAMES) or _OF_TORCH.match(symbol) is not None


def string_abi(symbols: list[str]) -> bool | None:
    """Return True if the symbols use C++11 strings, False for older ones, None for neither."""
    if any(_NEW_STRING in symbol for symbol in symbols):
        return True
    return False if any(re.search(_OLD_STRING, symbol) for symbol in symbols) else None


def short_name(symbol: str) -> str:
    """Return a symbol in C++ notation without parameters: ``c10::TensorImpl::decref_pyobject``.

    A symbol that is not understood is returned as it is.
    """
    if symbol.startswith("?"):
        return (_of_msvc(symbol) or symbol)[:_LONGEST]
    if not symbol.startswith("_Z"):
        return symbol[:_LONGEST]
    rest, prefix = symbol[2:], ""
    for mark, words in _SPECIAL.items():
        if rest.startswith(mark):
            rest, prefix = rest[2:], words
    parts = _nested(rest[1:].lstrip("rVKRO")) if rest.startswith("N") else _source_names(rest)[:1]
    return (prefix + "::".join(parts))[:_LONGEST] if parts else symbol[:_LONGEST]


def _of_msvc(symbol: str) -> str:
    """Return a name of Microsoft's compiler in C++ notation; "" if it is not a plain one.

    The innermost scope comes first: ``?sizes@TensorImpl@c10@@QEBA...``. The name of a constructor
    begins with ``?0``, that of a destructor with ``?1``.
    """
    mark = symbol[1:3]
    inner = symbol[3:] if mark in ("?0", "?1") else symbol[1:]
    parts = inner.partition("@@")[0].split("@")[::-1]
    if not all(re.fullmatch(_PLAIN, part) for part in parts):
        return ""
    if mark in ("?0", "?1"):
        parts.append(("~" if mark == "?1" else "") + parts[-1])
    return "::".join(parts)


def _nested(rest: str) -> list[str]:
    """Return the parts of a nested name; a constructor gets the name of its class."""
    parts = _source_names(rest)
    ending = rest[sum(len(part) + len(str(len(part))) for part in parts) :][:2]
    if parts and ending[:1] == "C" and ending[1:].isdecimal():
        parts.append(parts[-1])
    elif parts and ending[:1] == "D" and ending[1:].isdecimal():
        parts.append(f"~{parts[-1]}")
    elif parts and ending[:1].islower():
        parts.append("operator")
    return parts


def _source_names(rest: str) -> list[str]:
    """Return the names at the start of the text, each encoded as its length and the name."""
    parts = []
    at = 0
    while (match := _LENGTH.match(rest, at)) is not None:
        end = match.end() + int(match[0])
        if end > len(rest):
            break
        parts.append(rest[match.end() : end])
        at = end
    return parts


# What torch's own libraries provide to an extension: their symbols and the libraries they load.

OWN_STEMS = (
    "c10", "c10_cuda", "c10_hip", "c10_xpu", "caffe2_nvrtc", "nvfuser_codegen", "shm", "torch",
    "torch_cpu", "torch_cuda", "torch_cuda_cpp", "torch_cuda_cu", "torch_cuda_linalg",
    "torch_global_deps", "torch_hip", "torch_nvshmem", "torch_python", "torch_xpu",
    "torch_xpu_ops",
)  # fmt: skip
"""Names of PyTorch's own libraries, without platform-specific parts."""
_OWN = frozenset(f"lib{stem}.so" for stem in OWN_STEMS)
_GLOBS = ("libc10*.so", "libtorch*.so", "libcaffe2*.so", "libnvfuser*.so", "libshm.so")
# Without these, every symbol of torch would look as if it were missing.
_INDISPENSABLE = ("libc10.so", "libtorch_cpu.so")
_FIRST = (
    "libc10.so",
    "libtorch_cpu.so",
    "libtorch_python.so",
    "libc10_cuda.so",
    "libtorch_cuda.so",
)


class TorchLibraries:
    """The libraries of one torch package; conda keeps them in the library folder of its prefix."""

    def __init__(self, host: Host, package: str, prefix: str) -> None:
        self._host = host
        self._lib = join(package, "lib")
        found: dict[str, str] = {}
        for folder in (self._lib, join(prefix, "lib")) if prefix else (self._lib,):
            for stem in _GLOBS:
                for path in host.glob(pattern(folder, stem)).value or ():
                    if self.are(name(path)):
                        found.setdefault(name(path), path)
        ranked = [soname for soname in _FIRST if soname in found] + [
            o for o in found if o not in _FIRST
        ]
        self._paths = {soname: found[soname] for soname in ranked}
        self._read: dict[str, Elf | None] = {}

    @staticmethod
    def are(soname: str) -> bool:
        """Whether a library is one of PyTorch's own, by its name."""
        return soname in _OWN

    def has(self, soname: str) -> bool:
        """Whether torch has this library."""
        return soname in self._paths

    def complaint(self) -> str:
        """Return why its symbols are unknown; "" if they are known."""
        for library in _INDISPENSABLE:
            if self._elf(library) is None:
                return say("{folder} has no readable {library}", folder=self._lib, library=library)
        return ""

    def needed(self) -> set[str]:
        """Return the SONAMEs that torch's libraries need: they are loaded before an extension."""
        elves = [self._elf(soname) for soname in self._paths]
        return {soname for elf in elves if elf is not None for soname in elf.needed}

    def lacks(self, symbols: Iterable[str]) -> Answer[set[str]]:
        """Return the symbols that none of torch's libraries defines."""
        left = set(symbols)
        for soname in self._paths:
            elf = self._elf(soname)
            if not left or elf is None:
                continue
            answer = missing_symbols(self._host, elf, left)
            if answer.value is None:
                return answer
            left = answer.value
        return Answer(left, self._lib)

    def _elf(self, soname: str) -> Elf | None:
        if soname not in self._read:
            path = self._paths.get(soname)
            self._read[soname] = read_elf(self._host, path).value if path is not None else None
        return self._read[soname]


# Copies that auditwheel makes, with 8 digits of a hash.
_RENAMED = r"[^.]+[-.][0-9a-f]{8}\.so(?:\.[0-9.]{1,20})?"
_DRIVER = "libcuda.so.1"
_OF_MAJOR = (
    r"lib(?:cudart|cublas|cublasLt|nvrtc)(?:[-.][0-9a-f]{8})?\.so\.(1[0-9])(?:\.[0-9.]{1,20})?"
)
"""Libraries whose version number is the major release of their CUDA."""
MOST_HEADERS = 2 * MOST_ENTRIES
"""Maximum number of GPU code headers that are read in all files together."""


class Needs:
    """The needs of one file that uses PyTorch or CUDA; the reader fills in the answers."""

    def __init__(
        self, file: CandidateFile, needed: Sequence[str], *, torch: bool, cuda: str
    ) -> None:
        self.file = file
        self.needed = needed
        self.needs_torch = torch
        self.cuda = cuda
        self.missing_libraries: Answer[list[str]] = Answer([], file.path)
        self.symbols: Answer[list[str]] = Answer([], file.path)
        self.missing_symbols: Answer[list[str]] = Answer([], file.path)
        self.codes: Answer[list[str]] = Answer(None, file.path, say("not read"))

    @property
    def cannot_load(self) -> bool:
        """Whether something that the file needs is known to be missing."""
        return bool(self.missing_libraries.value or self.missing_symbols.value)


class NeedsReader:
    """Reads compiled files and compares their needs with what one torch provides."""

    def __init__(
        self, host: Host, torch: TorchBuild, interpreter: Interpreter, loading: Loading
    ) -> None:
        self._host = host
        # conda's interpreter makes the loader search here, for itself and for everything it loads.
        prefixes = dict.fromkeys((interpreter.prefix, interpreter.base_prefix))
        self._of_interpreter = [join(prefix, "lib") for prefix in prefixes if prefix]
        self._torch, self._prefix = torch, interpreter.prefix or ""
        self._loaded = {library.soname for library in loading.libraries or ()}
        self._search = Search(host)
        self._elves: dict[str, Elf] = {}
        self._headers_left = MOST_HEADERS
        self.unread: list[str] = []
        """The files that could not be read, and why."""

    @cached_property
    def _libraries(self) -> TorchLibraries:
        """The libraries of torch; they are searched only when something needs them."""
        return TorchLibraries(self._host, self._torch.path or "", self._prefix)

    def read(self, file: CandidateFile) -> Needs | None:
        """Return what the file needs; None if it needs neither PyTorch nor CUDA."""
        answer = read_needed(self._host, file.path)
        needed = answer.value
        if needed is None:
            if not is_none(answer.problem):
                self.unread.append(say("{source}: {why}", source=file.path, why=answer.problem))
            return None
        if not any(_matters(soname) for soname in needed):
            return None
        elf = read_elf(self._host, file.path).value
        if elf is None:
            return None
        self._elves[file.path] = elf
        majors = (match[1] for soname in needed if (match := re.fullmatch(_OF_MAJOR, soname)))
        of_torch = any(TorchLibraries.are(soname) for soname in needed)
        return Needs(file, needed, torch=of_torch, cuda=next(majors, ""))

    def resolve(self, files: list[Needs]) -> None:
        """Fill in the missing libraries and symbols, and the GPU code in each file."""
        if not files:
            return
        self._loaded |= self._libraries.needed()
        for needs in files:
            missing = [
                soname
                for soname in needs.needed
                if _is_looked_for(soname) and not self._is_there(soname, needs)
            ]
            needs.missing_libraries = Answer(missing, needs.file.path)
        self._compare_symbols([needs for needs in files if needs.needs_torch])
        for needs in sorted(files, key=lambda needs: not needs.needs_torch):
            needs.codes = self._codes(needs)

    def _is_there(self, soname: str, needs: Needs) -> bool:
        of_torch = self._libraries.are(soname)
        if self._libraries.has(soname) or (soname in self._loaded and not of_torch):
            return True
        folders = [*_own_folders(self._elves[needs.file.path]), *self._of_interpreter]
        return bool(
            self._search.in_folders(folders, soname, "its own folders")
            or self._search.paths(soname)
        )

    def _codes(self, needs: Needs) -> Answer[list[str]]:
        if self._torch.built_for != "cuda":
            return Answer(None, needs.file.path, say("not read: torch is not built for CUDA"))
        if needs.cannot_load:
            return Answer(None, needs.file.path, say("not read: the file cannot be loaded"))
        most = min(MOST_ENTRIES, self._headers_left)
        if most <= 0:
            return Answer(
                None, needs.file.path, say("not read: other files have too much GPU code")
            )
        answer = device_code(self._host, self._elves[needs.file.path], most)
        if answer.value is not None:
            self._headers_left -= answer.value.headers
        return answer.map(all_codes)

    def _compare_symbols(self, files: list[Needs]) -> None:

        why = self._libraries.complaint()
        for needs in files:
            symbols = undefined_symbols(self._host, self._elves[needs.file.path])
            needs.symbols = symbols.map(
                lambda found: [s.name for s in found if not s.weak and is_of_torch(s.name)]
            )
        wanted = {name for needs in files for name in needs.symbols.value or ()}
        lacking = self._libraries.lacks(wanted)
        for needs in files:
            if why or lacking.value is None:
                needs.missing_symbols = Answer(None, needs.file.path, why or lacking.problem)
            else:
                missing = lacking.value
                needs.missing_symbols = needs.symbols.map(
                    lambda names, missing=missing: [name for name in names if name in missing]  # type: ignore[misc]
                )
        for top in dict.fromkeys(needs.file.top for needs in files if needs.missing_symbols.value):
            self._leave_out_own([needs for needs in files if needs.file.top == top])

    def _leave_out_own(self, package: list[Needs]) -> None:
        """Leave out symbols that a library of the same package defines."""
        wanted = {name for needs in package for name in needs.missing_symbols.value or ()}
        left = set(wanted)
        for needs in package:
            answer = missing_symbols(self._host, self._elves[needs.file.path], left)
            left = answer.value if answer.value is not None else left
            if not left:
                break
        for needs in package:
            needs.missing_symbols = needs.missing_symbols.map(
                lambda names: [name for name in names if name in left]
            )


def _matters(soname: str) -> bool:
    return TorchLibraries.are(soname) or is_cuda(soname) or soname == _DRIVER


def _is_looked_for(soname: str) -> bool:
    """Whether a library comes from elsewhere: a wheel renames the libraries that it bundles."""
    of_cuda = is_cuda(soname) and re.fullmatch(_RENAMED, soname) is None
    return TorchLibraries.are(soname) or of_cuda


def _own_folders(elf: Elf) -> list[str]:
    """Return the folders in DT_RUNPATH or DT_RPATH of the file."""
    folders = elf.runpath if elf.runpath is not None else elf.rpath or ""
    origin = parent(elf.path)
    placed = [
        folder.replace("$ORIGIN", origin).replace("${ORIGIN}", origin)
        for folder in folders.split(":")
    ]
    return [folder for folder in placed if folder.startswith("/")]


def all_codes(found: DeviceCode) -> list[str]:
    """Return the codes.

    Raises:
        ValueError: not all GPU code was read.
    """
    if not found.complete:
        raise ValueError(say("it has more GPU code than gpucheck reads"))
    return list(found.codes)
