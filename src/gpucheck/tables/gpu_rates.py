"""Peak rates of GPUs according to their makers, and the rates that programs have reached."""

from typing import ClassVar

from gpucheck.tables.base import Row, Table, Words
from gpucheck.tables.gpu_products import plain_product


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
