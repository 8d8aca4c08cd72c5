"""Releases and builds of PyTorch, their indexes, what they pin, and conda-forge's."""

import re
from functools import cached_property
from typing import ClassVar, Literal

import msgspec

from gpucheck.tables.base import (
    Address,
    Build,
    Code,
    Line,
    Platform,
    Project,
    Requirement,
    Row,
    Specifier,
    Table,
    VersionText,
    Words,
)
from gpucheck.tables.versions import compare, minor, numbers, parse, released

# Releases and builds of PyTorch, and the indexes that have them.

# PyTorch releases on PyPI: their Pythons, default builds, system libraries and pins.

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


# PyTorch builds: the GPU code for a minor release, a CUDA version and a platform.


class BuildRow(Row, frozen=True):
    """A build of a minor release (`torch`, such as 2.6).

    `available` is true, false, or missing if nobody has looked. `releases` are the only patch
    releases that have the build, if not all do. `announced` is false for builds that PyTorch's
    RELEASE.md does not list. `arch_list` has cubins ("sm_86"), `ptx` the PTX ("compute_120") in the
    build script; the wheels that were opened have none. `confirmed` false: see `note` for the
    origin of the list. glibc and `cxx11_abi` are given if they differ from PyPI's wheel of the
    release. `pythons` are the only ones for which its wheels were seen, where another index has
    them than for other platforms; `driver` is the oldest branch that its maker names for it, if its
    CUDA alone would need an older one.
    """

    torch: Line
    build: Build
    cuda: Line
    platform: Platform
    available: bool | None = None
    releases: tuple[VersionText, ...] = ()
    announced: bool | None = None
    status: Words | None = None
    arch_list: tuple[Code, ...] = ()
    ptx: tuple[Code, ...] = ()
    cudnn: VersionText | None = None
    nccl: VersionText | None = None
    glibc: VersionText | None = None
    cxx11_abi: bool | None = None
    pythons: tuple[Words, ...] = ()
    driver: VersionText | None = None


class TorchBuilds(Table, frozen=True):
    """Answers what a build of PyTorch contains.

    `torch` is "2.6.0+cu124", "2.6.0" or "2.6", `cuda` "12.4" or "cu124", `platform` linux_x86_64,
    linux_aarch64, windows or windows_aarch64, for which NVIDIA publishes the builds. Pre-releases
    and development builds are unknown.
    """

    name: ClassVar[str] = "torch_builds"
    rows: tuple[BuildRow, ...]

    def build(self, torch: str, cuda: str, platform: str) -> BuildRow | None:
        """Return the row of a build, including one that does not exist or is only announced."""
        wanted_cuda = minor(cuda)
        rows = self.of_release(torch, platform)
        return next((row for row in rows if row.cuda == wanted_cuda), None)

    def available(self, torch: str, cuda: str, platform: str) -> bool | None:
        """Return whether this build was published."""
        row = self.build(torch, cuda, platform)
        if row is None:
            return False if self._is_beyond(torch, cuda, platform) else None
        if row.releases and not _is_one_of(torch, row.releases):
            return None if _is_minor_only(torch) else False
        return row.available

    def _is_beyond(self, torch: str, cuda: str, platform: str) -> bool:
        """Whether a build has a CUDA older than every build of its release, or newer than all.

        This is known where PyTorch's RELEASE.md lists the builds (`announced`): those that it does
        not list, such as cu129, lie between the others. Of other releases more may exist: 1.11 has
        one for CUDA 11.5.
        """
        rows, wanted = self.of_release(torch, platform), parse(minor(cuda) or "")
        if wanted is None or not any(row.announced for row in rows):
            return False
        known = [numbers(row.cuda) for row in rows if row.available is not False]
        return not min(known) <= wanted <= max(known)

    def arch_list(self, torch: str, cuda: str, platform: str) -> tuple[str, ...] | None:
        """Return the code in a build as torch prints it: ("sm_80", "sm_90", "compute_90")."""
        row = self.build(torch, cuda, platform)
        return row.arch_list + row.ptx if row and row.arch_list else None

    def oldest(self, platform: str) -> str | None:
        """Return the oldest release whose GPU code is known: of older ones nothing can be said."""
        of = [row.torch for row in self.rows if row.platform == platform and row.arch_list]
        return min(of, key=numbers, default=None)

    def codes(self) -> set[str]:
        """Return the code for GPUs that at least one build of PyTorch's own has: "sm_86"."""
        own = (row for row in self.rows if row.platform != "windows_aarch64")
        return {code for row in own for code in row.arch_list}

    def of_release(self, torch: str, platform: str) -> tuple[BuildRow, ...]:
        """Return the rows of a release on a platform."""
        wanted = released(torch)
        if wanted is None or len(wanted) == 1:
            return ()
        return self._by_release.get((f"{wanted[0]}.{wanted[1]}", platform), ())

    @cached_property
    def _by_release(self) -> dict[tuple[str, str], tuple[BuildRow, ...]]:
        found: dict[tuple[str, str], tuple[BuildRow, ...]] = {}
        for row in self.rows:
            key = row.torch, row.platform
            found[key] = (*found.get(key, ()), row)
        return found


