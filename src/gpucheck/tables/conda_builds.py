"""conda-forge's builds of PyTorch: the GPU code for a release, a CUDA version and a platform."""

from typing import ClassVar

from gpucheck.tables.base import Platform, Project, Table, Words
from gpucheck.tables.torch import BuildRow
from gpucheck.tables.versions import minor, released


class CondaBuildRow(BuildRow, frozen=True):
    """A build of a minor release (`torch`, such as 2.13), of which `releases` were seen.

    `build` is the beginning of conda's build string ("cuda129"), `glibc` the C library that the
    recipe compiles for. `companions` are the packages of PyTorch that conda-forge has for it.
    """

    pythons: tuple[Words, ...] = ()
    companions: tuple[Project, ...] = ()


class CondaBuilds(Table, frozen=True):
    """Answers what a build of conda-forge contains."""

    name: ClassVar[str] = "conda_builds"
    rows: tuple[CondaBuildRow, ...]

    def of_platform(self, platform: Platform | str) -> tuple[CondaBuildRow, ...]:
        """Return the builds for linux_x86_64, linux_aarch64 or windows, as they stand."""
        return tuple(row for row in self.rows if row.platform == platform)

    def build(self, torch: str, cuda: str, platform: str) -> CondaBuildRow | None:
        """Return the row of a build of release "2.13.0" for CUDA "12.9"."""
        wanted, wanted_cuda = released(torch), minor(cuda)
        return next(
            (
                row
                for row in self.of_platform(platform)
                if wanted is not None
                and released(row.torch) == wanted[:2]
                and row.cuda == wanted_cuda
            ),
            None,
        )
