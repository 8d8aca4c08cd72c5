"""A process as the dynamic loader fills it, computed from files.

This follows glibc's ``_dl_map_object``. A name that is already loaded is not searched. Otherwise
these are searched in order: DT_RPATH of the object that needs it, of the objects that caused that
one to be loaded, and of the executable (none of them if the needing object has DT_RUNPATH),
LD_LIBRARY_PATH, its own DT_RUNPATH, the cache, and the default folders. Files for another machine
are skipped; any other damage ends the search. Needs are met breadth first, and a file is identified
by its inode.
"""

import re

import msgspec

from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.binaries.elf import Elf, read_elf
from gpucheck.machine.binaries.library_search import (
    ELF_MACHINES,
    Library,
    Lost,
    Opened,
    Search,
    default_folders,
    triplet,
)

# Chosen: a process with torch for CUDA loads some hundred libraries. The limits end what hostile
# variables, preloads and run paths may cost, long before the probe's deadline.
_MOST_LIBRARIES = 2000
_MOST_PRELOADS = 64
_MOST_FOLDERS = 128
_DAMAGE = ("file too short", "invalid ELF header", "object file has no")
"""The loader's own messages about a file; anything else is a failure to read it."""
_DENIED = "EACCES"
"""If permissions keep the loader out, it continues and finally reports that nothing was found."""
# As ld.so(8): a name without braces must end there, or it is another word.
_SUBSTITUTED = r"\$(?:(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_])|\{(ORIGIN|LIB|PLATFORM)\})"
# glibc's, whose rules are computed here; musl's and Nix's are not.
_USUAL_LOADERS = (
    r"/(?:usr/)?lib(?:32|64|x32)?/(?:[a-z0-9_]+-linux-gnu[a-z0-9]*/)?ld(?:64)?(?:-linux[a-z0-9_-]*)?"
    r"\.so\.[0-9]"
)


class _Match(msgspec.Struct, frozen=True):
    path: str
    via: str
    entry: str
    elf: Elf | None = None
    problem: str = ""


State = tuple[list[Library], dict[str, Library], dict[object, Library]]


