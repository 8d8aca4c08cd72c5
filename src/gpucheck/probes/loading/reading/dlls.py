r"""The libraries of a PE file and where Windows searches them when torch loads its own.

torch adds folders to the search path (its own, ``Library\bin`` of the environment, a toolkit's) and
loads each of its DLLs by path. A DLL that is not found in this way is searched again with PATH.
Only the import tables are read: a DLL that is delay-loaded, or loaded by name, may be absent.
"""

import ntpath
import re
from typing import Literal

import msgspec

from gpucheck.facts import Answer
from gpucheck.machine import Host
from gpucheck.machine.binaries.pe import libraries, read_pe

Place = Literal[
    "windows-torch-lib", "windows-library-bin", "windows-cuda-path", "windows-path",
    "windows-system",
]  # fmt: skip
_MOST_FOLDERS = 128  # chosen: PATH of Windows has some dozens
_NOT_ASKED = r"(?:api|ext)-ms-.*\.dll|python3[0-9]*t?\.dll|nvcuda\.dll|nvml\.dll"
"""Names that Windows maps to its own libraries, Python itself, and the driver's libraries."""


class Folder(msgspec.Struct, frozen=True):
    """A folder that is searched."""

    path: str
    place: Place
    entry: str = ""
    """The entry of PATH, "" for any other folder."""


class Dll(msgspec.Struct, frozen=True):
    """A DLL that was found."""

    name: str
    path: str
    folder: Folder


class Dlls:
    """The folders in order; each is listed once, because file names differ in case."""

    def __init__(self, host: Host, folders: list[Folder]) -> None:
        self._host = host
        self._folders = folders[:_MOST_FOLDERS]
        self._names: dict[str, dict[str, str]] = {}
        self.problem = ""
        """Why a DLL that is not found may exist all the same."""

    def find(self, name: str) -> Dll | None:
        """Return the first DLL of that name."""
        for folder in self._folders:
            real = self._listed(folder.path).get(name.lower())
            if real is not None:
                return Dll(name.lower(), ntpath.join(folder.path, real), folder)
        return None

    def inside(self, folder: str) -> list[str]:
        """Return the paths of the DLLs in a folder."""
        names = self._listed(folder)
        return [ntpath.join(folder, names[name]) for name in sorted(names)]

    def _listed(self, folder: str) -> dict[str, str]:
        if folder not in self._names:
            listing = self._host.listing(folder)
            if listing.value is None and not listing.missing:
                self.problem = self.problem or listing.complaint
            names = [name for name in listing.value or () if name.lower().endswith(".dll")]
            self._names[folder] = {name.lower(): name for name in names}
        return self._names[folder]


def is_given(name: str) -> bool:
    """Whether a DLL need not be searched: Windows, the process or the driver provides it."""
    return re.fullmatch(_NOT_ASKED, name.lower()) is not None


def imports(host: Host, path: str) -> Answer[list[str]]:
    """Return the names of the DLLs that a 64-bit DLL needs when it is loaded."""
    pe = read_pe(host, path)
    if pe.value is None:
        return Answer(None, path, pe.problem, pe.missing)
    return libraries(host, pe.value)
