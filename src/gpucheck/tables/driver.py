"""Drivers: branches, the GPUs of each, their packages, and forward compatibility."""

from collections.abc import Collection
from datetime import date
from functools import cached_property
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from gpucheck.tables.base import Branch, Lines, Month, Row, Table, VersionText, Words
from gpucheck.tables.gpus import GpuArchitectures, GpuProducts, plain_product
from gpucheck.tables.versions import at_least, minor, numbers, parse

# Drivers: their branches, the GPUs that each drives, and the packages that install them.

# Driver branches: the CUDA version each one supports, its kind and its end of life.


class BranchRow(Row, frozen=True):
    """A driver branch.

    `branch` is its number ("535"), `kind` NVIDIA's term (LTSB, PB production, NFB new feature),
    `cuda` the CUDA version its drivers report, or the range in which it is known to be, `eol` the
    last month (YYYY-MM) of support. If it is only known that support is over, `ended_by` is the
    month in which NVIDIA announced that. A new feature branch has no such month. `open_only`: its
    packages have no proprietary kernel modules. `first_linux` and `last_linux` are releases from
    the tags of the open kernel modules or from NVIDIA's lists of files, `first_seen` is the day
    (YYYY-MM-DD) of the first.
    """

    branch: Branch
    kind: Words | None = None
    cuda: Lines | None = None
    eol: Month | None = None
    ended_by: Month | None = None
    open_only: bool = False
    first_linux: Words | None = None
    first_seen: Words | None = None
    last_linux: Words | None = None


class DriverBranches(Table, frozen=True):
    """Answers to which branch a driver release belongs and what that branch is."""

    name: ClassVar[str] = "driver_branches"
    rows: tuple[BranchRow, ...]

    def branch_of(self, driver: str) -> BranchRow | None:
        """Return the branch of a driver release, Linux ("535.104.05") or Windows ("528.33")."""
        release = parse(driver)
        if release is None:
            return None
        # Windows numbers run up to four above the branch: NVIDIA pairs 528.33 with R525, 576.57
        # with R575. Branches are multiples of five, except a few old ones that match exactly.
        rows = self._by_branch
        return rows.get(str(release[0])) or rows.get(str(_rounded(release[0])))

    def number_of(self, driver: str) -> int | None:
        """Return the branch number of a release: 580 for 580.65.06, and for Windows's 581.15.

        For a branch that the table does not have, it is the first number of the release.
        """
        row = self.branch_of(driver)
        if row is not None:
            return int(row.branch)
        release = parse(driver)
        return release[0] if release else None

    def cuda_of(self, driver: str) -> str | None:
        """Return the CUDA version ("12.2") that drivers of this branch report."""
        row = self.branch_of(driver)
        return row.cuda if row and parse(row.cuda) else None

    def is_end_of_life(self, driver: str, today: date) -> bool | None:
        """Return whether the month in which support of this branch ended is over."""
        row = self.branch_of(driver)
        if row is None:
            return None
        this_month = f"{today.year:04}-{today.month:02}"
        if row.eol is None:
            return True if row.ended_by is not None and this_month >= row.ended_by else None
        return this_month > row.eol

    def is_open_only(self, driver: str) -> bool:
        """Return whether the packages of a driver have the open kernel modules alone."""
        row = self.branch_of(driver)
        if row is not None:
            return row.open_only
        release = parse(driver)
        return release is not None and release[0] > int(self.newest())

    def newest(self) -> str:
        """Return the number of the newest branch of the table."""
        return max((row.branch for row in self.rows), key=int)

    def knows(self, driver: str) -> bool:
        """Return whether the table covers this driver: False if it is newer than all its rows."""
        release = parse(driver)
        return release is not None and _rounded(release[0]) <= int(self.newest())

    @cached_property
    def newest_cuda(self) -> list[tuple[int, tuple[int, ...]]]:
        """Each branch with the CUDA version it supports; for a range ("8.0-9.1") the upper end."""
        spoken = ((row.branch, parse((row.cuda or "").rpartition("-")[2])) for row in self.rows)
        return [(int(branch), newest) for branch, newest in spoken if newest]

    @cached_property
    def _by_branch(self) -> dict[str, BranchRow]:
        return {row.branch: row for row in self.rows}


