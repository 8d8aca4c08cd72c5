"""PyTorch releases on PyPI: their Pythons, default builds, system libraries and pins."""

import re
from functools import cached_property
from typing import ClassVar, Literal

from gpucheck.tables.base import Build, Line, Row, Table, VersionText, Words
from gpucheck.tables.versions import compare, numbers, parse, released

_LEADING = r"[0-9]{1,9}(?:\.[0-9]{1,9}){0,3}"


class ReleaseRow(Row, frozen=True):
    """A release.

    `pythons` maps a platform to Python versions ("3.13t" is free-threaded), `default_builds` to the
    build ("cu130", "cpu") on PyPI. glibc, GLIBCXX, CXXABI (newest symbol versions needed),
    `cxx11_abi` and the pins are those of PyPI's Linux x86_64 wheel. `numpy2_...`: works with NumPy
    2.
    """

    torch: VersionText
    date: Words
    requires_python: Words
    pythons: dict[str, tuple[Words, ...]]
    default_builds: dict[str, Build]
    cuda: Line | None = None
    platform_tag: Words | None = None
    glibc: VersionText | None = None
    glibcxx: VersionText | None = None
    cxxabi: Words | None = None
    cxx11_abi: bool | None = None
    cudnn: VersionText | None = None
    nccl: VersionText | None = None
    triton: VersionText | None = None
    cusparselt: Words | None = None
    nvshmem: Words | None = None
    numpy2_linux: bool | None = None
    numpy2_windows: bool | None = None
    git_version: Words | None = None


class TorchReleases(Table, frozen=True):
    """Answers facts about a PyTorch release. Versions may have a local part ("2.6.0+cu124").

    A pre-release or a development build is not the release, so the answer for it is None.
    """

    name: ClassVar[str] = "torch_releases"
    rows: tuple[ReleaseRow, ...]

    def release(self, version: str) -> ReleaseRow | None:
        """Return the row of a release."""
        wanted = released(version)
        if wanted is None:
            return None
        return next((r for r in self.rows if compare(numbers(r.torch), wanted) == 0), None)

    def newest_first(self) -> tuple[ReleaseRow, ...]:
        """Return all releases, the newest first."""
        return self._newest_first

    def newest(self) -> str:
        """Return the newest release in the table."""
        return self._newest_first[0].torch

    def knows(self, version: str) -> bool:
        """Return whether the table covers this version: False if it is newer than all its rows."""
        leading = re.match(_LEADING, version)
        parsed = parse(leading[0]) if leading else None
        return parsed is not None and compare(parsed, numbers(self.newest())) <= 0

    def pythons(self, version: str, platform: str) -> tuple[str, ...] | None:
        """Return the Pythons ("3.12", "3.13t") for which PyPI has wheels on this platform."""
        row = self.release(version)
        return None if row is None else row.pythons.get(platform)

    def default_build(self, version: str, platform: str) -> str | None:
        """Return the build ("cu128", "cpu") that a plain `pip install torch` installs."""
        row = self.release(version)
        return None if row is None else row.default_builds.get(platform)

    def numpy2(self, version: str, platform: Literal["linux", "windows"]) -> bool | None:
        """Return whether this release works with NumPy 2."""
        row = self.release(version)
        if row is None:
            return None
        return row.numpy2_linux if platform == "linux" else row.numpy2_windows

    def first_with_numpy2(self, platform: Literal["linux", "windows"]) -> str:
        """Return the first release in the table that works with NumPy 2; "" if none does."""
        fitting = [row.torch for row in self.rows if self.numpy2(row.torch, platform)]
        return min(fitting, key=numbers, default="")

    def glibc(self, version: str) -> str | None:
        """Return the oldest glibc for PyPI's Linux x86_64 wheel, such as 2.28."""
        row = self.release(version)
        return None if row is None else row.glibc

    @cached_property
    def _newest_first(self) -> tuple[ReleaseRow, ...]:
        return tuple(sorted(self.rows, key=lambda row: numbers(row.torch), reverse=True))
