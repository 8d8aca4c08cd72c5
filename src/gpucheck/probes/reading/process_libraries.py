"""Fills the section ``loading`` from the simulated process of the dynamic loader."""

import posixpath
import re
from collections.abc import Iterable, Sequence

import msgspec

from gpucheck.facts import Answer, Notes
from gpucheck.facts.libraries import (
    NOT_READABLE,
    LoadedLibrary,
    LoadedVia,
    Loading,
    MissingLibrary,
    MissingVersion,
)
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.language import in_series, say
from gpucheck.machine import Host
from gpucheck.machine.binaries.elf import Elf
from gpucheck.machine.binaries.elf_symbols import missing_symbols, undefined_symbols
from gpucheck.machine.binaries.library_search import Library, Lost
from gpucheck.machine.paths import parent
from gpucheck.probes.reading.dist_info import (
    DistInfo,
    conda_records,
    dist_infos,
    recorded_libraries,
)
from gpucheck.probes.reading.torch_process import (
    RuntimeOpened,
    TorchProcess,
    faults,
    runtime_opened,
    torch_process,
)
from gpucheck.probes.reading.versions import (
    Owners,
    Place,
    is_cuda,
    library_name,
    library_version,
    stem,
)
from gpucheck.tables.cuda import RuntimeOpens

_SOURCE = say("the loader's rules, followed from the interpreter")
_WAYS: dict[str, LoadedVia] = {
    "preload": "preload", "LD_PRELOAD": "LD_PRELOAD", "ld.so.preload": "ld.so.preload",
    "path": "path", "rpath": "rpath", "LD_LIBRARY_PATH": "LD_LIBRARY_PATH", "runpath": "runpath",
    "ld.so.cache": "ld.so.cache", "default": "default", "start": "path",
}  # fmt: skip
_MOST_PASSED_OVER = 8  # chosen: copies of one library; the first ones are those to be removed
_OF_TORCH = ("torch", "torch_cpu", "torch_cuda", "c10", "c10_cuda")
"""Libraries whose release is that of torch."""

_VERSION_FAMILY = re.compile(r"([A-Za-z_]+?)_?([0-9]+(?:\.[0-9]+)*)\Z")
_MOST_FUNCTIONS = 16
"""Maximum number of complaints of one kind about one pair of libraries."""

_WHEELS = "/nvidia/"
"""NVIDIA's wheels are installed below it, mostly in a folder with the library's name."""
_BRINGS_LIBRARIES = ("nvidia-", "torch")


def resolve(
    host: Host, interpreter: Interpreter, torch: TorchBuild, opens: RuntimeOpens
) -> Loading:
    """Return what importing torch loads, what is missing, and what is opened later."""
    done = torch_process(host, interpreter, torch)
    if done.value is None:
        return Loading(problems={"*": done.complaint})
    return _Resolver(host, interpreter, torch, done.value).section(opens)


class Lack(msgspec.Struct, frozen=True):
    """A version or symbol that ``needing`` requires of ``library``, which does not define it."""

    needing: Library
    library: Library
    soname: str
    name: str
    newest: str
    """The newest available version of that family; "" for a symbol."""


