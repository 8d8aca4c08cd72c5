"""Measured and published bus bandwidths of collectives, with their conditions."""

from typing import ClassVar, Literal

from gpucheck.tables.base import Row, Table, Words
from gpucheck.tables.gpus import plain_product

Collective = Literal["all-reduce", "all-gather", "reduce-scatter"]


class BusBandwidthRow(Row, frozen=True):
    """A bus bandwidth in GB/s (10^9 bytes), as nccl-tests define it, on one node.

    `products` are names as the driver reports them, which include the form factor. `links` is how
    many NVLinks of each GPU are active, 0 if only PCIe joins the GPUs. `size` is in bytes. `nvls`:
    whether NVLink SHARP (NCCL's algorithm NVLS) was used. `threshold`: not a measured value, but
    the limit below which an operator rejects nodes.
    """

    products: tuple[Words, ...]
    gpus: int
    links: int
    collective: Collective
    size: int
    nvls: bool
    busbw: float
    threshold: bool = False


class BusBandwidths(Table, frozen=True):
    """Answers which bandwidth a collective has reached on a machine of the same kind."""

    name: ClassVar[str] = "bus_bandwidth"
    rows: tuple[BusBandwidthRow, ...]

    def row(
        self,
        *,
        product: str,
        gpus: int,
        links: int | None,
        collective: str,
        size: int,
        nvls_is_off: bool = False,
    ) -> BusBandwidthRow | None:
        """Return the row whose conditions all match; None without one or with unknown links.

        A larger message is never slower than a smaller one, so a row of the next smaller size is
        valid for a size in between; there is no answer for a smaller message. If NVLink SHARP
        (NVLS) is not turned off and a GPU count has rows of both kinds, the lower one is taken.
        """
        wanted = plain_product(product)
        fitting = [
            row for row in self.rows
            if row.gpus == gpus and row.links == links and row.collective == collective
            and row.size <= size and not (row.nvls and nvls_is_off)
            and any(plain_product(name) == wanted for name in row.products)
        ]  # fmt: skip
        largest = max((row.size for row in fitting), default=0)
        return min(
            (row for row in fitting if row.size == largest),
            key=lambda row: row.busbw,
            default=None,
        )
