"""Which PyTorch releases work with NumPy 2, and what happens if one does not."""

from typing import ClassVar

from gpucheck.tables.base import OperatingSystem, Row, Table, VersionText, Words
from gpucheck.tables.versions import at_least, numbers, released


class Numpy2Row(Row, frozen=True):
    """Releases `first` to `last` (absent: open) on operating systems; `effect` when it fails."""

    operating_systems: tuple[OperatingSystem, ...]
    works: bool
    first: VersionText | None = None
    last: VersionText | None = None
    effect: Words | None = None


class Numpy2(Table, frozen=True):
    """Answers whether a torch works with NumPy 2."""

    name: ClassVar[str] = "numpy2"
    rows: tuple[Numpy2Row, ...]

    def works(self, torch: str, os: OperatingSystem) -> bool | None:
        """Return whether a release works with NumPy 2."""
        row = self._row(torch, os)
        return None if row is None else row.works

    def effect(self, torch: str, os: OperatingSystem) -> str | None:
        """Return what happens with NumPy 2; None if it works or the effect is unknown."""
        row = self._row(torch, os)
        return None if row is None else row.effect

    def _row(self, torch: str, os: OperatingSystem) -> Numpy2Row | None:
        version = released(torch)
        if version is None:
            return None
        return next((r for r in self.rows if os in r.operating_systems and _in(version, r)), None)


def _in(version: tuple[int, ...], row: Numpy2Row) -> bool:
    after_first = row.first is None or at_least(version, numbers(row.first))
    return after_first and (row.last is None or at_least(numbers(row.last), version))
