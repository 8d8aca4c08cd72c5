"""GPUs: products, architectures, chips, PCI devices, rates, and how people write their names."""

import functools
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from gpucheck.tables import Tables
from gpucheck.tables.base import CapabilityText, Line, Row, Table, Words

# GPU products by name, from NVIDIA's pages of compute capabilities.

_BOARDS: Literal["aarch64"] = "aarch64"


ByName = dict[str, set[str | None]]
"""What is sold or listed under each name, in its plain form."""


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
        return unanimous(self._by_name, name)

    def capabilities(self, name: str) -> set[str | None]:
        """Return every compute capability sold under a name, with None for an unknown one."""
        return all_named(self._by_name, name)

    def processor(self, name: str) -> str | None:
        """Return the processor that a product is always sold with, None if there are several."""
        named = (
            (row.product.partition(" (")[0], _BOARDS if row.segment == "jetson" else row.processor)
            for row in self.rows
        )
        return unanimous(by_name(named), name)

    def row(self, name: str) -> ProductRow | None:
        """Return the first row of a product of this name."""
        plain = plain_product(name)
        return next((row for row in self.rows if plain_product(row.product) == plain), None)

    def is_jetson(self, capability: str) -> bool:
        """Return whether only Jetson boards have a compute capability."""
        return capability in self._of_jetsons

    @cached_property
    def _of_jetsons(self) -> set[str | None]:
        boards = {row.compute_capability for row in self.rows if row.segment == "jetson"}
        return boards - {row.compute_capability for row in self.rows if row.segment != "jetson"}

    @cached_property
    def _by_name(self) -> ByName:
        return by_name((row.product, row.compute_capability) for row in self.rows)


def by_name(named: Iterable[tuple[str, str | None]]) -> ByName:
    """Return what the entries of each name have, by its plain form."""
    found: ByName = {}
    for name, value in named:
        found.setdefault(plain_product(name), set()).add(value)
    return found


def unanimous(named: ByName, wanted: str) -> str | None:
    """Return the capability on which all entries of one name agree, None if they do not."""
    found = all_named(named, wanted)
    return found.pop() if len(found) == 1 else None


def all_named(named: ByName, wanted: str) -> set[str | None]:
    """Return the capabilities of all entries of one name, with None for an unknown one."""
    return {*named.get(plain_product(wanted), ())}


@functools.lru_cache(maxsize=4096)  # chosen: above the products; names of others are bounded so
def plain_product(name: str) -> str:
    """Return a product name in the form used for comparison: without case, hyphens and "NVIDIA".

    nvidia-smi calls one card TITAN X (Pascal), and NVIDIA's lists call it TITAN X; that of Maxwell
    is a GTX TITAN X in both.
    """
    plain = " ".join(name.lower().replace("-", " ").split()).removeprefix("nvidia ")
    return plain.removesuffix(" (pascal)")


# GPU architectures: which toolkits and driver branches support a compute capability.

Support = Literal["required", "supported", "unsupported"]


class ModuleSupport(Struct, frozen=True):
    """Which flavour of the kernel modules supports a GPU; None if unknown."""

    open: Support | None
    proprietary: Support | None


class ArchitectureRow(Row, frozen=True):
    """A compute capability ("8.9").

    Toolkits are CUDA versions whose nvcc accepts it, driver branches the first and the last that
    support it. `last_...` is missing while nothing has dropped it. `open_only_products` are words
    in product names of boards that need the open modules although others of this capability do not.
    """

    compute_capability: CapabilityText
    architecture: Words
    first_toolkit: Line | None = None
    last_toolkit: Line | None = None
    first_driver_branch: int | None = None
    last_driver_branch: int | None = None
    open_module: Support | None = None
    proprietary_module: Support | None = None
    open_only_products: tuple[Words, ...] = ()


class GpuArchitectures(Table, frozen=True):
    """Answers what supports a compute capability."""

    name: ClassVar[str] = "gpu_architectures"
    rows: tuple[ArchitectureRow, ...]

    def row(self, capability: str) -> ArchitectureRow | None:
        """Return the row of a compute capability such as "8.9"."""
        return self._by_capability.get(capability)

    def knows(self, capability: str) -> bool:
        """Return whether the table has this compute capability."""
        return self.row(capability) is not None

    def architecture(self, capability: str) -> str | None:
        """Return the architecture's name, such as Ada."""
        row = self.row(capability)
        return None if row is None else row.architecture

    def first_driver_branch(self, capability: str) -> int | None:
        """Return the first driver branch (such as 570) that supports this GPU."""
        row = self.row(capability)
        return None if row is None else row.first_driver_branch

    def last_driver_branch(self, capability: str) -> int | None:
        """Return the last driver branch (such as 580) for this GPU, None: still supported."""
        row = self.row(capability)
        return None if row is None else row.last_driver_branch

    def modules(self, capability: str, product: str | None = None) -> ModuleSupport | None:
        """Return which kernel-module flavours support this GPU.

        Grace Hopper needs the open modules and has the same capability 9.0 as boards that do not.
        Without the product name the proprietary flavour is unknown there. None if the capability is
        unknown.
        """
        row = self.row(capability)
        if row is None:
            return None
        if row.open_only_products and product is None:
            return ModuleSupport(row.open_module, None)
        if product is not None and any(word in product for word in row.open_only_products):
            return ModuleSupport("required", "unsupported")
        return ModuleSupport(row.open_module, row.proprietary_module)

    def share_no_modules(self, gpus: Iterable[tuple[str | None, str | None]]) -> bool:
        """Return whether neither flavour of the kernel modules supports all of these GPUs.

        Each is a compute capability and a product name; either may be unknown.
        """
        found = [self.modules(code, name) if code else None for code, name in gpus]
        supports = [support for support in found if support is not None]
        return any(support.open == "unsupported" for support in supports) and any(
            support.proprietary == "unsupported" for support in supports
        )

    @cached_property
    def _by_capability(self) -> dict[str, ArchitectureRow]:
        return {row.compute_capability: row for row in reversed(self.rows)}


