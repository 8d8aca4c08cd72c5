"""GPU chips ("GA102") and their compute capability."""

from typing import ClassVar

from gpucheck.tables.base import CapabilityText, Row, Table, Words


class ChipRow(Row, frozen=True):
    """A chip, its compute capability ("8.6") and the architecture's name."""

    chip: Words
    compute_capability: CapabilityText
    architecture: Words


class Chips(Table, frozen=True):
    """Answers which compute capability a chip has."""

    name: ClassVar[str] = "chips"
    rows: tuple[ChipRow, ...]

    def capability(self, chip: str) -> str | None:
        """Return the compute capability of a chip such as "GA102"."""
        wanted = chip.upper()
        return next((row.compute_capability for row in self.rows if row.chip == wanted), None)
