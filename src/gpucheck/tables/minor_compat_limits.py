"""Limits of minor-version compatibility: what a driver older than the toolkit does not run."""

from typing import ClassVar

from gpucheck.tables.base import Row, Table, Words


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
