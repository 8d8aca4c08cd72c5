"""cuDNN: the GPUs that a release supports, and the libraries that it consists of."""

from typing import ClassVar, Literal

from gpucheck.tables.base import CapabilityText, Library, Major, Row, Table, VersionText, Words
from gpucheck.tables.versions import at_least, capability_numbers, compare, numbers, parse

# Which GPUs a cuDNN release supports.

Capability = tuple[int, int]


class CudnnRow(Row, frozen=True):
    """A cuDNN release for a CUDA major (or minor, before 11).

    `toolkits` are the CUDA versions in NVIDIA's words, the drivers its minimum, and `capabilities`
    the listed compute capabilities; a minor that is not listed is covered by the listed one below
    it. `dropped_for_good`: no later release supports anything older than the oldest capability of
    this row.
    """

    cudnn: VersionText
    cuda: VersionText
    toolkits: Words
    linux: VersionText | None = None
    windows: VersionText | None = None
    capabilities: tuple[CapabilityText, ...] = ()
    dropped_for_good: bool = False


class CudnnSupport(Table, frozen=True):
    """Answers whether cuDNN supports a GPU."""

    name: ClassVar[str] = "cudnn_support"
    rows: tuple[CudnnRow, ...]

    def supports(self, cudnn: str, cuda_major: str, capability: str) -> bool | None:
        """Return whether cuDNN `cudnn` ("9.10.2.21") for CUDA `cuda_major` ("12") supports a GPU.

        None for releases without a row, for GPUs newer than those listed, and for Tegra boards,
        whose cuDNN is another package. A GPU that a release dropped for good stays dropped.
        """
        version, device = parse(cudnn), capability_numbers(capability)
        if version is None or device is None:
            return None
        if any(_dropped(row, version, device) for row in self.rows):
            return False
        listed = [
            parsed
            for row in self._of(version, cuda_major)
            for name in row.capabilities
            if (parsed := capability_numbers(name))
        ]
        if not listed:
            return None
        if any(has[0] == device[0] and has <= device for has in listed):
            return None if device in _TEGRA else True
        return False if device < min(listed) else None

    def excluding(self, cudnn: str, cuda_major: str, capability: str) -> tuple[CudnnRow, ...]:
        """Return the rows by which a release does not support a GPU."""
        version, device = parse(cudnn) or (), capability_numbers(capability) or (0, 0)
        dropping = (row for row in self.rows if _dropped(row, version, device))
        return tuple(dropping) or tuple(self._of(version, cuda_major))

    def _of(self, version: tuple[int, ...], cuda_major: str) -> list[CudnnRow]:
        """Return the rows of a release; its fourth number, the build, does not count."""
        return [
            row
            for row in self.rows
            if row.cuda == cuda_major and compare(numbers(row.cudnn), version[:3]) == 0
        ]


# Jetson boards; their cuDNN comes with JetPack and is not in NVIDIA's support matrix.
_TEGRA = frozenset({(3, 2), (5, 3), (6, 2), (7, 2), (8, 7), (11, 0)})


def _dropped(row: CudnnRow, version: tuple[int, ...], device: Capability) -> bool:
    if not row.dropped_for_good or not at_least(version, numbers(row.cudnn)):
        return False
    return all(device < (capability_numbers(name) or device) for name in row.capabilities)


# The shared libraries that one cuDNN consists of, by major version.


class SublibraryRow(Row, frozen=True):
    """A library of a cuDNN major; the releases that contain it, and those that do not."""

    cudnn: Major
    soname: Library
    role: Literal["main", "loader", "part"]
    seen_in: tuple[VersionText, ...] = ()
    not_in: tuple[VersionText, ...] = ()


class CudnnSublibraries(Table, frozen=True):
    """Answers which files belong to a cuDNN."""

    name: ClassVar[str] = "cudnn_sublibraries"
    rows: tuple[SublibraryRow, ...]

    def main(self, cudnn: str) -> str | None:
        """Return the library that programs load, such as libcudnn.so.9."""
        return next((row.soname for row in self._of(cudnn) if row.role != "part"), None)

    def expected(self, cudnn: str) -> tuple[str, ...] | None:
        """Return the SONAMEs that a cuDNN ("9.1.0.70", "9") certainly has; None: unknown major.

        A library that only some releases of the major contain is included for those releases.
        """
        wanted = parse(cudnn)
        rows = self._of(cudnn)
        if wanted is None or not rows:
            return None
        return tuple(row.soname for row in rows if not row.not_in or _is_one_of(wanted, row))

    def major_of(self, soname: str) -> str | None:
        """Return the cuDNN major ("9") that a SONAME belongs to."""
        return next((row.cudnn for row in self.rows if row.soname == soname), None)

    def _of(self, cudnn: str) -> list[SublibraryRow]:
        major = cudnn.partition(".")[0]
        return [row for row in self.rows if row.cudnn == major]


def _is_one_of(version: tuple[int, ...], row: SublibraryRow) -> bool:
    """Return whether this release contains the library; the fourth number does not count."""
    return any(compare(numbers(seen)[:3], version[:3]) == 0 for seen in row.seen_in)