def _rounded(number: int) -> int:
    return number - number % 5


# Which driver branches support a GPU: one answer for diagnosis, what-if, fixes and recommend.

Drives = Literal["drives", "too-old", "dropped", "not-known"]


class DriverSupport:
    """Joins the facts about a compute capability with those about the branches.

    Not every capability has a sourced first branch. If it has none, the first toolkit that supports
    it is the bound. No source says whether a branch with an older CUDA than that supports the GPU,
    so no such branch is recommended, and none is blamed.
    """

    def __init__(self, architectures: GpuArchitectures, branches: DriverBranches) -> None:
        self._architectures = architectures
        self._branches = branches
        self._last_without: dict[tuple[int, ...], int] = {}

    def drives(
        self, capability: str, *, release: str | None = None, cuda: str | None = None
    ) -> Drives | None:
        """Return whether a driver supports a GPU; None if the driver or the GPU is unknown.

        ``release`` is a release or a branch. Only if it is unknown, ``cuda`` is used, the CUDA
        version that the driver reports.
        """
        branch = self._branches.number_of(release) if release else None
        last = self._architectures.last_driver_branch(capability)
        first = self._architectures.first_driver_branch(capability)
        if not self._architectures.knows(capability) or (branch is None and parse(cuda) is None):
            return None
        if last is not None and self._is_newer(last, branch, cuda):
            return "dropped"
        if first is not None and self._is_older(first, branch, cuda):
            return "too-old"
        return "not-known" if self._is_doubtful(capability, branch, cuda) else "drives"

    def first(self, capability: str) -> int | None:
        """Return the oldest branch in the table that is known to support a GPU; None: no bound."""
        sourced = self._architectures.first_driver_branch(capability)
        if sourced is not None:
            return sourced
        toolkit = self.first_toolkit(capability)
        if toolkit is None:
            return None
        new_enough = [
            int(row.branch)
            for row in self._branches.rows
            if (cuda := parse(row.cuda)) and at_least(cuda, toolkit)
        ]
        return min(new_enough, default=None)

    def last(self, capabilities: Collection[str]) -> int | None:
        """Return the last branch that supports all of these GPUs; None if support has not ended."""
        lasts = [self._architectures.last_driver_branch(capability) for capability in capabilities]
        return min((last for last in lasts if last is not None), default=None)

    def driving_all(self, capabilities: Collection[str]) -> list[int]:
        """Return the branches in the table known to support all of these GPUs, in order."""
        return sorted(
            int(row.branch)
            for row in self._branches.rows
            if all(
                self.drives(capability, release=row.branch) == "drives"
                for capability in capabilities
            )
        )

    def first_toolkit(self, capability: str) -> tuple[int, ...] | None:
        """Return the CUDA version of the first toolkit whose compiler supports a GPU."""
        row = self._architectures.row(capability)
        return parse(row.first_toolkit) if row is not None else None

    def _is_newer(self, last: int, branch: int | None, cuda: str | None) -> bool:
        if branch is not None:
            return branch > last
        driver_cuda, branch_cuda = parse(cuda), parse(self._branches.cuda_of(str(last)))
        return bool(driver_cuda and branch_cuda and not at_least(branch_cuda, driver_cuda))

    def _is_older(self, first: int, branch: int | None, cuda: str | None) -> bool:
        if branch is not None:
            return branch < first
        driver_cuda, branch_cuda = parse(cuda), parse(self._branches.cuda_of(str(first)))
        return bool(driver_cuda and branch_cuda and not at_least(driver_cuda, branch_cuda))

    def _is_doubtful(self, capability: str, branch: int | None, cuda: str | None) -> bool:
        """Whether the driver is older than the first compiler for a GPU without a sourced first."""
        toolkit = self.first_toolkit(capability)
        if toolkit is None or self._architectures.first_driver_branch(capability) is not None:
            return False
        if branch is None:
            driver_cuda = parse(cuda)
            return driver_cuda is not None and not at_least(driver_cuda, toolkit)
        return branch <= self._last_branch_without(toolkit)

    def _last_branch_without(self, toolkit: tuple[int, ...]) -> int:
        """Return the last branch whose CUDA is older than the toolkit, 0 if there is none."""
        if toolkit not in self._last_without:
            spoken = self._branches.newest_cuda
            older = (branch for branch, newest in spoken if not at_least(newest, toolkit))
            self._last_without[toolkit] = max(older, default=0)
        return self._last_without[toolkit]