class _Resolver:
    def __init__(
        self, host: Host, interpreter: Interpreter, torch: TorchBuild, done: TorchProcess
    ) -> None:
        self._host = host
        self._torch = torch
        self._done = done
        self._owners = Owners(host, interpreter, torch)
        self._infos = dist_infos(host, interpreter.sys_path or [])
        self._conda = conda_records(host, interpreter.prefix)
        self._versions: dict[str, Answer[str]] = {}

    def section(self, opens: RuntimeOpens) -> Loading:
        """Return the whole section."""
        done = self._done
        mine = [library for library in done.libraries if library_name(library.label)]
        libraries = [self._library(library, library.label) for library in mine]
        missing = [self._missing(lost, fatal=True) for lost in done.lost]
        if done.preload_problem and not missing:
            missing.append(MissingLibrary(
                soname=done.preload_problem.partition(" ")[0], needed_by="torch",
                why=done.preload_problem, path="", fatal=True, sources={"*": _SOURCE},
            ))  # fmt: skip
        missing += [self._cut_off(library) for library in done.libraries if library.elf.cut_off]
        opened: list[RuntimeOpened] = []
        if not missing:
            cuda = (self._torch.cuda or "").partition(".")[0]
            opened = runtime_opened(done.process, done.libraries, opens, cuda, self._release)
            missing += [self._missing(lost, fatal=False) for lost in faults(opened, opens)]
        later = [library for library in done.process.loaded if library not in done.libraries]
        lacks = self._lacks(done.libraries, later)
        plan = done.preloading
        return Loading(
            libraries=libraries,
            missing=missing,
            runtime_opened=[
                self._library(found.library, found.soname, found.opener)
                for found in opened
                if found.library is not None
            ],
            preloading=plan.words() if plan is not None else "",
            symbol_versions_missing=[
                self._lack(lack, fatal=lack.needing not in later) for lack in lacks
            ],
            sources={"*": _SOURCE},
        )

    def _lacks(self, imported: list[Library], later: list[Library]) -> list[Lack]:
        libraries = imported + later
        # The parts of cuDNN have too many symbols; their versions are compared instead.
        sonames = {library.label for library in libraries if is_cuda(library.label)}
        sonames -= {name for name in sonames if name.startswith("libcudnn_")}
        preloaded = [
            library for library in libraries if library.via in ("LD_PRELOAD", "ld.so.preload")
        ]
        functions = _missing_functions(self._host, libraries, sonames, preloaded)
        return missing_versions(libraries) + functions

    def _library(
        self, library: Library, soname: str, opener: Library | None = None
    ) -> LoadedLibrary:
        notes = Notes()
        notes.known("*", _SOURCE)
        owner = self._owners.owner(soname, library.path, library.real_path)
        version = notes.take("version", self._version(library)) if is_cuda(soname) else None
        if not is_cuda(soname):
            notes.unknown(
                "version", say("gpucheck looks only for the versions of CUDA's libraries")
            )
        variable = library.via in ("LD_LIBRARY_PATH", "LD_PRELOAD")
        return LoadedLibrary(
            soname=soname,
            library=library_name(soname),
            path=self._plain(library.path, library.real_path),
            real_path=library.real_path,
            found_via=_WAYS[library.via],
            variable_entry=(library.entry or library.name) if variable else "",
            needed_by=opener.label if opener is not None else library.needed_by,
            owner=owner,
            version=version,
            passed_over=self._passed_over(library, soname, opener) if is_cuda(soname) else [],
            sources=notes.sources,
            problems=notes.problems,
        )

    def _version(self, library: Library) -> Answer[str]:
        """Return the version of one of CUDA's libraries; each file is read once."""
        known = self._versions.get(library.real_path)
        if known is None:
            places: dict[str, Place] = {"wheel": "wheel", "conda": "conda", "system": "system"}
            place = places.get(
                self._owners.owner(library.label, library.path, library.real_path), "other"
            )
            name = stem(library.label).partition("_")[0]
            known, _package = library_version(
                self._host, name, library.real_path, place, self._infos, self._conda
            )
            self._versions[library.real_path] = known
        return known

    def _release(self, library: Library) -> str:
        """Return the version of a library; "" if it is none of CUDA's or torch's, or has none."""
        if stem(library.label) in _OF_TORCH:
            return (self._torch.version or "").partition("+")[0]
        return (self._version(library).value or "") if is_cuda(library.label) else ""

    def _passed_over(self, library: Library, soname: str, opener: Library | None) -> list[str]:
        """Return the other copies in the search path of an object that needs the library."""
        needing = opener or next(
            (other for other in self._done.libraries if other.needs.get(soname) is library), None
        )
        paths = self._done.process.candidates(soname, needing)
        taken = (library.path, library.real_path)
        others = [path for path in paths if self._real(path) not in taken]
        return list(dict.fromkeys(self._plain(path, self._real(path)) for path in others))[
            :_MOST_PASSED_OVER
        ]

    def _missing(self, lost: Lost, *, fatal: bool) -> MissingLibrary:
        barrier = kept_out(self._host, lost, self._infos)
        path = self._plain(lost.path, self._real(lost.path)) if lost.path else ""
        return MissingLibrary(
            soname=lost.name.rpartition("/")[2] if barrier else lost.name,
            needed_by=lost.needed_by,
            searched=in_series(list(dict.fromkeys(lost.searched))),
            why=NOT_READABLE if barrier else lost.why,
            path=barrier or path,
            fatal=fatal,
            sources={"*": _SOURCE},
        )

    def _cut_off(self, library: Library) -> MissingLibrary:
        return MissingLibrary(
            soname=library.label if library.elf.soname else library.name.rpartition("/")[2],
            needed_by=library.needed_by,
            why=say(
                "the file is cut off: {size} bytes of at least {whole}",
                size=library.elf.size,
                whole=library.elf.whole_size,
            ),
            path=self._plain(library.path, library.real_path),
            fatal=True,
            sources={"*": _SOURCE},
        )

    def _lack(self, lack: Lack, *, fatal: bool) -> MissingVersion:
        return MissingVersion(
            needed_by=lack.needing.label,
            library=lack.soname,
            path=self._plain(lack.library.path, lack.library.real_path),
            version=lack.name,
            newest=lack.newest,
            fatal=fatal,
            sources={"*": _SOURCE},
        )

    def _real(self, path: str) -> str:
        return self._host.real_path(path).value or path

    def _plain(self, path: str, real_path: str) -> str:
        """Return the path without ``..``, if it leads to the same file."""
        plain = posixpath.normpath(path)
        return plain if plain == path or self._real(plain) == real_path else path


