"""PCI device ids of NVIDIA GPUs; names of older ones are from pci.ids (BSD-3 licence)."""

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, ClassVar

from msgspec import Meta

from gpucheck.tables.base import CapabilityText, Row, Table, Words
from gpucheck.tables.gpu_products import all_named, unanimous


class PciDeviceRow(Row, frozen=True):
    """A device: `device_id` is four lower-case hexadecimal digits; the vendor is 10de.

    `products` are the names sold under this id, `chip` is the chip in them ("GA102").
    """

    device_id: Annotated[str, Meta(min_length=4, max_length=4)]
    chip: Words | None = None
    products: tuple[Words, ...] = ()
    compute_capability: CapabilityText | None = None


class PciDevices(Table, frozen=True):
    """Answers which device has a PCI device id."""

    name: ClassVar[str] = "pci_devices"
    rows: tuple[PciDeviceRow, ...]

    def device(self, device_id: str) -> PciDeviceRow | None:
        """Return the device with this id: "2684" or "0x2684", in either case."""
        return self._by_id.get(device_id.lower().removeprefix("0x"))

    def capability_named(self, product: str) -> str | None:
        """Return the compute capability on which all devices of this name agree."""
        return unanimous(self._named(), product)

    def capabilities_named(self, product: str) -> set[str | None]:
        """Return the compute capabilities of all devices of this name, None for an unknown one."""
        return all_named(self._named(), product)

    def _named(self) -> Iterator[tuple[str, str | None]]:
        return ((name, row.compute_capability) for row in self.rows for name in row.products)

    @cached_property
    def _by_id(self) -> dict[str, PciDeviceRow]:
        return {row.device_id: row for row in self.rows}
