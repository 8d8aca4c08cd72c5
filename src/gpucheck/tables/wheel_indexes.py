"""The wheel index with the PyTorch builds for one CUDA version."""

from typing import ClassVar

from gpucheck.tables.base import Address, Build, Row, Table


class IndexRow(Row, frozen=True):
    """A build ("cu126", "cpu") and the address of its index."""

    build: Build
    address: Address


class WheelIndexes(Table, frozen=True):
    """Answers where a build of PyTorch is published."""

    name: ClassVar[str] = "wheel_indexes"
    rows: tuple[IndexRow, ...]

    def address(self, build: str) -> str | None:
        """Return the address for `--index-url` of a build such as cu126."""
        return next((row.address for row in self.rows if row.build == build), None)