def _is_one_of(torch: str, releases: tuple[str, ...]) -> bool:
    return released(torch) in {released(release) for release in releases}


def _is_minor_only(torch: str) -> bool:
    return len(released(torch) or ()) == 2  # noqa: PLR2004


# The CUDA version of PyPI's Linux wheels of PyTorch before 1.7.


class OldDefaultRow(Row, frozen=True):
    """A release: the CUDA of the Linux x86_64 wheel that a plain `pip install torch` got."""

    torch: VersionText
    cuda: Line


class TorchOldDefaults(Table, frozen=True):
    """Answers which build a PyPI wheel is, for wheels older than the table of releases."""

    name: ClassVar[str] = "torch_old_defaults"
    rows: tuple[OldDefaultRow, ...]

    def cuda(self, version: str) -> str | None:
        """Return the CUDA ("10.1") of the wheel for Linux x86_64, None if unknown.

        A version with a local part ("1.4.0+cu92") is not from PyPI.
        """
        wanted = released(version)
        if wanted is None or "+" in version:
            return None
        found = (row for row in self.rows if compare(numbers(row.torch), wanted) == 0)
        return next((row.cuda for row in found), None)


# What a release brought that printed commands use.


class FeatureRow(Row, frozen=True):
    """A program, or the prefix of environment variables, and the first release that has it."""

    feature: Words
    first: VersionText


class TorchFeatures(Table, frozen=True):
    """Answers what a release does not have yet."""

    name: ClassVar[str] = "torch_features"
    rows: tuple[FeatureRow, ...]

    def lacking(self, version: str | None) -> frozenset[str]:
        """Return what a release is known to be too old for; nothing for an unknown release."""
        wanted = released(version)
        if wanted is None:
            return frozenset()
        return frozenset(row.feature for row in self.rows if wanted < numbers(row.first))


# The wheel index with the PyTorch builds for one CUDA version.


class IndexRow(Row, frozen=True):
    """A build ("cu126", "cpu"), the address of its index, and the page of its older wheels.

    `beside_pypi`: its maker names the index beside PyPI, which has what the wheels need, too.
    `platform`: it has the builds for this one alone, and for it there is no other index.
    """

    build: Build
    address: Address
    page: Address | None = None
    platform: Platform | None = None
    beside_pypi: bool = False


_FIRST_WITH_INDEX = (1, 11)
"""From here on PyTorch's page of previous versions names an index instead of a page of wheels."""