def missing_versions(libraries: Iterable[Library]) -> list[Lack]:
    """Return the required versions that are not defined, as the loader checks them."""
    found = []
    for needing in libraries:
        for need in needing.elf.versions_needed:
            library = needing.needs.get(need.library)
            # As in the loader, a library without version information satisfies any version.
            if need.weak or library is None or not library.elf.versions_defined:
                continue
            if need.version not in library.elf.versions_defined:
                newest = _newest_of_family(library.elf, need.version)
                found.append(Lack(needing, library, need.library, need.version, newest))
    return found


def _missing_functions(
    host: Host, libraries: list[Library], sonames: set[str], extra: Iterable[Library] = ()
) -> list[Lack]:
    """Return the functions of these libraries that others need and that are not defined.

    Args:
        host: the machine.
        libraries: the loaded libraries.
        sonames: the libraries to check; a symbol counts if it is bound to one of their versions.
        extra: objects that may define a symbol in place of the library (LD_PRELOAD).
    """
    found: list[Lack] = []
    for needing in libraries:
        wanted = {need.library for need in needing.elf.versions_needed} & sonames
        if not wanted:
            continue
        symbols = undefined_symbols(host, needing.elf, wanted).value or []
        for soname in sorted(wanted):
            library = needing.needs.get(soname)
            names = [
                symbol.name for symbol in symbols if symbol.library == soname and not symbol.weak
            ]
            if library is None or not names:
                continue
            lacking = missing_symbols(host, library.elf, names).value or set()
            for other in extra:
                lacking -= lacking - (missing_symbols(host, other.elf, lacking).value or lacking)
            found += [
                Lack(needing, library, soname, name, "")
                for name in sorted(lacking)[:_MOST_FUNCTIONS]
            ]
    return found


def _newest_of_family(elf: Elf, like: str) -> str:
    """Return the newest version of the same family: GLIBCXX_3.4.29 for GLIBCXX_3.4.30."""
    family = _VERSION_FAMILY.fullmatch(like)
    if family is None:
        return ""
    numbers = [
        (tuple(int(part) for part in match[2].split(".")), version)
        for version in elf.versions_defined
        if (match := _VERSION_FAMILY.fullmatch(version)) and match[1] == family[1]
    ]
    return max(numbers)[1] if numbers else ""


def kept_out(host: Host, lost: Lost, infos: Sequence[DistInfo]) -> str:
    """Return the file that this user may not read, or the folder that hides it; otherwise "".

    A folder that cannot be searched counts only if it certainly contains the library: a wheel's
    RECORD says so, or it is the folder of the library's own wheel.
    """
    seen = next((path for path in lost.denied if host.stat(path).value is not None), None)
    if seen is not None:
        return _real(host, seen)
    hidden = [posixpath.normpath(path) for path in lost.denied]
    if not hidden:
        return ""
    path = next((path for path in hidden if _is_of_its_wheel(path)), None)
    if path is None:
        recorded = _recorded(host, infos)
        path = next((path for path in hidden if path in recorded), None)
    return _real(host, _hiding(host, path)) if path is not None else ""


def _is_of_its_wheel(path: str) -> bool:
    folder = path.partition(_WHEELS)[2].partition("/")[0]
    return bool(folder) and path.rpartition("/")[2].lower().startswith(f"lib{folder}")


def _recorded(host: Host, infos: Sequence[DistInfo]) -> set[str]:
    wheels = [info for info in infos if info.project.startswith(_BRINGS_LIBRARIES)]
    return {file.path for info in wheels for file in recorded_libraries(host, info).value or ()}


def _hiding(host: Host, path: str) -> str:
    """Return the nearest visible folder above the path: that one cannot be searched."""
    folder = parent(path)
    while host.stat(folder).value is None and parent(folder) not in ("", folder):
        folder = parent(folder)
    return folder


def _real(host: Host, path: str) -> str:
    return host.real_path(path).value or path
