"""GPU products by name, as NVIDIA's pages of compute capabilities give them."""

from collections.abc import Iterable
from typing import ClassVar

from gpucheck.tables.base import Row, Table


class ProductRow(Row, frozen=True):
    """A product; its compute capability is absent where sources contradict each other."""

    product: str
    segment: str
    compute_capability: str | None = None


class GpuProducts(Table, frozen=True):
    """Answers which compute capability a product has."""

    name: ClassVar[str] = "gpu_products"
    rows: tuple[ProductRow, ...]

    def capability(self, name: str) -> str | None:
        """Return the compute capability of a product ("NVIDIA GeForce RTX 3090").

        Case, hyphens and a leading "NVIDIA" do not count; nothing else is guessed.
        """
        return unanimous(((row.product, row.compute_capability) for row in self.rows), name)


def unanimous(named: Iterable[tuple[str, str | None]], wanted: str) -> str | None:
    """Return the capability on which all entries of one name agree, None when they do not."""
    plain = _plain(wanted)
    found = {capability for name, capability in named if _plain(name) == plain}
    return found.pop() if len(found) == 1 else None


def _plain(name: str) -> str:
    return " ".join(name.lower().replace("-", " ").split()).removeprefix("nvidia ")
