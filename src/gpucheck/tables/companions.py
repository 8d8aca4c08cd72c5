"""Packages beside PyTorch: the torch, CUDA and GPUs that each release supports."""

import re
from functools import cached_property
from typing import ClassVar, Literal

import msgspec

from gpucheck.tables.base import (
    Address,
    AtLeast,
    Build,
    CapabilityText,
    Major,
    Platform,
    Project,
    Release,
    Requirement,
    Row,
    Specifier,
    Table,
    VersionText,
    Words,
)
from gpucheck.tables.versions import at_least, capability_numbers, compare, numbers, parse, released

# torchvision, torchaudio, torchtext: which release belongs to a torch, which torch each pins.

Package = Literal["torchvision", "torchaudio", "torchtext"]


class CompanionRow(Row, frozen=True, tag_field="kind", tag="companions"):
    """The companions of a torch release; `torchvision_also` says which others fit, in words.

    torchtext is missing from torch 2.4 on: 0.18.0 was its last release.
    """

    torch: VersionText
    torchvision: VersionText | None = None
    torchaudio: VersionText | None = None
    torchtext: VersionText | None = None
    torchvision_also: Words | None = None


class PinRow(Row, frozen=True, tag_field="kind", tag="pin"):
    """What a companion's metadata requires: `torch` is "==2.6.0", ">=2.14.0", or "" for no pin.

    `known_to` is the newest minor release of torch it was made for, if the metadata has no upper
    bound although the package does not use only torch's stable ABI.
    """

    package: Package
    version: VersionText
    torch: Specifier
    date: Words | None = None
    known_to: VersionText | None = None


class TorchCompanions(Table, frozen=True):
    """Answers which companions fit a torch. Local parts (+cu124) of versions are ignored."""

    name: ClassVar[str] = "torch_companions"
    rows: tuple[CompanionRow | PinRow, ...]

    def companion_for(self, torch_version: str, package: Package) -> str | None:
        """Return the release of `package` that was made for this torch release."""
        wanted = released(torch_version)
        if wanted is None:
            return None
        for row in self._companions():
            if compare(numbers(row.torch), wanted) == 0:
                found: str | None = getattr(row, package)
                return found
        return None

    def pin(self, package: Package, version: str) -> str | None:
        """Return the torch requirement of a companion release; "" if it is known to have none."""
        row = self.made_for(package, version)
        return None if row is None else row.torch

    def agrees(self, package: Package, version: str, torch_version: str) -> bool | None:
        """Return whether a companion release fits a torch release.

        A companion without a pin fits the torch it was made for and later ones, because it uses
        only torch's stable ABI; for an earlier one the answer is unknown. The answer is also
        unknown for a later torch if the companion has no upper bound and no stable ABI (torchtext
        0.18.0).
        """
        row, torch = self.made_for(package, version), released(torch_version)
        if row is None or torch is None:
            return None
        pin, known_to = row.torch, released(row.known_to)
        if known_to is not None and compare(torch[:2], known_to) > 0:
            return None
        if not pin:
            return True if self._made_for_this_or_older(package, version, torch) else None
        # Imported late: packaging takes milliseconds to import, and few questions need it.
        from packaging.specifiers import SpecifierSet  # noqa: PLC0415

        return SpecifierSet(pin).contains(".".join(str(number) for number in torch))

    def made_for(self, package: Package, version: str) -> PinRow | None:
        """Return the row that says which torch a companion release requires."""
        wanted = released(version)
        if wanted is None:
            return None
        pins = [row for row in self.rows if isinstance(row, PinRow) and row.package == package]
        return next((row for row in pins if compare(numbers(row.version), wanted) == 0), None)

    def _made_for_this_or_older(
        self,
        package: Package,
        version: str,
        torch: tuple[int, ...],
    ) -> bool:
        wanted = released(version) or ()
        return any(
            compare(released(self.companion_for(row.torch, package)) or (), wanted) == 0
            and at_least(torch, numbers(row.torch))
            for row in self._companions()
        )

    def _companions(self) -> list[CompanionRow]:
        return [row for row in self.rows if isinstance(row, CompanionRow)]


# Extensions of PyTorch: which torch, CUDA and GPUs their releases support.

_SEPARATORS = r"[-_.]+"


