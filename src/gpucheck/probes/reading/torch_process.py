"""A simulated process that has imported torch, as the dynamic loader would fill it."""

import fnmatch
import glob
from collections.abc import Callable, Iterable

import msgspec

from gpucheck.facts import Answer, message_of
from gpucheck.facts.torch import Interpreter, TorchBuild
from gpucheck.language import in_series, say
from gpucheck.machine import Host
from gpucheck.machine.binaries.library_search import Library, Lost, Opened
from gpucheck.machine.binaries.loader import Process
from gpucheck.machine.paths import join, name
from gpucheck.probes.reading.preloading import Entry, Preloading, understand
from gpucheck.probes.reading.versions import is_cuda, stem
from gpucheck.tables.cuda import OpenRow, RuntimeOpens

_INIT_LIMIT = 1024 * 1024  # bytes; that of torch 2.13 has 112 KB
_MOST_ENTRIES = 256  # chosen: sys.path has some ten
_MOST_NAMED = 3  # chosen: they only show that torch is for another Python
_RUNTIME = "libcudart.so"
"""No release of torch loads anything by path after ``libtorch_global_deps`` without it."""


class TorchProcess(msgspec.Struct, kw_only=True):
    """What ``import torch`` loads."""

    process: Process
    preloading: Preloading | None = None
    """What torch opens by path; None for a CPU build, or if a variable turns it off."""
    libraries: list[Library]
    """Everything that is loaded, in order; of an import that fails, up to the failure."""
    lost: list[Lost]
    """Needs that cannot be met; any of them ends the import."""
    preload_problem: str = ""
    """Why torch's own preloading ends the import, in its words; "" if it does not."""


def torch_process(host: Host, interpreter: Interpreter, torch: TorchBuild) -> Answer[TorchProcess]:
    """Follow ``import torch`` in the target interpreter through the dynamic loader.

    The answer is a problem if the interpreter's loader or torch's own preloading is not understood.
    """
    if not interpreter.executable or not torch.path or interpreter.sys_path is None:
        return Answer(None, "", say("the interpreter or its torch is unknown"))
    process = Process(host, interpreter.executable)
    if process.problem:
        return Answer(None, interpreter.executable, process.problem)
    done = TorchProcess(process=process, libraries=[], lost=[])
    if not host.env().get("TORCH_USE_RTLD_GLOBAL"):
        try:
            _load_global_deps(host, interpreter.sys_path, torch, done)
        except ValueError as error:
            path = join(torch.path, "__init__.py")
            return Answer(None, "", say("{problem} ({path})", problem=message_of(error), path=path))
    if not done.lost and not done.preload_problem:
        _open_module(host, interpreter, torch.path, done)
    if process.unread:
        return Answer(None, "", process.unread)
    done.libraries[:0] = process.loaded
    return Answer(done, torch.path)


def _load_global_deps(
    host: Host, sys_path: list[str], torch: TorchBuild, done: TorchProcess
) -> None:
    """Load libtorch_global_deps, and what torch loads after it or instead of its needs.

    Raises:
        ValueError: what torch loads is not understood.
    """
    path = join(torch.path or "", "lib", "libtorch_global_deps.so")
    opened = done.process.open(path, via="path", needed_by="torch")
    if opened.library is not None and not _mapped(done, _RUNTIME):
        return
    init = host.read(join(torch.path or "", "__init__.py"), _INIT_LIMIT)
    if init.value is None:
        raise ValueError(init.problem)
    plan = done.preloading = understand(init.value, torch.cuda or None)
    preloader = _Preloader(host, done, sys_path[:_MOST_ENTRIES])
    if opened.library is not None:
        if all(_mapped(done, text) for text in plan.mapped):
            preloader.load(plan.always, plan)
        return
    lost = opened.lost[0]
    message = lost.path if lost.path and lost.why != "not found" else lost.name
    if any(word in message for word in plan.error_names):
        if preloader.load(plan.on_error, plan, fatal=True):
            _open(done, path, "path")
        elif not done.lost:
            done.lost += opened.lost
    else:
        done.lost += opened.lost
        done.libraries += opened.added


def _mapped(done: TorchProcess, text: str) -> bool:
    """Whether the text is part of the path of a loaded file, as ``/proc/self/maps`` has it."""
    return any(text in library.real_path for library in done.process.loaded)


class _Preloader:
    """Loads libraries by path as torch's ``_preload_cuda_deps`` does."""

    def __init__(self, host: Host, done: TorchProcess, sys_path: list[str]) -> None:
        self._host = host
        self._done = done
        self._sys_path = sys_path

    def load(self, entries: tuple[Entry, ...], plan: Preloading, *, fatal: bool = False) -> bool:
        """Load the entries in order, and stop at the first failure."""
        for entry in entries:
            path = self._together(plan, entry) if plan.together else self._first(entry)
            if path is None:
                if entry.required:
                    if fatal:
                        self._done.preload_problem = say(
                            "{library} not found in the system path", library=entry.name
                        )
                    return False
                continue
            opened = self._done.process.open(path, via="preload", needed_by="torch")
            if opened.library is None:
                if fatal:
                    self._done.lost += opened.lost
                    self._done.libraries += opened.added
                return False
        return True

    def _first(self, entry: Entry) -> str | None:
        """Return the first file of the pattern, in the order of ``glob.glob``."""
        for folder in self._folders(entry):
            for pattern in entry.patterns:
                inner, _, name = join(folder, pattern).rpartition("/")
                found = self._in_folder(inner, name)
                if found is not None:
                    return found
        return None

    def _folders(self, entry: Entry) -> list[str]:
        """Return the entries of sys.path that are searched."""
        if not entry.beside:
            return self._sys_path
        return [
            folder
            for folder in self._sys_path
            if self._host.exists(join(folder, entry.beside)).value
        ]

    def _in_folder(self, folder: str, pattern: str) -> str | None:
        names = self._host.listing(folder).value or ()
        found = next((name for name in names if fnmatch.fnmatchcase(name, pattern)), None)
        return join(folder, found) if found is not None else None

    def _together(self, plan: Preloading, entry: Entry) -> str | None:
        """Return the file below the first entry of sys.path that has them all."""
        last = None
        for folder in self._folders(entry):
            last = join(folder, entry.patterns[0])
            paths = [join(folder, alternative.patterns[0]) for alternative in plan.on_error]
            if all(self._host.exists(path).value for path in paths):
                break
        return last


