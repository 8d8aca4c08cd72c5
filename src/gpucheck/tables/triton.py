"""Triton releases on PyPI: Pythons and the oldest glibc."""

from typing import ClassVar

from gpucheck.tables.base import Row, Table, VersionText
from gpucheck.tables.versions import at_least, compare, numbers, parse, released


class TritonRow(Row, frozen=True):
    """A release: first and last Python ("3.9", "3.13"), glibc; PyPI has only Linux wheels."""

    triton: VersionText
    python_first: VersionText
    python_last: VersionText
    glibc: VersionText
    linux_only: bool


class Triton(Table, frozen=True):
    """Answers on which systems a Triton release runs."""

    name: ClassVar[str] = "triton"
    rows: tuple[TritonRow, ...]

    def release(self, triton: str) -> TritonRow | None:
        """Return the row of a release."""
        wanted = released(triton)
        if wanted is None:
            return None
        return next((r for r in self.rows if compare(numbers(r.triton), wanted) == 0), None)

    def has_python(self, triton: str, python: str) -> bool | None:
        """Return whether a release supports a Python such as "3.12"."""
        row, version = self.release(triton), parse(python)
        if row is None or version is None or len(version) == 1:
            return None
        last = numbers(row.python_last)
        return at_least(version[:2], numbers(row.python_first)) and at_least(last, version[:2])