class ExtensionRow(Row, frozen=True, tag_field="kind", tag="release"):
    """A release of an extension; a column is missing if no primary source has it.

    `torch` is what its metadata requires ("==2.7.1"). `built_for_torch` and `built_with_cuda` are
    the releases that its own build makes wheels for, `cuda` and `cudnn` what it needs at run time
    ("12" is all of 12, "12.0+" this and newer), `capability_from` the lowest compute capability.
    `own_code_from` is the lowest for which it has kernels of its own, where it works with torch's
    on older GPUs.
    `platforms`, `python` and `glibc` are those of its wheels on PyPI, and of the wheels of what it
    pins: a row without platforms says too little to recommend its release. `from_source`: PyPI has
    the source, whose setup needs the installed torch. `requires` are its requirements of other
    packages that pin what others pin.
    `pypi_build` is the build of torch for which the wheel on PyPI was compiled, and
    `torch_index_builds` those that PyTorch's own index has a wheel for; `named_by_build`: the
    version there says so (0.16.0+cu126), and that of PyPI has no such part. A release whose wheels
    for one platform differ in this has a row for each.
    """

    package: Words
    version: Release
    torch: Specifier | None = None
    built_for_torch: tuple[Words, ...] = ()
    built_with_cuda: tuple[Words, ...] = ()
    cuda: tuple[AtLeast, ...] = ()
    cudnn: tuple[AtLeast, ...] = ()
    capability_from: CapabilityText | None = None
    own_code_from: CapabilityText | None = None
    platforms: tuple[Platform, ...] = ()
    python: Specifier | None = None
    glibc: VersionText | None = None
    from_source: bool = False
    requires: dict[Project, Requirement] = msgspec.field(default_factory=dict)
    pypi_build: Build | None = None
    torch_index_builds: tuple[Build, ...] = ()
    named_by_build: bool = False

    def local_for(self, build: str) -> str | None:
        """Return what a version needs to be the wheel for a build of torch: "+cu126".

        "" if it is PyPI's own, None if no such wheel is known.
        """
        if not self.is_for_other_cuda_on_pypi(major_of(build)):
            return ""
        return f"+{build}" if self.named_by_build and build in self.torch_index_builds else None

    def build_for(self, cuda: str) -> str:
        """Return the build of torch whose index has this release for a CUDA major; "" if none."""
        builds = [build for build in self.torch_index_builds if major_of(build) == cuda]
        return max(builds, default="")

    def is_for_other_cuda_on_pypi(self, cuda: str) -> bool:
        """Whether PyPI's wheel is known to be for another CUDA major than this one."""
        return self.pypi_build is not None and major_of(self.pypi_build) != cuda


class ExtensionWheelsRow(Row, frozen=True, tag_field="kind", tag="wheels"):
    """The wheels of a project for each torch: the index for a minor release, and its builds.

    `address` contains {build} as a placeholder for the build ("cu121"). A row without `platforms`
    is for all that the project makes wheels for.
    """

    packages: tuple[Project, ...]
    torch: VersionText
    builds: tuple[Build, ...]
    address: Address
    platforms: tuple[Platform, ...] = ()


class ExtensionSourceBuildRow(Row, frozen=True, tag_field="kind", tag="source-build"):
    """What a package that is compiled on the user's machine requires of nvcc.

    The CUDA of nvcc has to be that of torch to the minor version; within `majors_alike` the same
    major version is enough. `override` is the variable that skips the comparison.
    """

    package: Project
    majors_alike: tuple[Major, ...] = ()
    override: Words | None = None


