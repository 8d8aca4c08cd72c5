"""PyTorch wheels made for Jetson boards: which torch for which JetPack."""

from typing import ClassVar

from gpucheck.tables.base import Row, Table, VersionText, Words
from gpucheck.tables.jetpack import L4t
from gpucheck.tables.versions import released


class JetsonWheelRow(Row, frozen=True):
    """A wheel for Jetson: the torch release, the JetPack and Linux for Tegra releases it is for.

    `python` is missing if the source does not name it.
    """

    torch: VersionText
    jetpack: tuple[Words, ...]
    l4t: tuple[L4t, ...]
    python: Words | None = None


class JetsonWheels(Table, frozen=True):
    """Answers which torch was made for a JetPack."""

    name: ClassVar[str] = "jetson_wheels"
    rows: tuple[JetsonWheelRow, ...]

    def for_jetpack(self, jetpack: str) -> tuple[JetsonWheelRow, ...]:
        """Return the wheels of a JetPack release; empty if the table has none."""
        return tuple(row for row in self.rows if jetpack in row.jetpack)

    def made_for(self, torch: str, jetpack: str) -> bool | None:
        """Return True if a torch release was made for a JetPack; None if no row says so."""
        wanted = released(torch)
        rows = self.for_jetpack(jetpack)
        known = wanted is not None and any(released(row.torch) == wanted for row in rows)
        return True if known else None
