"""The places where the dynamic loader searches for a library; nothing is loaded."""

import os
import re
import struct
from collections.abc import Sequence

import msgspec

from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.binaries.elf import Elf

# The libraries in a process, their unmet needs, and the result of opening a file.


class Library(msgspec.Struct, eq=False):
    """A file that is loaded in the process; one object per file."""

    name: str
    """The name by which it was first requested."""
    path: str
    """The path by which the loader found it."""
    real_path: str
    elf: Elf
    via: str
    """``rpath``, ``runpath``, ``LD_LIBRARY_PATH``, ``ld.so.cache``, ``default``, ``path``,
    ``LD_PRELOAD``, ``ld.so.preload``, ``preload`` or ``start`` (the executable, its loader)."""
    needed_by: str = ""
    """SONAME or file name of the first object that needs it."""
    entry: str = ""
    """The entry of the variable, or the folder of the DT_RPATH or DT_RUNPATH, that it came from."""
    loader: "Library | None" = None
    """The object that caused it to be loaded; None for one that a program opened."""
    names: set[str] = msgspec.field(default_factory=set)
    needs: "dict[str, Library]" = msgspec.field(default_factory=dict)
    """The object that meets each of its needs."""
    rpath: list[str] | None = None
    """Folders of its DT_RPATH, if that counts."""
    runpath: list[str] | None = None
    is_main: bool = False

    @property
    def label(self) -> str:
        """Its usual name."""
        return self.elf.soname or self.path.rpartition("/")[2]


class Lost(msgspec.Struct, frozen=True):
    """A library that another one needs and that cannot be loaded."""

    name: str
    needed_by: str
    why: str
    """"not found", or what is wrong with the file: "file too short"."""
    path: str = ""
    searched: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    """Files in the search path that this user may not read, or whose folder it may not search."""


class Opened(msgspec.Struct, frozen=True):
    """The result of opening a file."""

    library: Library | None
    """The file itself; None if it cannot be loaded."""
    added: list[Library]
    lost: list[Lost]


CACHE_FILE = "/etc/ld.so.cache"
CACHED = "ld.so.cache"
VARIABLE = "LD_LIBRARY_PATH"
DEFAULT = "default folder"
_WORDS = (say("default folder"),)
"""The same for the catalogues: it is a value of facts as well, and those are plain text."""

# Bytes; chosen: 100 times the cache of a system with 592 libraries (38 KB).
_CACHE_LIMIT = 4 * 1024 * 1024
_MOST_FOLDERS = 64  # chosen: of a variable; each costs a look for every library
_ELF_HEADER_SIZE = 20  # up to e_machine
ELF_MACHINES = {"x86_64": 62, "aarch64": 183, "ppc64le": 21}
_LEVELS = {
    "x86-64-v2": frozenset(("cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3")),
    "x86-64-v3": frozenset(("avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe")),
    "x86-64-v4": frozenset(("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")),
}
"""The names in /proc/cpuinfo of the features that each level of x86-64 adds."""
_HWCAPS = "/glibc-hwcaps/"

_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_CACHE_COUNTS = struct.Struct("<20xII")
_CACHE_HEADER_SIZE = 48  # struct cache_file_new of glibc
_CACHE_ENTRY = struct.Struct("<iIIIQ")
# Chosen: a system with 592 libraries has as many entries; a damaged count has more.
_MOST_ENTRIES = 65536
_LONGEST_PATH = 4096  # PATH_MAX of Linux
_ARCHITECTURES = {
    "x86_64": 0x0300,
    "aarch64": 0x0A00,
    "ppc64le": 0x0500,
}
"""The bits of an entry's flags for a 64-bit library, by ``uname -m``."""
_ARCHITECTURE_MASK = 0xFF00  # FLAG_REQUIRED_MASK of glibc's ldconfig.h


class Found(msgspec.Struct, frozen=True):
    """A file of the requested name and how the loader finds it."""

    path: str
    real_path: str
    via: str