# Which packages of a distribution install the NVIDIA driver, and what they need beside them.

Way = Literal["apt", "apt-pinned", "dnf-module", "dnf", "zypper", "pacman"]
"""How the packages are installed; ``apt-pinned``: a package holds the branch of the others."""
_Packages = Annotated[
    str,
    Meta(pattern=r"\A(?=[A-Za-z0-9{])(?:[A-Za-z0-9._+ -]|\{branch\}|\$\(uname -r\)){1,150}\Z"),
]
"""Words of a command: nothing else may be in them for the shell to run."""
# It becomes part of a command that people paste, so a shell must find nothing to carry out in it
# but Fedora's number.
_Address = Annotated[
    str, Meta(pattern=r"\Ahttps://(?:[A-Za-z0-9._/+-]|\$\(rpm -E %fedora\)){1,200}\Z")
]
_EVERY_MACHINE = frozenset(("x86_64", "aarch64"))


class DriverPackageRow(Row, frozen=True):
    """The packages for some releases of a distribution; ``{branch}`` in a name is the branch.

    Without ``branch`` in any name there is only the newest branch. ``open_`` and
    ``proprietary_`` are for the kinds of kernel modules; a kind without a name has no package.
    """

    distribution: Words
    """``ID`` of ``/etc/os-release``."""
    way: Way
    release: VersionText | None = None
    """The major release; with neither it nor ``since``, every release."""
    since: VersionText | None = None
    """The first release."""
    kernel: Words | None = None
    """What the release of the running kernel contains; the packages are for this kernel alone."""
    machines: tuple[Words, ...] = ("x86_64",)
    repository: _Packages | None = None
    """The name of NVIDIA's repository for it; without, the distribution has the packages."""
    keyring: _Packages | None = None
    """The file in that repository that installs its key and its entry."""
    open_packages: _Packages | None = None
    proprietary_packages: _Packages | None = None
    pinning: _Packages | None = None
    """The package that holds a branch."""
    stream_open: _Packages | None = None
    stream_proprietary: _Packages | None = None
    """The streams of the module ``nvidia-driver``."""
    headers: _Packages | None = None
    """The packages with the headers of the kernel, for which the modules are built."""
    needs: _Packages | None = None
    """A package that these depend on and that the repositories of a new system lack."""
    component: _Packages | None = None
    """The component of the distribution's repository that has it."""
    addresses: tuple[_Address, ...] = ()
    """The packages that add the repositories which have it, or which have the driver."""

    @property
    def has_branches(self) -> bool:
        """Whether a branch can be chosen."""
        names = (self.open_packages, self.pinning, self.stream_open)
        return any("{branch}" in name for name in names if name)


class DriverPackages(Table, frozen=True):
    """Answers which packages install a driver."""

    name: ClassVar[str] = "driver_packages"
    rows: tuple[DriverPackageRow, ...]

    def row(
        self, distribution: str, release: str | None, machine: str | None, kernel: str | None
    ) -> DriverPackageRow | None:
        """Return the packages for a system; None if the table does not know it."""
        return next(
            (
                row
                for row in self.rows
                if row.distribution == distribution
                and _is_release(row, release)
                and _is_machine(row, machine)
                and (row.kernel is None or row.kernel in (kernel or ""))
            ),
            None,
        )


def _is_release(row: DriverPackageRow, release: str | None) -> bool:
    """Whether a release is among those of a row; an unknown one may be among the newer ones."""
    if row.release is not None:
        return (release or "").partition(".")[0] == row.release
    first, this = parse(row.since), parse(release)
    return first is None or this is None or at_least(this, first)


def _is_machine(row: DriverPackageRow, machine: str | None) -> bool:
    return machine in row.machines if machine else set(row.machines) >= _EVERY_MACHINE


