"""The Python side of a compiled package: whether it requires torch, what it loads, from where."""

import re
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from gpucheck.facts import Answer
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import distinct, join, name, pattern
from gpucheck.probes.extensions.reading.files import CandidateFile
from gpucheck.probes.loading.reading.owners import is_cuda, stem
from gpucheck.probes.torch.reading.dist_info import DistInfo, header, values
from gpucheck.probes.torch.reading.requirements import torch_requirement

if TYPE_CHECKING:
    from gpucheck.probes.extensions.reading.needs import Needs


# The Python side of a compiled package: whether it requires torch, and what it loads.

_LOADS = re.compile(
    r"\b(?:CDLL|LoadLibrary[A-Za-z]{0,10}|dlopen|add_dll_directory|load_nvidia_dynamic_lib)\s{0,4}\("
)
"""Calls by which Python code loads a library or adds a DLL folder to the search path."""
_FILES = (("*.py",), ("*", "__init__.py"))
_MOST_FILES = 96  # chosen: modules near the top of a package; each is read as a whole


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

    def loads(self, file: CandidateFile, owner: DistInfo | None, missing: Iterable[str]) -> bool:
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


# Libraries that the loader does not find, but that a package may find by other means.

_IN_PACKAGES = (
    ("nvidia", "*", "lib"), ("nvidia", "*", "lib64"), ("*", "lib"), ("*", "lib64"), ("*.libs",),
)  # fmt: skip
"""Folders of site-packages that contain libraries: NVIDIA's wheels, and what packages bundle."""
_OF_TOOLKITS = (
    "/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/*/lib", "/opt/cuda*/lib64",
    "/opt/cuda*/targets/*/lib", "/usr/lib/cuda/lib64", "/opt/nvidia/hpc_sdk/*/*/cuda/*/lib64",
    "/opt/nvidia/hpc_sdk/*/*/math_libs/*/lib64", "/usr/local/lib", "/opt/conda/lib",
)  # fmt: skip
_VARIABLES = ("CUDA_HOME", "CUDA_PATH", "CUDNN_HOME", "CUDNN_PATH", "CONDA_PREFIX")
_BELOW = ("lib", "lib64")
_LIBRARIES = "lib*.so*"
_DEPTH = 4
"""How many levels of a package's own folder are searched."""
_OF_WINDOWS = (".pyd", ".dll")


class Elsewhere:
    """Lists the libraries where packages look for CUDA; each place is listed once."""

    def __init__(self, host: Host, sys_path: list[str]) -> None:
        self._host = host
        self._entries = [entry for entry in distinct(sys_path) if "-packages" in entry]
        self._of_packages: dict[str, _Names] = {}

    def lacks(self, needs: "Needs", *, has_variant: bool) -> Answer[list[str]]:
        """Return the CUDA libraries that a file needs and that are not found.

        Args:
            needs: the file.
            has_variant: whether its package can load a variant of the file instead.
        """
        if needs.needs_torch:
            return Answer(None, needs.file.path, say("not searched: the file is linked with torch"))
        if has_variant:
            return Answer(
                None,
                needs.file.path,
                say("not searched: another variant of the file can be loaded"),
            )
        if needs.file.inside.endswith(_OF_WINDOWS):
            return Answer(None, needs.file.path, say("not searched on Windows"))
        package = join(needs.file.entry, needs.file.top)
        return needs.missing_libraries.map(
            lambda names: [
                soname for soname in names if is_cuda(soname) and not self._has(soname, package)
            ]
        )

    def _has(self, soname: str, package: str) -> bool:
        """Whether a file of that name is in one of the places, or in the package's folder."""
        if package not in self._of_packages:
            depths = (pattern(package, *("*",) * depth, _LIBRARIES) for depth in range(_DEPTH))
            self._of_packages[package] = _Names(self._host, depths)
        return self._of_packages[package].may_have(soname) or self._around.may_have(soname)

    @cached_property
    def _around(self) -> "_Names":
        variables = self._host.env()
        set_to = [value for variable in _VARIABLES if (value := variables.get(variable))]
        return _Names(
            self._host,
            [
                *(
                    pattern(of, *inner, _LIBRARIES)
                    for of in self._entries
                    for inner in _IN_PACKAGES
                ),
                *(f"{folder}/{_LIBRARIES}" for folder in _OF_TOOLKITS),
                *(
                    pattern(join(folder, below), _LIBRARIES)
                    for folder in set_to
                    for below in _BELOW
                ),
            ],
        )


class _Names:
    """The names of the files that match some patterns."""

    def __init__(self, host: Host, patterns: Iterable[str]) -> None:
        answers = [host.glob(path_pattern) for path_pattern in patterns]
        self._names = {name(path) for answer in answers for path in answer.value or ()}
        self._is_complete = all(answer.value is not None for answer in answers)

    def may_have(self, file: str) -> bool:
        """Whether there is such a file, or a folder that may hold it could not be listed."""
        return file in self._names or not self._is_complete
