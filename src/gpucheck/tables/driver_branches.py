"""Driver branches: the CUDA version each one supports, its kind and its end of life."""

from datetime import date
from functools import cached_property
from typing import ClassVar

from gpucheck.tables.base import Branch, Lines, Month, Row, Table, Words
from gpucheck.tables.versions import parse


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