class Search:
    """The loader's view of a machine's folders; the cache and the processor are read once."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.machine = host.identity().machine
        self._cache: bytes | None = None
        self._levels: list[str] | None = None
        self._levels_in: dict[str, list[str]] = {}

    def paths(self, soname: str) -> list[Found]:
        """Return every file of that name in the loader's search path, each once, in order."""
        return _unique(self._by_variable(soname) + self.system_paths(soname))

    def system_paths(self, soname: str) -> list[Found]:
        """Return the files that are found without ``LD_LIBRARY_PATH``."""
        folders = default_folders(self.machine)
        cached = self._found(self.cached(soname), CACHED)
        return _unique([*cached, *self.in_folders(folders, soname, DEFAULT)])

    def in_folders(self, folders: Sequence[str], soname: str, via: str) -> list[Found]:
        """Return the file of that name in each of the folders that has one."""
        return self._found([f"{folder.rstrip('/')}/{soname}" for folder in folders], via)

    def cached(self, soname: str) -> list[str]:
        """Return the entries of the loader's cache for the name, best first for this processor."""
        if self._cache is None:
            # Without a readable cache the loader continues with the default folders.
            self._cache = self._host.read_bytes(CACHE_FILE, _CACHE_LIMIT).value or b""
        paths = lookup(self._cache, soname, self.machine)
        if not any(_HWCAPS in path for path in paths):
            return paths
        levels = self.levels()
        ranked = sorted((rank, at) for at, path in enumerate(paths)
                        if (rank := _rank(path, levels)) is not None)  # fmt: skip
        return [paths[at] for _, at in ranked]

    def variable_folders(self) -> list[str]:
        """Return the entries of ``LD_LIBRARY_PATH``; an empty one is the current folder."""
        # Below a sysroot the variable refers to the files of another system.
        value = self._host.env().get(VARIABLE, "") if self._host.origin != "sysroot" else ""
        return re.split("[:;]", value)[:_MOST_FOLDERS] if value else []

    def with_levels(self, folder: str) -> list[str]:
        """Return the subfolders for better processors, and then the folder itself."""
        known = self._levels_in.get(folder)
        if known is None:
            base = f"{folder.rstrip('/')}/glibc-hwcaps"
            known = []
            if self._host.exists(base).value:
                known = [f"{base}/{level}" for level in self.levels()]
            self._levels_in[folder] = known
        return [*known, folder]

    def levels(self) -> list[str]:
        """Return the levels of x86-64 that this processor has, the best first."""
        if self._levels is None:
            self._levels = []
            if self.machine == "x86_64":
                text = self._host.read("/proc/cpuinfo", 16 * 1024).value or ""
                flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
                words = set(flags[1].split()) if flags is not None else set()
                for level, needed in _LEVELS.items():
                    if not needed <= words:
                        break
                    self._levels.insert(0, level)
        return self._levels

    def _by_variable(self, soname: str) -> list[Found]:
        folders = [folder for folder in self.variable_folders() if folder[:1] == "/"]
        if folders:
            self._host.stage(f"look for {soname} in the folders of {VARIABLE}")
        return self.in_folders(folders, soname, VARIABLE)

    def _found(self, paths: list[str], via: str) -> list[Found]:
        found = []
        for path in paths:
            real = self._host.real_path(path).value
            if real is not None and not self._of_another_machine(real):
                found.append(Found(path, real, via))
        return found

    def _of_another_machine(self, path: str) -> bool:
        """Whether the file is an ELF file that the loader skips, such as a 32-bit one."""
        head = self._host.read_bytes(path, _ELF_HEADER_SIZE).value or b""
        wanted = ELF_MACHINES.get(self.machine)
        if wanted is None or len(head) < _ELF_HEADER_SIZE or not head.startswith(b"\x7fELF"):
            return False
        return head[4] != 2 or int.from_bytes(head[18:20], "little") != wanted  # noqa: PLR2004


def default_folders(machine: str) -> tuple[str, ...]:
    """Return the folders that are built into the loaders of the distributions."""
    name = triplet(machine)
    return (
        f"/lib/{name}",
        f"/usr/lib/{name}",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    )


def triplet(machine: str) -> str:
    """Return Debian's name of the platform, which is part of its library folders."""
    return f"{machine or 'x86_64'}-linux-gnu".replace("ppc64le", "powerpc64le")


def _rank(path: str, levels: list[str]) -> int | None:
    """Return the rank of a cache entry, 0 is the best; None for another processor."""
    if _HWCAPS not in path:
        return len(levels)
    level = path.partition(_HWCAPS)[2].partition("/")[0]
    return levels.index(level) if level in levels else None


def _unique(found: list[Found]) -> list[Found]:
    """Keep the first way to each file."""
    first: dict[str, Found] = {}
    for entry in found:
        first.setdefault(entry.real_path, entry)
    return list(first.values())


# Only the current format (``glibc-ld.so.cache1.1``) counts, alone or after one of the old format: a
# header, entries of flags and two offsets, and the strings. Offsets are relative to the header.
def lookup(cache: bytes, soname: str, machine: str) -> list[str]:
    """Return the paths for a library name in the order of the loader.

    For a cache that is truncated, damaged or of another format, the readable part is used, or [].
    """
    start = cache.find(_CACHE_MAGIC)
    architecture = _ARCHITECTURES.get(machine)
    if start < 0 or architecture is None or len(cache) < start + _CACHE_HEADER_SIZE:
        return []
    count, _string_bytes = _CACHE_COUNTS.unpack_from(cache, start)
    keys = _places(cache, os.fsencode(soname) + b"\x00", start)
    if not keys:
        return []
    entries = memoryview(cache)[start + _CACHE_HEADER_SIZE :]
    whole = min(count, _MOST_ENTRIES, len(entries) // _CACHE_ENTRY.size) * _CACHE_ENTRY.size
    return [
        path
        for flags, key, value, _os, _hwcap in _CACHE_ENTRY.iter_unpack(entries[:whole])
        if key in keys
        and flags & _ARCHITECTURE_MASK == architecture
        and (path := _string(cache, start + value))
    ]


def _places(cache: bytes, text: bytes, start: int) -> set[int]:
    """Return every offset of the text: a name may be stored as the end of a path."""
    places = set()
    at = cache.find(text, start)
    while at >= 0:
        places.add(at - start)
        at = cache.find(text, at + 1)
    return places


def _string(cache: bytes, at: int) -> str:
    end = cache.find(b"\x00", at, at + _LONGEST_PATH)
    return cache[at:end].decode("utf-8", "replace") if end > at else ""