def _open(done: TorchProcess, path: str, via: str) -> None:
    opened = done.process.open(path, via=via, needed_by="torch")
    if opened.library is None:
        done.lost += opened.lost
        done.libraries += opened.added


def _open_module(host: Host, interpreter: Interpreter, torch: str, done: TorchProcess) -> None:
    """Load the extension module that ``import torch`` imports."""
    module = _module(host, torch, interpreter.soabi)
    if module is not None:
        _open(done, module, "path")
        return
    others = host.glob(join(glob.escape(torch), "_C.*.so")).value or []
    names = in_series([name(path) for path in others[:_MOST_NAMED]])
    why = say("only {names} is there", names=names) if names else "not found"
    done.lost.append(Lost(f"_C.{interpreter.soabi or '*'}.so", "torch", why))


def _module(host: Host, torch: str, soabi: str | None) -> str | None:
    """Return the path of the extension module ``torch._C`` for this interpreter."""
    names = ([f"_C.{soabi}.so"] if soabi else []) + ["_C.abi3.so", "_C.so"]
    for file_name in names:
        if host.exists(join(torch, file_name)).value:
            return join(torch, file_name)
    found = host.glob(join(glob.escape(torch), "_C.*.so")).value or []
    usable = [path for path in found if soabi is None and name(path).startswith("_C.")]
    return usable[0] if len(usable) == 1 else None


# Finds the libraries that others open by name at run time, from the table ``runtime_opens``.

_UNTOLD = ("driver", "plugin", "system")
"""Kinds of libraries whose absence is judged elsewhere, or is not a fault."""


class RuntimeOpened(msgspec.Struct, frozen=True):
    """A library that would be opened or cannot be opened, or one that is loaded along with it."""

    opener: Library
    row: OpenRow
    soname: str
    library: Library | None
    lost: tuple[Lost, ...]


def runtime_opened(
    process: Process,
    imported: Iterable[Library],
    table: RuntimeOpens,
    cuda: str,
    release: Callable[[Library], str],
) -> list[RuntimeOpened]:
    """Open what the table lists, one after the other, as the process would.

    Args:
        process: with torch loaded; afterwards it also contains what was opened.
        imported: what importing torch loads; these are not reported.
        table: which library opens which.
        cuda: the major version of torch's CUDA, "" if unknown.
        release: returns the release of a library, "" if unknown.
    """
    openers = list(imported)
    reported = set(map(id, openers))
    done = []
    for opener in openers:  # the list grows: an opened library may open more
        for row in table.opened_by(_plain(opener.label), release(opener), cuda):
            names = row.names(release(opener))
            if not names:
                continue
            soname, opened = names[-1], _open_any(process, names, opener)
            library = opened.library
            if library is not None and id(library) in reported:
                continue
            done.append(RuntimeOpened(opener, row, soname, library, tuple(opened.lost)))
            if library is None:
                continue
            reported.add(id(library))
            for added in (added for added in opened.added if id(added) not in reported):
                reported.add(id(added))
                done.append(RuntimeOpened(library, row, added.label, added, ()))
            openers += (
                new_opener for new_opener in (library, *opened.added) if new_opener not in openers
            )
    return done


def faults(opened: Iterable[RuntimeOpened], table: RuntimeOpens) -> list[Lost]:
    """Return what cannot be opened although something fails without it, each name once.

    Of a library that may be absent, only missing CUDA libraries that it needs are reported.
    """
    found: dict[str, Lost] = {}
    for runtime_library in opened:
        if runtime_library.row.kind in _UNTOLD:
            continue
        for lost in runtime_library.lost:
            may_be_absent = lost.name == runtime_library.soname or not is_cuda(lost.name)
            if lost.name in table.of_driver or (
                runtime_library.row.need == "optional" and may_be_absent
            ):
                continue
            found.setdefault(lost.name, lost)
    return list(found.values())


def _open_any(process: Process, names: tuple[str, ...], opener: Library) -> Opened:
    """Open a library under the names that the opener tries, one after the other."""
    for soname in names[:-1]:
        opened = process.open(soname, opener, needed_by=opener.label)
        if opened.library is not None:
            return opened
    return process.open(names[-1], opener, needed_by=opener.label)


def _plain(label: str) -> str:
    """Return a SONAME without the hash that wheel tools insert."""
    return f"lib{stem(label)}.so{label.partition('.so')[2]}"