# Peak rates of GPUs according to their makers, and the rates that programs have reached.


class RateRow(Row, frozen=True):
    """The peak rates of the boards in `products` (names as the driver reports them).

    Arithmetic rates are in TFLOP/s, without sparsity: `fp64` and `fp32` on the ordinary units,
    `fp64_tensor`, `tf32`, `fp16`, `bf16` and `fp8` on the tensor cores with sums in fp32. `memory`
    is in GB/s, `nvlink` in GB/s over all links and both directions. 1 GB is 10^9 bytes.

    `bf16_reached` is the highest published TFLOP/s of a product of bf16 matrices by torch on this
    board, after a search for its best shape.
    """

    products: tuple[Words, ...]
    fp64: float | None = None
    fp64_tensor: float | None = None
    fp32: float | None = None
    tf32: float | None = None
    fp16: float | None = None
    bf16: float | None = None
    fp8: float | None = None
    memory: float | None = None
    nvlink: float | None = None
    bf16_reached: float | None = None


class GpuRates(Table, frozen=True):
    """Answers the peak rates of a product."""

    name: ClassVar[str] = "gpu_rates"
    rows: tuple[RateRow, ...]

    def rates(self, product: str) -> RateRow | None:
        """Return the row of a product such as "NVIDIA H100 PCIe"; None if it is unknown.

        Case, hyphens and a leading "NVIDIA" are ignored. Nothing else is guessed, because boards
        with the same chip differ.
        """
        wanted = plain_product(product)
        found = (r for r in self.rows if any(plain_product(name) == wanted for name in r.products))
        return next(found, None)


# PCI device ids of NVIDIA GPUs; names of older ones are from pci.ids (BSD-3 licence).


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
        return unanimous(self._by_name, product)

    def capabilities_named(self, product: str) -> set[str | None]:
        """Return the compute capabilities of all devices of this name, None for an unknown one."""
        return all_named(self._by_name, product)

    @cached_property
    def _by_name(self) -> ByName:
        return by_name((name, row.compute_capability) for row in self.rows for name in row.products)

    @cached_property
    def _by_id(self) -> dict[str, PciDeviceRow]:
        return {row.device_id: row for row in self.rows}


# GPU chips ("GA102") and their compute capability.


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


# Names of GPUs as people write them, and the facts that the tables have about each.

_FAMILIES = ("", "GeForce ", "Tesla ", "Quadro ")
_VARIANT = r"[0-9]{1,3}GB|PCIE|NVL|SXM[0-9]?|HBM[0-9]E?"
"""The last words of a product name that describe its memory or its form, not its chip."""


_VGPU = r"(?:GRID |NVIDIA )?(.+?)-(?:[0-9]-)?[0-9]{1,3}[ABCQ](?: ?ME)?"
"""A virtual GPU: its GPU, then a profile of gigabytes and kind (``A100-40C``, ``A100-1-5C``)."""
_MAX_Q = " WITH MAX-Q DESIGN"
_MOBILE = (" Mobile / Max-Q", " Mobile")
"""What pci.ids calls the GPU of a laptop. Max-Q is the same GPU with a lower limit of power."""
_BOARD = r"([AHV][12]00)[A-Z]{1,3}"
"""The boards of one GPU as names of virtual GPUs tell them apart: ``A100DX``, ``V100D``."""


def spellings(name: str) -> Iterator[str]:
    """Return the names under which the tables may have a product: first as it is, then completed.

    The name of a MIG instance follows that of its GPU: ``NVIDIA A100-SXM4-40GB MIG 3g.20gb``. A
    virtual GPU runs the code of its GPU.
    """
    name = name.partition(" MIG ")[0]
    yield from _completed(name)
    if name.upper().endswith(_MAX_Q):
        plain = name[: -len(_MAX_Q)]
        yield from _completed(plain)
        yield from (f"{plain}{mobile}" for mobile in _MOBILE)
    if virtual := re.fullmatch(_VGPU, name):
        board = re.fullmatch(_BOARD, virtual[1])
        yield from _completed(board[1] if board else re.sub(r"RTX(?=[0-9A])", "RTX ", virtual[1]))


def _completed(name: str) -> Iterator[str]:
    for family in _FAMILIES:
        yield family + name
    words = name.replace("-", " ").split()
    while len(words) > 1 and re.fullmatch(_VARIANT, words[-1].upper()):
        words.pop()
    plain = " ".join(words)
    for family in _FAMILIES:
        yield family + plain
    yield plain.removeprefix("Tesla ")


def capability_of(name: str, tables: Tables) -> str | None:
    """Return the compute capability on which the table's entries of a name agree."""
    products = tables.get(GpuProducts).capability(name)
    return products or tables.get(PciDevices).capability_named(name)
