"""The library versions that make up a CUDA toolkit release."""

import re
from typing import ClassVar, Literal

from gpucheck.tables.base import Row, Table, VersionText
from gpucheck.tables.versions import compare, numbers, parse

Component = Literal[
    "nvrtc",
    "cudart",
    "nvcc",
    "cupti",
    "cublas",
    "cufft",
    "curand",
    "cusolver",
    "cusparse",
    "nvtx",
    "nvjitlink",
]
_PACKAGES: dict[str, Component] = {
    "nvidia-cuda-nvrtc": "nvrtc",
    "nvidia-cuda-runtime": "cudart",
    "nvidia-cuda-nvcc": "nvcc",
    "nvidia-cuda-cupti": "cupti",
    "nvidia-cublas": "cublas",
    "nvidia-cufft": "cufft",
    "nvidia-curand": "curand",
    "nvidia-cusolver": "cusolver",
    "nvidia-cusparse": "cusparse",
    "nvidia-nvtx": "nvtx",
    "nvidia-nvjitlink": "nvjitlink",
}
_SUFFIX = re.compile(r"-cu[0-9]{2}\Z")


class ComponentsRow(Row, frozen=True):
    """A toolkit release ("12.4.1") and the version of each library in it."""

    cuda: VersionText
    nvrtc: VersionText
    cudart: VersionText
    nvcc: VersionText
    cupti: VersionText
    cublas: VersionText
    cufft: VersionText
    curand: VersionText
    cusolver: VersionText
    cusparse: VersionText
    nvtx: VersionText
    nvjitlink: VersionText | None = None

    def version(self, component: Component) -> str | None:
        """Return the version of a component."""
        version: str | None = getattr(self, component)
        return version


class CudaComponents(Table, frozen=True):
    """Answers which library version belongs to which toolkit."""

    name: ClassVar[str] = "cuda_components"
    rows: tuple[ComponentsRow, ...]

    def version(self, cuda: str, component: Component) -> str | None:
        """Return a component's version in a toolkit release; the patch number has to be given."""
        wanted = parse(cuda)
        if wanted is None or len(wanted) < 3:  # noqa: PLR2004  # 12.4 has several releases
            return None
        row = next((row for row in self.rows if compare(numbers(row.cuda), wanted) == 0), None)
        return None if row is None else row.version(component)

    def toolkits_of(self, package: str, version: str) -> tuple[str, ...] | None:
        """Return the toolkit releases that a package's version belongs to.

        `package` is such as nvidia-cublas-cu12. Empty if it belongs to none in the table. None if
        the package is not a toolkit component (cuDNN, NCCL), or the version cannot be parsed.
        """
        component, wanted = component_of(package), parse(version)
        if component is None or wanted is None:
            return None
        return tuple(row.cuda for row in self.rows if parse(row.version(component)) == wanted)


def component_of(package: str) -> Component | None:
    """Return the component in a package such as nvidia-cublas-cu12."""
    return _PACKAGES.get(_SUFFIX.sub("", package))
