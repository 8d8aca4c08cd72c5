"""What a compiled file needs of PyTorch and CUDA, and whether it is available."""

import re
from collections.abc import Sequence
from functools import cached_property

from gpucheck.facts import Answer
from gpucheck.facts.libraries import Loading
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.binaries.elf import (
    Elf,
    is_none,
    missing_symbols,
    read_elf,
    read_needed,
    undefined_symbols,
)
from gpucheck.machine.binaries.elf.fatbin import MOST_ENTRIES, DeviceCode, device_code
from gpucheck.machine.binaries.loader import Search
from gpucheck.machine.paths import join, parent
from gpucheck.probes.extensions.reading.files import Candidate
from gpucheck.probes.extensions.reading.torch_exports import TorchLibraries
from gpucheck.probes.loading.reading.owners import is_cuda

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

    def __init__(self, file: Candidate, needed: Sequence[str], *, torch: bool, cuda: str) -> None:
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


class Reader:
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

    def read(self, file: Candidate) -> Needs | None:
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
        from gpucheck.probes.extensions.reading.symbol_names import is_of_torch  # noqa: PLC0415  # compiles patterns

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
