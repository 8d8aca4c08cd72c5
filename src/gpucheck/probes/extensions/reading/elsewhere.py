"""Libraries that the loader alone does not find, and that a package may find by other means."""

from typing import TYPE_CHECKING

from gpucheck.facts import Answer
from gpucheck.machine import Host
from gpucheck.machine.paths import distinct, join, pattern
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
_DEPTH = 4
"""How many levels of a package's own folder are searched."""
_OF_WINDOWS = (".pyd", ".dll")


class Elsewhere:
    """Looks for files of a name where packages look for CUDA; each name is looked for once."""

    def __init__(self, host: Host, sys_path: list[str]) -> None:
        self._host = host
        self._entries = [entry for entry in distinct(sys_path) if "-packages" in entry]
        self._known: dict[str, bool] = {}

    def lacks(self, needs: "Needs") -> Answer[list[str]]:
        """Return the libraries of CUDA that a file needs and of which there is no file."""
        if needs.needs_torch:
            return Answer(None, needs.file.path, "not searched: the file is linked with torch")
        if needs.file.inside.endswith(_OF_WINDOWS):
            return Answer(None, needs.file.path, "not searched on Windows")
        package = join(needs.file.entry, needs.file.top)
        return needs.missing_libraries.map(
            lambda names: [one for one in names if is_cuda(one) and not self._has(one, package)]
        )

    def _has(self, soname: str, package: str) -> bool:
        """Whether a file of that name is in one of the places, or in the package's folder."""
        if soname not in self._known:
            self._known[soname] = any(self._is_at(place) for place in self._places(soname))
        return self._known[soname] or any(
            self._is_at(pattern(package, *("*",) * depth, soname)) for depth in range(_DEPTH)
        )

    def _places(self, soname: str) -> list[str]:
        variables = self._host.env()
        set_to = [value for name in _VARIABLES if (value := variables.get(name))]
        return [
            *(
                pattern(entry, *folder, soname)
                for entry in self._entries
                for folder in _IN_PACKAGES
            ),
            *(f"{folder}/{soname}" for folder in _OF_TOOLKITS),
            *(pattern(join(value, below), soname) for value in set_to for below in _BELOW),
        ]

    def _is_at(self, place: str) -> bool:
        # A folder that could not be read may hold it: only a clear answer says that it is not.
        found = self._host.glob(place)
        return found.value is None or bool(found.value)
