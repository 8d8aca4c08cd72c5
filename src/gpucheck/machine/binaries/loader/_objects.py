"""The libraries in a process, their unmet needs, and the result of opening a file."""

import msgspec

from gpucheck.machine.binaries.elf import Elf


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
