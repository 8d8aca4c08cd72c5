"""Bus bandwidths of collectives that others have measured and published, with their conditions."""

from typing import ClassVar, Literal

from gpucheck.tables.base import Row, Table
from gpucheck.tables.gpu_products import plain_product

Collective = Literal["all-reduce", "all-gather", "reduce-scatter"]


class BusBandwidthRow(Row, frozen=True):
    """A bus bandwidth in GB/s (10^9 bytes), as nccl-tests define it, on one node.

    `products` are names as the driver reports them, which tell the form factor. `links` is how many
    NVLinks of each GPU are up, 0 where the GPUs are joined by PCIe alone. `size` in bytes. `nvls`:
    whether NVLink SHARP took part (NCCL's algorithm NVLS). `threshold`: a limit below which an
    operator sorts nodes out, and not what was measured.
    """

    products: tuple[str, ...]
    gpus: int
    links: int
    collective: Collective
    size: int
    nvls: bool
    busbw: float
    threshold: bool = False


class BusBandwidths(Table, frozen=True):
    """Answers what a collective reached on a machine of the same kind."""

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
        """Return the row that fits in everything; None when there is none, or links are unknown.

        A larger message is never slower than a smaller one, so a row of the next smaller size
        holds for a size in between; of a smaller message nothing is said. Where NVLink SHARP
        (NVLS) is not switched off and a GPU count has rows of both kinds, the lower one is taken.
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
