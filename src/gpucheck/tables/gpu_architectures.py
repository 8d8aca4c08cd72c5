"""GPU architectures: which toolkits and driver branches support a compute capability."""

from collections.abc import Iterable
from functools import cached_property
from typing import ClassVar, Literal

from msgspec import Struct

from gpucheck.tables.base import CapabilityText, Line, Row, Table, Words

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
