"""What is in a process, what is lost of its needs, and what opening a file does."""

import msgspec

from gpucheck.elf import Elf


class Library(msgspec.Struct, eq=False):
    """A file that is in the process; one object a file."""

    name: str
    """What it was first asked for by."""
    path: str
    """As the loader came to it."""
    real_path: str
    elf: Elf
    via: str
    """``rpath``, ``runpath``, ``LD_LIBRARY_PATH``, ``ld.so.cache``, ``default``, ``path``,
    ``LD_PRELOAD``, ``ld.so.preload``, ``preload`` or ``start`` (the executable, its loader)."""
    needed_by: str = ""
    """SONAME or file name of the first object that needs it."""
    entry: str = ""
    """The entry of the variable, or the folder of the DT_RPATH or DT_RUNPATH, that won."""
    loader: "Library | None" = None
    """The object that caused it to be loaded; None for one that a program opened."""
    names: set[str] = msgspec.field(default_factory=set)
    needs: "dict[str, Library]" = msgspec.field(default_factory=dict)
    """What each of its needs was met by."""
    rpath: list[str] | None = None
    """Folders of its DT_RPATH, when that counts."""
    runpath: list[str] | None = None
    is_main: bool = False

    @property
    def label(self) -> str:
        """The name that people know it by."""
        return self.elf.soname or self.path.rpartition("/")[2]


class Lost(msgspec.Struct, frozen=True):
    """A need that cannot be met."""

    name: str
    needed_by: str
    why: str
    """"not found", or what is wrong with the file: "file too short"."""
    path: str = ""
    searched: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    """Files on the way that this user may not read, or whose folder it may not search."""


class Opened(msgspec.Struct, frozen=True):
    """What opening a file would do."""

    library: Library | None
    """The file itself; None when it cannot be loaded."""
    added: list[Library]
    lost: list[Lost]
