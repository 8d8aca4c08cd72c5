"""GPU products by name, from NVIDIA's pages of compute capabilities."""

import functools
from collections.abc import Iterable, Iterator
from typing import ClassVar, Literal

from gpucheck.tables.base import CapabilityText, Row, Table, Words

_BOARDS: Literal["aarch64"] = "aarch64"


class ProductRow(Row, frozen=True):
    """A product; its compute capability is missing if sources contradict each other.

    ``processor`` is that of the machine, where the product is sold with one kind only.
    """

    product: Words
    segment: Words
    compute_capability: CapabilityText | None = None
    processor: Literal["aarch64"] | None = None


class GpuProducts(Table, frozen=True):
    """Answers which compute capability a product has."""

    name: ClassVar[str] = "gpu_products"
    rows: tuple[ProductRow, ...]

    def capability(self, name: str) -> str | None:
        """Return the compute capability of a product ("NVIDIA GeForce RTX 3090").

        Case, hyphens and a leading "NVIDIA" are ignored; nothing else is guessed.
        """
        return unanimous(self._named(), name)

    def capabilities(self, name: str) -> set[str | None]:
        """Return every compute capability sold under a name, with None for an unknown one."""
        return all_named(self._named(), name)

    def processor(self, name: str) -> str | None:
        """Return the processor that a product is always sold with, None if there are several."""
        named = (
            (row.product.partition(" (")[0], _BOARDS if row.segment == "jetson" else row.processor)
            for row in self.rows
        )
        return unanimous(named, name)

    def row(self, name: str) -> ProductRow | None:
        """Return the first row of a product of this name."""
        plain = plain_product(name)
        return next((row for row in self.rows if plain_product(row.product) == plain), None)

    def is_jetson(self, capability: str) -> bool:
        """Return whether only Jetson boards have a compute capability."""
        return {row.segment for row in self.rows if row.compute_capability == capability} == {
            "jetson"
        }

    def _named(self) -> Iterator[tuple[str, str | None]]:
        return ((row.product, row.compute_capability) for row in self.rows)


def unanimous(named: Iterable[tuple[str, str | None]], wanted: str) -> str | None:
    """Return the capability on which all entries of one name agree, None if they do not."""
    found = all_named(named, wanted)
    return found.pop() if len(found) == 1 else None


def all_named(named: Iterable[tuple[str, str | None]], wanted: str) -> set[str | None]:
    """Return the capabilities of all entries of one name, with None for an unknown one."""
    plain = plain_product(wanted)
    return {capability for name, capability in named if plain_product(name) == plain}


@functools.lru_cache(maxsize=4096)  # chosen: above the products; names of others are bounded so
def plain_product(name: str) -> str:
    """Return a product name in the form used for comparison: without case, hyphens and "NVIDIA"."""
    return " ".join(name.lower().replace("-", " ").split()).removeprefix("nvidia ")