class Extensions(Table, frozen=True):
    """Answers what a release of an extension works with. Names compare as on PyPI."""

    name: ClassVar[str] = "extensions"
    rows: tuple[ExtensionRow | ExtensionWheelsRow | ExtensionSourceBuildRow, ...]

    def release(self, package: str, version: str) -> ExtensionRow | None:
        """Return the row of a release such as xformers 0.0.30, without a local part (+cu126)."""
        return self._by_release.get((_plain(package), version.partition("+")[0]))

    def wheel(self, package: str, version: str, platform: str) -> ExtensionRow | None:
        """Return the row of a release with wheels for a platform; None if there is none."""
        plain, public = _plain(package), version.partition("+")[0]
        rows = (row for row in self._releases() if platform in row.platforms)
        return next((r for r in rows if _plain(r.package) == plain and r.version == public), None)

    def fits_torch(self, package: str, version: str, torch: str) -> bool | None:
        """Return whether a release's metadata admits a torch; None if it names none."""
        row = self.release(package, version)
        if row is None or row.torch is None:
            return None
        # Imported late: packaging takes milliseconds to import, and few questions need it.
        from packaging.specifiers import SpecifierSet  # noqa: PLC0415
        from packaging.version import Version  # noqa: PLC0415

        try:
            return SpecifierSet(row.torch).contains(Version(torch).public)
        except ValueError:  # no version, or a number that is too long for Python to convert
            return None

    def for_torch(self, package: str, torch: str) -> tuple[str, ...]:
        """Return the releases of a package in the table whose metadata admits a torch."""
        plain = _plain(package)
        rows = [row for row in self._releases() if _plain(row.package) == plain]
        fitting = (r.version for r in rows if self.fits_torch(package, r.version, torch))
        return tuple(dict.fromkeys(fitting))

    def of_package(self, package: str) -> list[ExtensionRow]:
        """Return the releases of a package that can be recommended, the newest first."""
        # Imported late: packaging takes milliseconds to import, and few questions need it.
        from packaging.version import Version  # noqa: PLC0415

        plain = _plain(package)
        rows = [r for r in self._releases() if _plain(r.package) == plain and r.platforms]
        return sorted(rows, key=lambda row: Version(row.version), reverse=True)

    def newest_for_cuda(self, package: str, major: str, python: str | None = None) -> str | None:
        """Return the newest release in the table that is built for a CUDA major, and for a Python.

        Where the Python is unknown, or the table does not say for which there are wheels, any will
        do.
        """
        plain = _plain(package)
        fitting = [
            (numbers(row.version), row.version)
            for row in self._releases()
            if _plain(row.package) == plain
            and parse(row.version) is not None
            and row.cuda
            and all(cuda.rstrip("+").partition(".")[0] == major for cuda in row.cuda)
            and _is_for_python(row, python)
        ]
        return max(fitting)[1] if fitting else None

    def serves_gpu(self, package: str, version: str, capability: str) -> bool | None:
        """Return whether a GPU is new enough for a release; None if no lower bound is known."""
        row, device = self.release(package, version), capability_numbers(capability)
        lowest = None if row is None else capability_numbers(row.capability_from)
        return None if device is None or lowest is None else at_least(device, lowest)

    def does_without_own_code(self, package: str, version: str, capability: str) -> bool:
        """Return whether a release is known to work on a GPU that its own kernels are not for."""
        row, device = self.release(package, version), capability_numbers(capability)
        first = capability_numbers(row.own_code_from) if row is not None else None
        return first is not None and device is not None and device < first

    def has_own_code(self, package: str, version: str, capability: str) -> bool:
        """Return whether the published wheel of a release is known to have code for a GPU."""
        row, device = self.release(package, version), capability_numbers(capability)
        first = capability_numbers(row.own_code_from) if row is not None else None
        return first is not None and device is not None and device >= first

    def wheels(
        self, package: str, torch: str, build: str, platform: str | None = None
    ) -> str | None:
        """Return the address (for `--find-links`) of a package's wheels for a torch build.

        Where the platform is unknown, any will do.
        """
        version, plain = released(torch), _plain(package)
        for row in self.rows:
            if not isinstance(row, ExtensionWheelsRow) or version is None:
                continue
            if platform is not None and row.platforms and platform not in row.platforms:
                continue
            if numbers(row.torch) == version[:2] and build in row.builds and plain in row.packages:
                return row.address.replace("{build}", build)
        return None

    def source_build(self, package: str) -> ExtensionSourceBuildRow | None:
        """Return what a package that is compiled on the machine requires of nvcc."""
        rows = (row for row in self.rows if isinstance(row, ExtensionSourceBuildRow))
        return next((row for row in rows if row.package == _plain(package)), None)

    def takes_nvcc(self, package: str, nvcc: str, torch_cuda: str) -> bool | None:
        """Return whether a package compiles with an nvcc ("12.8") for a torch of a CUDA ("12.6").

        None if the package is not in the table or a version cannot be parsed.
        """
        row, ours, theirs = self.source_build(package), parse(nvcc), parse(torch_cuda)
        if row is None or not ours or not theirs:
            return None
        if str(theirs[0]) in row.majors_alike:
            return ours[0] == theirs[0]
        return ours[:2] == theirs[:2]

    @cached_property
    def _by_release(self) -> dict[tuple[str, str], ExtensionRow]:
        return {(_plain(row.package), row.version): row for row in reversed(self._releases())}

    def _releases(self) -> list[ExtensionRow]:
        return [row for row in self.rows if isinstance(row, ExtensionRow)]


def major_of(build: str) -> str:
    """Return the CUDA major of a build: 13 of cu130."""
    return build.removeprefix("cu")[:-1]


def _is_for_python(row: ExtensionRow, python: str | None) -> bool:
    if row.python is None or python is None:
        return True
    # Imported late: packaging takes milliseconds to import, and few questions need it.
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415

    return SpecifierSet(row.python).contains(python, prereleases=True)


def _plain(package: str) -> str:
    return re.sub(_SEPARATORS, "-", package).lower()
