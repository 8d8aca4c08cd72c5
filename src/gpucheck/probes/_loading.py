"""Fills the section ``loading`` from the process that the loader would make."""

import posixpath

from gpucheck.facts import Notes
from gpucheck.host import Host
from gpucheck.loader import Library, Lost
from gpucheck.probes._conda import conda_records
from gpucheck.probes._dist_info import dist_infos
from gpucheck.probes._library_owner import Owners, is_cuda, library_name, stem
from gpucheck.probes._library_versions import Place, library_version
from gpucheck.probes._loading_checks import Lack, missing_functions, missing_versions
from gpucheck.probes._permissions import kept_out
from gpucheck.probes._runtime_opened import RuntimeOpened, runtime_opened
from gpucheck.probes._torch_process import TorchProcess, torch_process
from gpucheck.probes.interpreter import Interpreter
from gpucheck.probes.loading import (
    NOT_READABLE,
    FoundVia,
    LoadedLibrary,
    Loading,
    MissingLibrary,
    MissingVersion,
)
from gpucheck.probes.torch_build import TorchBuild

_SOURCE = "the loader's rules, followed from the interpreter"
_WAYS: dict[str, FoundVia] = {
    "preload": "preload", "LD_PRELOAD": "LD_PRELOAD", "ld.so.preload": "ld.so.preload",
    "path": "path", "rpath": "rpath", "LD_LIBRARY_PATH": "LD_LIBRARY_PATH", "runpath": "runpath",
    "ld.so.cache": "ld.so.cache", "default": "default", "start": "path",
}  # fmt: skip
_MOST_PASSED_OVER = 8


def resolve(host: Host, interpreter: Interpreter, torch: TorchBuild) -> Loading:
    """Return what importing torch loads, what it lacks, and what it opens later."""
    done = torch_process(host, interpreter, torch)
    if done.value is None:
        return Loading(problems={"*": f"{done.source}: {done.problem}".removeprefix(": ")})
    return _Resolver(host, interpreter, torch, done.value).section()


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

    def section(self) -> Loading:
        """Return the whole section."""
        done = self._done
        mine = [one for one in done.libraries if library_name(one.label)]
        by_name = {stem(one.label): one for one in reversed(mine)}
        libraries = [self._library(one, one.label) for one in mine]
        versions = {one.library: one.version for one in libraries}
        missing = [self._missing(lost, fatal=True) for lost in done.lost]
        if done.preload_problem and not missing:
            missing.append(MissingLibrary(
                soname=done.preload_problem.partition(" ")[0], needed_by="torch",
                why=done.preload_problem, path="", fatal=True, sources={"*": _SOURCE},
            ))  # fmt: skip
        missing += [self._cut_off(one) for one in done.libraries if one.elf.cut_off]
        opened: list[RuntimeOpened] = []
        if not missing:
            cuda = (self._torch.cuda or "").partition(".")[0]
            opened = runtime_opened(done.process, by_name, cuda, versions.get("cudnn") or "")
            missing += self._lost_later(opened)
        later = [one for one in done.process.loaded if one not in done.libraries]
        lacks = self._lacks(done.libraries, later)
        plan = done.preloading
        return Loading(
            libraries=libraries,
            missing=missing,
            runtime_opened=[
                self._library(one.library, one.soname, one.opener)
                for one in opened
                if one.library is not None
            ],
            preloading=plan.words() if plan is not None else "",
            symbol_versions_missing=[
                self._lack(lack, fatal=lack.needing not in later) for lack in lacks
            ],
            sources={"*": _SOURCE},
        )

    def _lacks(self, imported: list[Library], later: list[Library]) -> list[Lack]:
        libraries = imported + later
        # The parts of cuDNN are compared by their versions: their symbols are too many.
        sonames = {one.label for one in libraries if is_cuda(one.label)}
        sonames -= {name for name in sonames if name.startswith("libcudnn_")}
        preloaded = [one for one in libraries if one.via in ("LD_PRELOAD", "ld.so.preload")]
        functions = missing_functions(self._host, libraries, sonames, preloaded)
        return missing_versions(libraries) + functions

    def _library(self, one: Library, soname: str, opener: Library | None = None) -> LoadedLibrary:
        notes = Notes()
        notes.said("*", _SOURCE)
        owner = self._owners.owner(soname, one.path, one.real_path)
        version = None
        if is_cuda(soname):
            places: dict[str, Place] = {"wheel": "wheel", "conda": "conda", "system": "system"}
            name = stem(soname).partition("_")[0]
            place = places.get(owner, "other")
            answer, _package = library_version(
                self._host, name, one.real_path, place, self._infos, self._conda
            )
            version = notes.take("version", answer)
        else:
            notes.unknown("version", "only those of CUDA's libraries are looked for")
        variable = one.via in ("LD_LIBRARY_PATH", "LD_PRELOAD")
        return LoadedLibrary(
            soname=soname,
            library=library_name(soname),
            path=self._plain(one.path, one.real_path),
            real_path=one.real_path,
            found_via=_WAYS[one.via],
            variable_entry=(one.entry or one.name) if variable else "",
            needed_by=opener.label if opener is not None else one.needed_by,
            owner=owner,
            version=version,
            passed_over=self._passed_over(one, soname, opener) if is_cuda(soname) else [],
            sources=notes.sources,
            problems=notes.problems,
        )

    def _passed_over(self, one: Library, soname: str, opener: Library | None) -> list[str]:
        """Return the other copies on the way of an object that needs the library."""
        needing = opener or next(
            (other for other in self._done.libraries if other.needs.get(soname) is one), None
        )
        paths = self._done.process.candidates(soname, needing)
        taken = (one.path, one.real_path)
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
            searched=", ".join(dict.fromkeys(lost.searched)),
            why=NOT_READABLE if barrier else lost.why,
            path=barrier or path,
            fatal=fatal,
            sources={"*": _SOURCE},
        )

    def _cut_off(self, one: Library) -> MissingLibrary:
        return MissingLibrary(
            soname=one.label if one.elf.soname else one.name.rpartition("/")[2],
            needed_by=one.needed_by,
            why=f"the file is cut off: {one.elf.size} bytes of at least {one.elf.whole_size}",
            path=self._plain(one.path, one.real_path),
            fatal=True,
            sources={"*": _SOURCE},
        )

    def _lost_later(self, opened: list[RuntimeOpened]) -> list[MissingLibrary]:
        """Return what cannot be opened though its opener fails without it.

        Of an optional library only its own needs are told: that it is not there is no fault.
        """
        found = []
        for one in opened:
            for lost in one.lost:
                if lost.name == "libcuda.so.1" or (
                    one.opening.need == "optional" and lost.name == one.soname
                ):
                    continue
                found.append(self._missing(lost, fatal=False))
        return found

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
        """Return the path without ``..``, where it leads to the same file."""
        plain = posixpath.normpath(path)
        return plain if plain == path or self._real(plain) == real_path else path
