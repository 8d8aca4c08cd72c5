"""Releases of CUDA: the drivers that they need, their libraries, what these open."""

import re
from functools import cached_property
from typing import ClassVar, Literal

from gpucheck.tables.base import (
    Branch,
    Library,
    Line,
    Major,
    OperatingSystem,
    Row,
    Table,
    VersionText,
    Words,
)
from gpucheck.tables.versions import at_least, compare, minor, numbers, parse

# Releases of CUDA: the drivers that they need, the libraries that make them up.

# Which NVIDIA driver a CUDA version needs at run time, and which one its toolkit shipped with.
#
# There are two kinds of rows. `minor-version-compatibility`, one per CUDA major (and 11.0, which
# has its own): the oldest driver that runs any program built with that major. `toolkit`, one per
# toolkit release: the driver that it shipped with, which from CUDA 11 on is not what a program
# needs.

# NVIDIA's CUDA Compatibility; before it each toolkit needs its driver.
_FIRST_WITH_MINOR_COMPATIBILITY = 11


class MinorCompatibilityRow(Row, frozen=True, tag_field="kind", tag="minor-version-compatibility"):
    """What a CUDA major (`cuda`, such as 12) needs.

    `linux` and `windows` are driver releases. `driver_cuda` is the lowest CUDA version that the
    driver has to report for cudart to start, `gate_measured` the cudart releases for which this was
    measured.
    """

    cuda: VersionText
    linux: VersionText | None = None
    windows: VersionText | None = None
    driver_cuda: Line | None = None
    gate_measured: tuple[Words, ...] = ()


class ToolkitRow(Row, frozen=True, tag_field="kind", tag="toolkit"):
    """The driver that a toolkit release came with, and the branch (such as 550) of that driver."""

    cuda: VersionText
    label: Words
    linux: VersionText | None = None
    windows: VersionText | None = None
    branch: Branch | None = None


