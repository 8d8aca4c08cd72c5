"""Where the dynamic loader looks for a library, in its order; nothing is loaded."""

from collections.abc import Sequence

import msgspec

from gpucheck.host import Host
from gpucheck.probes import _ld_cache

_CACHE_FILE = "/etc/ld.so.cache"
CACHED = "ld.so.cache"
VARIABLE = "LD_LIBRARY_PATH"
DEFAULT = "default folder"

_CACHE_LIMIT = 4 * 1024 * 1024
_MOST_FOLDERS = 64
_ELF_HEADER_SIZE = 20
_ELF_MACHINES = {"x86_64": 62, "aarch64": 183, "ppc64le": 21}


class Found(msgspec.Struct, frozen=True):
    """A file of the wanted name and how the loader comes to it."""

    path: str
    real_path: str
    via: str


class Loader:
    """The loader's view of a machine; the cache is read once."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._machine = host.identity().machine
        self._cache: bytes | None = None

    def paths(self, soname: str) -> list[Found]:
        """Return every file of that name on the loader's way, each once, the first wins."""
        return _unique(self._by_variable(soname) + self.system_paths(soname))

    def system_paths(self, soname: str) -> list[Found]:
        """Return the files that are found without ``LD_LIBRARY_PATH``."""
        if self._cache is None:
            # Without a readable cache the loader goes on to the default folders.
            self._cache = self._host.read_bytes(_CACHE_FILE, _CACHE_LIMIT).value or b""
        cached = _ld_cache.lookup(self._cache, soname, self._machine)
        folders = default_folders(self._machine)
        return _unique([*self._found(cached, CACHED), *self.in_folders(folders, soname, DEFAULT)])

    def in_folders(self, folders: Sequence[str], soname: str, via: str) -> list[Found]:
        """Return the file of that name in each of the folders, where it has one."""
        return self._found([f"{folder.rstrip('/')}/{soname}" for folder in folders], via)

    def _by_variable(self, soname: str) -> list[Found]:
        # Below a sysroot the variable speaks of another system's files.
        if self._host.origin == "sysroot":
            return []
        value = self._host.env().get(VARIABLE, "")
        folders = [folder for folder in value.replace(";", ":").split(":") if folder[:1] == "/"]
        if folders:
            self._host.stage(f"look for {soname} in the folders of {VARIABLE}")
        return self.in_folders(folders[:_MOST_FOLDERS], soname, VARIABLE)

    def _found(self, paths: list[str], via: str) -> list[Found]:
        found = []
        for path in paths:
            real = self._host.real_path(path).value
            if real is not None and not self._of_another_machine(real):
                found.append(Found(path, real, via))
        return found

    def _of_another_machine(self, path: str) -> bool:
        """Whether the file is an ELF file that the loader passes over, such as a 32-bit one."""
        head = self._host.read_bytes(path, _ELF_HEADER_SIZE).value or b""
        wanted = _ELF_MACHINES.get(self._machine)
        if wanted is None or len(head) < _ELF_HEADER_SIZE or not head.startswith(b"\x7fELF"):
            return False
        return head[4] != 2 or int.from_bytes(head[18:20], "little") != wanted  # noqa: PLR2004


def default_folders(machine: str) -> tuple[str, ...]:
    """Return the folders that loaders of the distributions have built in."""
    triplet = f"{machine or 'x86_64'}-linux-gnu".replace("ppc64le", "powerpc64le")
    return (
        f"/lib/{triplet}",
        f"/usr/lib/{triplet}",
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
    )


def _unique(found: list[Found]) -> list[Found]:
    """Keep the first way to each file."""
    first: dict[str, Found] = {}
    for entry in found:
        first.setdefault(entry.real_path, entry)
    return list(first.values())
