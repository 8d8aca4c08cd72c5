"""The Python side of a compiled package: whether it requires torch, and what it loads."""

import re
from collections.abc import Iterable

from gpucheck.facts import Answer
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import join, pattern
from gpucheck.probes.extensions.reading.files import Candidate
from gpucheck.probes.loading.reading.owners import stem
from gpucheck.probes.torch.reading.dist_info import DistInfo, header, values
from gpucheck.probes.torch.reading.requirements import torch_requirement

_LOADS = re.compile(
    r"\b(?:CDLL|LoadLibrary[A-Za-z]{0,10}|dlopen|add_dll_directory|load_nvidia_dynamic_lib)\s{0,4}\("
)
"""Calls by which Python code loads a library or adds a DLL folder to the search path."""
_FILES = (("*.py",), ("*", "__init__.py"))
_MOST_FILES = 96


class PythonSide:
    """Reads metadata and modules of packages, each once, and only if the result depends on it."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._required: dict[str, Answer[bool]] = {}
        self._texts: dict[str, list[str]] = {}

    def requires_torch(self, owner: DistInfo | None) -> Answer[bool]:
        """Return whether the metadata of a distribution requires torch, not counting extras."""
        if owner is None:
            return Answer(value=False, source=say("the file belongs to no installed package"))
        if owner.path not in self._required:
            lines = header(self._host, owner)
            self._required[owner.path] = lines.map(
                lambda lines: torch_requirement(values(lines, "Requires-Dist")) is not None
            )
        return self._required[owner.path]

    def loads(self, file: Candidate, owner: DistInfo | None, missing: Iterable[str]) -> bool:
        """Return whether the package's own modules load one of the missing libraries.

        This is assumed of a module that calls the loader and names the library: ``cudart`` for
        ``libcudart.so.12``. The modules of the package and each ``__init__`` below are read.
        """
        names = [plain_name for soname in missing if (plain_name := _plain(soname))]
        tops = [file.top] if "/" in file.inside else []
        tops += [owner.project.replace("-", "_")] if owner is not None else []
        texts = (text for top in dict.fromkeys(tops) for text in self._of(join(file.entry, top)))
        return any(name in text for text in texts for name in names)

    def _of(self, folder: str) -> list[str]:
        """Return the source of modules that call the loader, in lower case."""
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
    """Return the name without platform-specific parts: ``cudart``, for ``cudart64_12.dll`` too."""
    if soname.endswith(".dll"):
        return re.sub(r"(?:64)?_[0-9_]{1,20}\Z", "", soname.removesuffix(".dll")).lower()
    return stem(soname).lower()