class CudaDrivers(Table, frozen=True):
    """Answers which driver runs which CUDA version."""

    name: ClassVar[str] = "cuda_drivers"
    rows: tuple[MinorCompatibilityRow | ToolkitRow, ...]

    def oldest_driver(self, cuda: str, os: OperatingSystem) -> str | None:
        """Return the oldest driver release that runs programs built with CUDA `cuda`.

        From CUDA 11 on minor-version compatibility applies. Before that, each release needs the
        driver of its own toolkit (for two patch releases of one minor, the older driver is
        returned).
        """
        row = self.needed(cuda)
        return None if row is None else _driver(row, os)

    def oldest_of_newest(self) -> str | None:
        """Return the oldest Linux driver release that runs programs of the newest CUDA major."""
        majors = [row for row in self.rows if isinstance(row, MinorCompatibilityRow)]
        return max(majors, key=lambda row: parse(row.cuda) or ()).linux

    def least_driver_cuda(self, cuda: str) -> str | None:
        """Return the lowest CUDA version the driver must report for cudart `cuda` not to fail (35).

        Measured for cudart 11.8, 12.4 and 13.0; for other minors of these majors NVIDIA's
        minor-version compatibility says the same. Before CUDA 11 it is the same minor.
        """
        row = self.needed(cuda)
        if isinstance(row, MinorCompatibilityRow):
            return row.driver_cuda
        return None if row is None else minor(row.cuda)

    def driver_runs(
        self,
        cuda: str,
        os: OperatingSystem,
        *,
        driver: str | None = None,
        driver_cuda: str | None = None,
    ) -> bool | None:
        """Return whether a driver starts programs built with CUDA `cuda`, without cuda-compat.

        `driver_cuda`, the version that the driver reports, decides if it is known, otherwise the
        release number `driver`.
        """
        reported, wanted = parse(driver_cuda), parse(cuda)
        if reported and wanted:
            if at_least(reported, wanted[:2]):
                return True
            least = parse(self.least_driver_cuda(cuda))
            return None if least is None else at_least(reported, least)
        release, oldest = parse(driver), parse(self.oldest_driver(cuda, os))
        if release is None or oldest is None:
            return None
        if len(release) < len(oldest) and release == oldest[: len(release)]:
            return None  # "525" alone may be older or newer than 525.60.13
        return at_least(release, oldest)

    def toolkit_driver(self, cuda: str, os: OperatingSystem) -> str | None:
        """Return the driver that came with a toolkit ("12.4.1"; "12.4" is its first release)."""
        row = self.toolkit(cuda)
        return None if row is None else _driver(row, os)

    def toolkit(self, cuda: str) -> ToolkitRow | None:
        """Return the row of a toolkit release; for "12.4" the first release."""
        rows = self._toolkits(cuda)
        return rows[0] if rows else None

    def needed(self, cuda: str) -> MinorCompatibilityRow | ToolkitRow | None:
        """Return the row that says which driver programs built with CUDA `cuda` need."""
        wanted = parse(cuda)
        if wanted is None:
            return None
        if wanted[0] < _FIRST_WITH_MINOR_COMPATIBILITY:
            return self.toolkit(cuda)
        return self._of_minors.get(minor(cuda) or "") or self._of_minors.get(str(wanted[0]))

    @cached_property
    def _of_minors(self) -> dict[str, MinorCompatibilityRow]:
        return {row.cuda: row for row in self.rows if isinstance(row, MinorCompatibilityRow)}

    def _toolkits(self, cuda: str) -> list[ToolkitRow]:
        """Return the rows of a release, oldest first: all of a minor if no patch is given."""
        wanted = parse(cuda)
        if wanted is None or len(wanted) == 1:
            return []
        rows = [
            (parsed, row)
            for row in self.rows
            if isinstance(row, ToolkitRow) and (parsed := parse(row.cuda)) and _same(parsed, wanted)
        ]
        return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _same(toolkit: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    if len(wanted) == 2:  # noqa: PLR2004
        return toolkit[:2] == wanted
    return compare(toolkit, wanted) == 0


def _driver(row: MinorCompatibilityRow | ToolkitRow, os: OperatingSystem) -> str | None:
    return row.linux if os == "linux" else row.windows


# Limits of minor-version compatibility: what a driver older than the toolkit does not run.


class LimitRow(Row, frozen=True):
    """A limit by its name, what happens there, and the CUDA error codes that show it."""

    limit: Words
    effect: Words
    errors: tuple[int, ...]


class MinorCompatLimits(Table, frozen=True):
    """Answers what minor-version compatibility does not cover."""

    name: ClassVar[str] = "minor_compat_limits"
    rows: tuple[LimitRow, ...]

    def limit(self, name: str) -> LimitRow | None:
        """Return the row of a limit such as "newer-driver-api"."""
        return next((row for row in self.rows if row.limit == name), None)

    def behind_error(self, code: int) -> tuple[LimitRow, ...]:
        """Return the limits that a CUDA error code such as 222 can indicate."""
        return tuple(row for row in self.rows if code in row.errors)


# The library versions that make up a CUDA toolkit release.

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


# The file names (SONAMEs) under which a CUDA major's libraries are loaded.


class SonameRow(Row, frozen=True):
    """A library ("cublas"), a CUDA major ("12") and the SONAME it has there."""

    library: Words
    cuda: Major
    soname: Library


class CudaSonames(Table, frozen=True):
    """Answers which SONAME a library has, and to which CUDA majors a SONAME belongs."""

    name: ClassVar[str] = "cuda_sonames"
    rows: tuple[SonameRow, ...]

    def soname(self, library: str, cuda: str) -> str | None:
        """Return the SONAME of a library for a CUDA version or major ("12.4", "12")."""
        major = cuda.partition(".")[0]
        found = (row.soname for row in self.rows if (row.library, row.cuda) == (library, major))
        return next(found, None)

    def of(self, soname: str) -> tuple[SonameRow, ...]:
        """Return the rows of a SONAME, one for each CUDA major that has it."""
        return tuple(row for row in self.rows if row.soname == soname)

    def majors_of(self, soname: str) -> tuple[str, ...]:
        """Return the CUDA majors that have a SONAME; empty if the table does not know it."""
        return tuple(row.cuda for row in self.of(soname))

    def library_of(self, soname: str) -> str | None:
        """Return the library of a SONAME such as libcublas.so.12."""
        return next((row.library for row in self.rows if row.soname == soname), None)


# Libraries that a library opens by name at run time, without a NEEDED entry.

Need = Literal["required", "feature", "optional"]
Kind = Literal["driver", "cuda", "cudnn", "nccl", "torch", "system", "plugin"]

_RELEASE = 3
"""Numbers of a release; fewer, such as the 11.2 of libnvrtc.so.11.2, belong to a SONAME."""


class OpenRow(Row, frozen=True):
    """`opener` (a SONAME) opens `opened`.

    `need`: with "required", the opener does not work at all without it; with "feature", `purpose`,
    which PyTorch uses, fails; with "optional", the opener continues and at most `purpose` is left
    out. `kind` is what the opened library belongs to: "driver" comes with the driver, never with a
    toolkit. `seen_in` are the releases of the opener in which it was seen. The row applies from the
    release `since` of the opener on and before the release `before`, if given, and for the CUDA
    major `cuda`, if the opener's SONAME is the same for several. The release of one of torch's own
    libraries is torch's. `{version}` in a name is replaced by the opener's own release ("12.8").
    With `by_release` the names with the opener's release are tried first (libcudnn_ops.so.9.10.2,
    then .so.9.10, then .so.9).
    """

    opener: Library
    opened: Library
    need: Need
    kind: Kind
    seen_in: tuple[Words, ...]
    since: VersionText | None = None
    before: VersionText | None = None
    cuda: Major | None = None
    by_release: bool = False
    purpose: str = ""

    def applies(self, release: str, cuda: str) -> bool:
        """Return whether the opener of this release opens it when used with a CUDA major."""
        version = parse(release)
        if self.cuda is not None and self.cuda != cuda:
            return False
        if version is None:
            return self.since is None and self.before is None
        older = self.before is None or not at_least(version, numbers(self.before))
        return older and (self.since is None or at_least(version, numbers(self.since)))

    def names(self, release: str) -> tuple[str, ...]:
        """Return the names that are tried, in order; none if the release must be known and is not.

        `release` is that of the opener, such as "9.10.2", "" if unknown.
        """
        known = (parse(release) or ())[:_RELEASE]
        parts = [str(number) for number in known] if len(known) == _RELEASE else []
        if "{version}" in self.opened:
            return (self.opened.replace("{version}", ".".join(parts[:2])),) if parts else ()
        if not self.by_release or not parts:
            return (self.opened,)
        stem = self.opened.partition(".so")[0]
        return f"{stem}.so.{'.'.join(parts)}", f"{stem}.so.{'.'.join(parts[:2])}", self.opened


class RuntimeOpens(Table, frozen=True):
    """Answers what a library opens at run time."""

    name: ClassVar[str] = "runtime_opens"
    rows: tuple[OpenRow, ...]

    def opened_by(self, soname: str, release: str, cuda: str) -> tuple[OpenRow, ...]:
        """Return what the library with this SONAME opens, each name once.

        `release` is its own release ("9.26.0"), `cuda` the CUDA major it is used with ("13"). Both
        are "" if unknown, and rows that depend on them then do not apply. If several rows have the
        same name, that of the newest release counts.
        """
        rows = (row for row in self._by_opener.get(soname, ()) if row.applies(release, cuda))
        return tuple({row.opened: row for row in rows}.values())

    @cached_property
    def of_driver(self) -> frozenset[str]:
        """The names of libraries that come with the driver."""
        return frozenset(row.opened for row in self.rows if row.kind == "driver")

    @cached_property
    def _by_opener(self) -> dict[str, list[OpenRow]]:
        openers: dict[str, list[OpenRow]] = {}
        for row in self.rows:
            openers.setdefault(row.opener, []).append(row)
        return openers