class WheelIndexes(Table, frozen=True):
    """Answers where a build of PyTorch is published."""

    name: ClassVar[str] = "wheel_indexes"
    rows: tuple[IndexRow, ...]

    def index(self, build: str, platform: str | None = None) -> IndexRow | None:
        """Return the index of a build such as cu126; None if it is not known."""
        of_build = [row for row in self.rows if row.build == build]
        own = next((row for row in of_build if row.platform and row.platform == platform), None)
        return own or next((row for row in of_build if row.platform is None), None)

    def page(self, build: str, torch: str) -> str | None:
        """Return the address for `--find-links` of a build; None from torch 1.11 on."""
        release = released(torch)
        if release is None or release[:2] >= _FIRST_WITH_INDEX:
            return None
        return next((row.page for row in self.rows if row.build == build), None)


# What a PyTorch wheel of PyPI requires: its nvidia-* packages, cuda-toolkit, Triton.

_SEPARATORS = re.compile(r"[-_.]+")


class TorchPinRow(Row, frozen=True, tag_field="kind", tag="pin"):
    """A direct requirement of a release on a platform.

    `specifier` is as in the metadata ("==9.1.0.70"), `python` the Pythons it applies to, if not all
    ("<3.15"), `extras` the requested extras of the package.
    """

    torch: VersionText
    platform: Platform
    package: Words
    specifier: Specifier
    extras: tuple[Words, ...] = ()
    python: Words | None = None


class NoPinsRow(Row, frozen=True, tag_field="kind", tag="no-pins"):
    """A release that is known to require none of these packages on a platform."""

    torch: VersionText
    platform: Platform


class TorchPins(Table, frozen=True):
    """Answers what a release pins. `platform` is linux_x86_64, linux_aarch64 or windows."""

    name: ClassVar[str] = "torch_pins"
    rows: tuple[TorchPinRow | NoPinsRow, ...]

    def pins(self, torch: str, platform: str) -> tuple[TorchPinRow, ...] | None:
        """Return the pins of PyPI's wheel; empty if it is known to have none."""
        wanted = released(torch)
        if wanted is None:
            return None
        rows = [
            row
            for row in self.rows
            if row.platform == platform and compare(numbers(row.torch), wanted) == 0
        ]
        return tuple(row for row in rows if isinstance(row, TorchPinRow)) if rows else None

    def pin(self, torch: str, platform: str, package: str) -> TorchPinRow | None:
        """Return the requirement of a package such as nvidia-cudnn-cu12; None also without pin."""
        wanted = _SEPARATORS.sub("-", package).lower()
        pins = self.pins(torch, platform) or ()
        return next((row for row in pins if row.package == wanted), None)

    def admits(self, torch: str, platform: str, package: str, version: str) -> bool | None:
        """Return whether a version of a package meets the pin; None if there is no known pin."""
        row = self.pin(torch, platform, package)
        if row is None or released(version) is None:
            return None
        # Imported late: packaging takes milliseconds to import, and few questions need it.
        from packaging.specifiers import SpecifierSet  # noqa: PLC0415

        return SpecifierSet(row.specifier).contains(version)


# conda-forge's builds of PyTorch: the GPU code for a release, a CUDA version and a platform.


class CondaBuildRow(BuildRow, frozen=True):
    """A build of a minor release (`torch`, such as 2.13), of which `releases` were seen.

    `build` is the beginning of conda's build string ("cuda129"), `glibc` the C library that the
    recipe compiles for. `companions` are the packages of PyTorch that conda-forge has for it, for
    the Pythons in `companion_pythons` if these are fewer than those of the build. `requires` is
    what conda would choose too new for the GPUs that the build has code for.
    """

    companions: tuple[Project, ...] = ()
    companion_pythons: dict[Project, tuple[Words, ...]] = msgspec.field(default_factory=dict)
    requires: dict[Project, Requirement] = msgspec.field(default_factory=dict)

    def companions_for(self, python: str | None) -> tuple[Project, ...]:
        """Return the packages of PyTorch that there are for a Python; all of them for None."""
        fewer = self.companion_pythons
        return tuple(
            name
            for name in self.companions
            if python is None or name not in fewer or python in fewer[name]
        )


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
