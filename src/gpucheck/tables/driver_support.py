"""Which driver branches support a GPU: one answer for diagnosis, what-if, fixes and recommend."""

from collections.abc import Collection
from typing import Literal

from gpucheck.tables.driver_branches import DriverBranches
from gpucheck.tables.gpu_architectures import GpuArchitectures
from gpucheck.tables.versions import at_least, parse

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