class Process:
    """A process of one executable with only its start-up libraries, until ``open``.

    Args:
        host: the machine.
        executable: the program; links are allowed.
    """

    def __init__(self, host: Host, executable: str) -> None:
        self.host = host
        self.search = Search(host)
        self.loaded: list[Library] = []
        self.problem = ""
        """Why nothing is known; "" if the process is understood."""
        self.unread = ""
        """A file that the loader would take but that could not be read; the rest is uncertain."""
        self.lost_at_start: list[Lost] = []
        self._denied: list[str] = []
        self._elves: dict[str, Elf | str] = {}
        self._by_name: dict[str, Library] = {}
        self._by_file: dict[object, Library] = {}
        self._main: Library | None = None
        self._cwd = host.identity().cwd or "/"
        self._variable = [f or self._cwd for f in self.search.variable_folders()]
        self._lib_token = self._token_lib()
        self._start(executable)

    def open(
        self, name: str, caller: Library | None = None, via: str = "", needed_by: str = ""
    ) -> Opened:
        """Load a file by path or by name, with its needs, as ``dlopen`` of ``caller`` would.

        If a need cannot be met, everything that this call has loaded is unloaded.
        """
        before = self.save()
        added: list[Library] = []
        lost: list[Lost] = []
        library = self._map(name, caller, added, lost, via=via, called=True)
        if library is not None:
            library.needed_by = library.needed_by or needed_by
            self._needs([library], added, lost)
        if lost:
            self.restore(before)
            return Opened(None, added, lost)
        return Opened(library, added, lost)

    def save(self) -> State:
        """Return what is loaded now, for ``restore``."""
        return list(self.loaded), dict(self._by_name), dict(self._by_file)

    def restore(self, state: State) -> None:
        """Unload what was loaded since ``save``."""
        loaded, by_name, by_file = state
        self.loaded, self._by_name, self._by_file = list(loaded), dict(by_name), dict(by_file)

    def loaded_as(self, name: str) -> Library | None:
        """Return what is loaded under the name (a SONAME, or a path it was opened by)."""
        return self._by_name.get(name)

    def elf(self, path: str) -> Elf | str:
        """Read a file once; a text is what is wrong with it, in the words of the loader."""
        known = self._elves.get(path)
        if known is None:
            answer = read_elf(self.host, path)
            known = answer.value
            if known is None:
                known = "not found" if answer.missing else answer.problem
            elif known.bits == 64 and not known.loads:  # noqa: PLR2004
                known = "object file has no loadable segments"
            elif known.bits == 64 and not known.dynamic and known.kind != 2:  # noqa: PLR2004
                known = "object file has no dynamic section"
            self._elves[path] = known
        return known

    def fits(self, elf: Elf) -> bool:
        """Whether a file is for this machine; the loader skips any other."""
        wanted = ELF_MACHINES.get(self.search.machine)
        return elf.bits == 64 and (wanted is None or elf.machine == wanted)  # noqa: PLR2004

    def candidates(self, name: str, needing: Library | None) -> list[str]:
        """Return every file of the name in the loader's search path, each file once."""
        found: dict[object, str] = {}
        for via, _label, folders in self._ways(needing):
            places = [f"{folder.rstrip('/')}/{name}" for folder in folders]
            if via == "ld.so.cache":
                places = self.search.cached(name)
            for path in places:
                identity = self._identity(path)
                if identity is not None:
                    elf = self.elf(path)
                    if isinstance(elf, str) or self.fits(elf):
                        found.setdefault(identity, path)
        return list(found.values())

    # The start of the process.

    def _start(self, executable: str) -> None:
        real = self.host.real_path(executable).value or executable
        elf = self.elf(real)
        if isinstance(elf, str):
            self.problem = say("it cannot be read: {why}", why=elf)
            return
        if not elf.interpreter:
            self.problem = say("{file} is not a program that the dynamic loader starts", file=real)
            return
        if "ld-musl" in elf.interpreter:
            self.problem = say("its C library is musl, and gpucheck does not follow musl's loader")
            return
        if not re.fullmatch(_USUAL_LOADERS, elf.interpreter):
            self.problem = say(
                "the folders of its loader {loader} are not known",
                loader=elf.interpreter,
            )
            return
        self._main = self._add(Library(real, real, real, elf, "start", is_main=True))
        self._load_loader(elf.interpreter)
        added: list[Library] = []
        roots = [self._main]
        for via, names in self._preloads():
            for name in names:
                mapped = self._map(name, self._main, added, [], via=via)
                if mapped is not None:
                    roots.append(mapped)
        self._needs(roots, added, self.lost_at_start)

    def _load_loader(self, path: str) -> None:
        elf = self.elf(path)
        real = self.host.real_path(path).value
        if not isinstance(elf, str) and real is not None:
            self._add(Library(path, path, real, elf, "start"))

    def _preloads(self) -> list[tuple[str, list[str]]]:
        of_this_system = self.host.origin != "sysroot"
        named = self.host.env().get("LD_PRELOAD", "") if of_this_system else ""
        listed = self.host.read("/etc/ld.so.preload", 64 * 1024).value or ""
        lines = "\n".join(line.partition("#")[0] for line in listed.splitlines())
        return [
            ("LD_PRELOAD", re.split("[ :]+", named.strip(" :"))[:_MOST_PRELOADS] if named else []),
            ("ld.so.preload", re.split(r"[\s:]+", lines.strip())[:_MOST_PRELOADS] if lines else []),
        ]

    # Loading.

    def _needs(self, roots: list[Library], added: list[Library], lost: list[Lost]) -> None:
        """Meet the needs of the roots and of the objects that these load, breadth first."""
        queue = list(roots)
        seen = set(map(id, queue))
        while queue and len(self.loaded) < _MOST_LIBRARIES:
            library = queue.pop(0)
            for need in library.elf.needed:
                met = self._map(need, library, added, lost)
                if met is None:
                    continue
                library.needs[need] = met
                if id(met) not in seen:
                    seen.add(id(met))
                    queue.append(met)

    def _map(
        self,
        name: str,
        needing: Library | None,
        added: list[Library],
        lost: list[Lost],
        *,
        via: str = "",
        called: bool = False,
    ) -> Library | None:
        """Return the object for the name, loaded now if it was not."""
        if not name:
            return None
        there = self.loaded_as(name)
        if there is not None:
            return there
        by = needing.label if needing is not None else ""
        self._denied = []
        match = self._by_path(name, needing) if "/" in name else self._find(name, needing)
        if match is None or match.elf is None:
            why = match.problem if match is not None else "not found"
            searched = () if "/" in name else tuple(way for way, _, _ in self._ways(needing))
            path = match.path if match is not None else ""
            lost.append(Lost(name, by, why, path, searched, tuple(self._denied)))
            return None
        identity = self._identity(match.path)
        same = self._by_file.get(identity)
        if same is not None:
            self._by_name[name] = same
            return same
        library = Library(
            name=name,
            path=match.path,
            real_path=self.host.real_path(match.path).value or match.path,
            elf=match.elf,
            via=via or match.via,
            needed_by=by,
            entry=match.entry,
            # The search uses the paths of the caller of dlopen, but that is not the loader.
            loader=None if called else needing,
        )
        added.append(library)
        return self._add(library, identity)

    def _add(self, library: Library, identity: object = None) -> Library:
        library.rpath = library.runpath = None
        if library.elf.runpath is not None:
            library.runpath = self._expand(library.elf.runpath, library)
        elif library.elf.rpath is not None:
            library.rpath = self._expand(library.elf.rpath, library)
        self.loaded.append(library)
        identity = identity if identity is not None else self._identity(library.path)
        self._by_file[identity] = library
        self._by_name[library.name] = library
        if library.elf.soname:
            self._by_name.setdefault(library.elf.soname, library)
        return library

    # Searching.

    def _ways(self, needing: Library | None) -> list[tuple[str, str, list[str]]]:
        """Return how the loader searches for a need: the way, its entry, and its folders."""
        ways: list[tuple[str, str, list[str]]] = []
        if needing is None or needing.runpath is None:
            chain: list[Library] = []
            ancestor = needing
            while ancestor is not None and ancestor not in chain:
                chain.append(ancestor)
                ancestor = ancestor.loader
            if self._main is not None and self._main not in chain:
                chain.append(self._main)
            ways += [("rpath", library.label, library.rpath) for library in chain if library.rpath]
        if self._variable:
            ways.append(("LD_LIBRARY_PATH", "", self._variable))
        if needing is not None and needing.runpath:
            ways.append(("runpath", needing.label, needing.runpath))
        ways.append(("ld.so.cache", "", []))
        if needing is None or not needing.elf.no_default_folders:
            ways.append(("default", "", list(default_folders(self.search.machine))))
        return ways

    def _find(self, name: str, needing: Library | None) -> _Match | None:
        for via, _label, folders in self._ways(needing):
            if via == "ld.so.cache":
                match = self._cached(name, needing)
                if match is not None:
                    return match
                continue
            for folder in folders:
                for place in self.search.with_levels(folder):
                    match = self._try(f"{place.rstrip('/')}/{name}", via, folder)
                    if match is not None:
                        return match
        return None

    def _cached(self, name: str, needing: Library | None) -> _Match | None:
        paths = self.search.cached(name)[:1]
        barred = needing is not None and needing.elf.no_default_folders
        if barred and paths and paths[0].startswith(default_folders(self.search.machine)):
            return None
        return self._try(paths[0], "ld.so.cache", "") if paths else None

    def _by_path(self, name: str, needing: Library | None) -> _Match:
        path = self._tokens(name, needing) if needing is not None else name
        match = self._try(self._absolute(path), "path", "")
        return match or _Match(path, "path", "", problem="not found")

    def _try(self, path: str, via: str, entry: str) -> _Match | None:
        """Return the file there; None if there is none or it is for another machine."""
        path = self._absolute(path)
        if self._identity(path) is None:
            return None
        elf = self.elf(path)
        if isinstance(elf, str):
            if elf.startswith(_DENIED):
                self._denied.append(path)
                return None
            if not elf.startswith(_DAMAGE):
                self.unread = self.unread or say("{source}: {why}", source=path, why=elf)
            return _Match(path, via, entry, problem=elf)
        if not self.fits(elf):
            if via == "path":
                return _Match(path, via, entry, problem="wrong architecture")
            return None
        return _Match(path, via, entry, elf)

    def _identity(self, path: str) -> object:
        """Return what identifies a file; None if it does not exist."""
        answer = self.host.stat(path)
        stat = answer.value
        if stat is None or stat.kind == "directory":
            if answer.problem.startswith(_DENIED):
                self._denied.append(path)
            return None
        return stat.inode or self.host.real_path(path).value or path

    def _absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"{self._cwd.rstrip('/')}/{path}"

    # Tokens.

    def _expand(self, text: str, library: Library) -> list[str]:
        """Return the folders of a DT_RPATH or DT_RUNPATH; an empty entry is the current folder."""
        folders = [self._tokens(part, library) for part in text.split(":")[:_MOST_FOLDERS]]
        return list(dict.fromkeys(self._absolute(folder or ".") for folder in folders))

    def _tokens(self, text: str, library: Library) -> str:
        origin = library.path.rpartition("/")[0] or "/"
        values = {"ORIGIN": origin, "LIB": self._lib_token, "PLATFORM": self.search.machine}
        return re.sub(_SUBSTITUTED, lambda match: values[match[1] or match[2]], text)

    def _token_lib(self) -> str:
        name = f"lib/{triplet(self.search.machine)}"
        if self.host.exists(f"/{name}/libc.so.6").value:
            return name
        return "lib64" if self.host.exists("/lib64/libc.so.6").value else "lib"
