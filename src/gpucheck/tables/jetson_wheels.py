"""PyTorch wheels made for Jetson boards: which torch for which JetPack."""

from typing import ClassVar

from gpucheck.tables.base import (
    Address,
    CapabilityText,
    Library,
    Line,
    Row,
    Table,
    VersionText,
    Words,
)
from gpucheck.tables.jetpack import L4t, is_l4t
from gpucheck.tables.versions import parse


class JetsonWheelRow(Row, frozen=True):
    """A wheel for Jetson: the torch release, the JetPack and Linux for Tegra releases it is for.

    `python` is missing if the source does not name it. A wheel that pip can install has the address
    of its `index`, its `cuda` and the compute capabilities that it has code for. `lacking` are the
    libraries that it needs and that no JetPack brings.
    """

    torch: VersionText
    jetpack: tuple[Words, ...]
    l4t: tuple[L4t, ...]
    python: Words | None = None
    cuda: Line | None = None
    compute_capabilities: tuple[CapabilityText, ...] = ()
    index: Address | None = None
    lacking: tuple[Library, ...] = ()


class JetsonWheels(Table, frozen=True):
    """Answers which torch was made for a JetPack."""

    name: ClassVar[str] = "jetson_wheels"
    rows: tuple[JetsonWheelRow, ...]

    def for_jetpack(self, jetpack: str) -> tuple[JetsonWheelRow, ...]:
        """Return the wheels of a JetPack release; empty if the table has none."""
        return tuple(row for row in self.rows if jetpack in row.jetpack)

    def for_l4t(self, l4t: str) -> tuple[JetsonWheelRow, ...]:
        """Return the wheels of a Linux for Tegra release; empty if the table has none."""
        wanted = parse(l4t)
        if wanted is None:
            return ()
        return tuple(row for row in self.rows if any(is_l4t(name, wanted) for name in row.l4t))
