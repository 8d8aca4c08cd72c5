"""Libraries that the loader does not find, but that a package may find by other means."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from gpucheck.facts import Answer
from gpucheck.language import say
from gpucheck.machine import Host
from gpucheck.machine.paths import distinct, join, name, pattern
from gpucheck.probes.loading.reading.owners import is_cuda

if TYPE_CHECKING:
    from gpucheck.probes.extensions.reading.needs import Needs

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