# Forward compatibility: which cuda-compat package works on which driver branch and GPU kind.

State = Literal["compatible", "not-compatible", "not-applicable"]
GpuKind = Literal["data-center", "workstation", "geforce", "jetson"]
_SEGMENTS: dict[str, GpuKind] = {"data center": "data-center", "jetson": "jetson"}


class PackageRow(Row, frozen=True, tag_field="kind", tag="package"):
    """A cuda-compat package (`cuda` is its CUDA version) on a driver branch, according to NVIDIA.

    not-applicable: the branch's own libcuda already has this CUDA version.
    """

    cuda: VersionText
    branch: Branch
    state: State


class GpuKindRow(Row, frozen=True, tag_field="kind", tag="gpu-kind"):
    """Whether a kind of GPU may use the package; `allowed` is missing if the product decides."""

    gpu_kind: GpuKind
    allowed: bool | None = None


class ForwardCompatRow(Row, frozen=True, tag_field="kind", tag="rule"):
    """A rule for all packages, and the CUDA error codes that show that it was violated."""

    rule: Words
    value: Words
    errors: tuple[int, ...] = ()


class ForwardCompat(Table, frozen=True):
    """Answers where the cuda-compat packages work. `cuda` is "13.0", `branch` "535"."""

    name: ClassVar[str] = "forward_compat"
    rows: tuple[PackageRow | GpuKindRow | ForwardCompatRow, ...]

    def state(self, cuda: str, branch: str) -> State | None:
        """Return whether the package of a CUDA version works on a driver branch."""
        wanted = minor(cuda)
        packages = self._packages()
        return next((r.state for r in packages if (r.cuda, r.branch) == (wanted, branch)), None)

    def newest_cuda(self, branch: str) -> str | None:
        """Return the newest CUDA version whose package works on a driver branch."""
        fitting = [
            row.cuda
            for row in self._packages()
            if row.branch == branch and row.state == "compatible"
        ]
        return max(fitting, key=numbers, default=None)

    def package_for(self, cuda: str, branch: str) -> str | None:
        """Return the oldest package ("cuda-compat-12-8") that brings CUDA `cuda` to a branch.

        Also None if no package is needed because the branch's own libcuda is as new or newer.
        """
        wanted = parse(minor(cuda))
        if wanted is None or self.state(cuda, branch) in ("not-applicable", "not-compatible"):
            return None
        fitting = [
            row.cuda
            for row in self._packages()
            if row.branch == branch and row.state == "compatible" and numbers(row.cuda) >= wanted
        ]
        oldest = min(fitting, key=numbers, default=None)
        return None if oldest is None else "cuda-compat-" + oldest.replace(".", "-")

    def allowed_on(self, gpu_kind: GpuKind) -> bool | None:
        """Return whether a kind of GPU may use the packages; None if the product decides."""
        row = self.kind(gpu_kind)
        return None if row is None else row.allowed

    def kind(self, gpu_kind: GpuKind) -> GpuKindRow | None:
        """Return the row of a kind of GPU."""
        kinds = (row for row in self.rows if isinstance(row, GpuKindRow))
        return next((row for row in kinds if row.gpu_kind == gpu_kind), None)

    def rule(self, name: str) -> ForwardCompatRow | None:
        """Return a rule such as "operating-system"."""
        rules = [row for row in self.rows if isinstance(row, ForwardCompatRow)]
        return next((row for row in rules if row.rule == name), None)

    def _packages(self) -> list[PackageRow]:
        return [row for row in self.rows if isinstance(row, PackageRow)]


def kind_of(product: str, products: GpuProducts) -> GpuKind | None:
    """Return the kind of a product, from its name or the table of products."""
    plain = plain_product(product)
    if plain.startswith("geforce"):
        return "geforce"
    if plain.startswith("tesla"):
        return "data-center"
    segments = {plain_product(row.product): row.segment for row in products.rows}
    # "A100-SXM4-80GB" is an A100, "H100 PCIe" an H100.
    segment = segments.get(plain) or segments.get(plain.partition(" ")[0], "")
    return _SEGMENTS.get(segment) or ("workstation" if segment else None)
