"""What the Python side of a compiled package says: whether it needs torch, and what it loads."""

import re
from collections.abc import Iterable

from gpucheck.facts import Answer
from gpucheck.host import Host
from gpucheck.probes._dist_info import DistInfo, header, values
from gpucheck.probes._extension_files import Candidate
from gpucheck.probes._library_owner import stem
from gpucheck.probes._paths import join, pattern
from gpucheck.probes._requirements import torch_requirement

_LOADS = re.compile(
    r"\b(?:CDLL|LoadLibrary[A-Za-z]{0,10}|dlopen|add_dll_directory|load_nvidia_dynamic_lib)\s{0,4}\("
)
"""How Python code has a library loaded, or a folder of DLLs searched."""
_FILES = (("*.py",), ("*", "__init__.py"))
_MOST_FILES = 96


class PythonSide:
    """Reads metadata and modules of packages, each once, and only where something depends on it."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._required: dict[str, Answer[bool]] = {}
        self._texts: dict[str, list[str]] = {}

    def requires_torch(self, owner: DistInfo | None) -> Answer[bool]:
        """Say whether the metadata of a distribution require torch, extras apart."""
        if owner is None:
            return Answer(value=False, source="no distribution claims the file")
        if owner.path not in self._required:
            lines = header(self._host, owner)
            self._required[owner.path] = lines.map(
                lambda said: torch_requirement(values(said, "Requires-Dist")) is not None
            )
        return self._required[owner.path]

    def loads(self, file: Candidate, owner: DistInfo | None, missing: Iterable[str]) -> bool:
        """Say whether the package's modules load one of the missing libraries by themselves.

        A module that calls the loader and names the library is taken to: ``cudart`` for
        ``libcudart.so.12``. The modules of the package and the ``__init__`` below it are read.
        """
        names = [one for soname in missing if (one := _plain(soname))]
        tops = [file.top] if "/" in file.inside else []
        tops += [owner.project.replace("-", "_")] if owner is not None else []
        texts = (text for top in dict.fromkeys(tops) for text in self._of(join(file.entry, top)))
        return any(name in text for text in texts for name in names)

    def _of(self, folder: str) -> list[str]:
        """Return the modules that call the loader, in lower case."""
        if folder not in self._texts:
            paths = [
                path
                for names in _FILES
                for path in self._host.glob(pattern(folder, *names)).value or ()
            ]
            texts = (self._host.read(path).value or "" for path in paths[:_MOST_FILES])
            self._texts[folder] = [text.lower() for text in texts if _LOADS.search(text)]
        return self._texts[folder]


def _plain(soname: str) -> str:
    """Return the name without what differs by system: ``cudart`` for ``cudart64_12.dll`` too."""
    if soname.endswith(".dll"):
        return re.sub(r"(?:64)?_[0-9_]{1,20}\Z", "", soname.removesuffix(".dll")).lower()
    return stem(soname).lower()
