"""Error codes of the CUDA runtime and driver interfaces."""

from typing import ClassVar

from gpucheck.tables.base import Row, Table


class CudaErrorRow(Row, frozen=True):
    """A code with its names in the runtime and the driver interface, and its meaning in our words.

    `slugs` are the findings it usually stands for, the most usual first; none is a conclusion.
    """

    code: int
    runtime: str | None = None
    driver: str | None = None
    meaning: str | None = None
    slugs: tuple[str, ...] = ()


class CudaErrors(Table, frozen=True):
    """Answers what a CUDA error code means."""

    name: ClassVar[str] = "cuda_errors"
    rows: tuple[CudaErrorRow, ...]

    def error(self, code: int) -> CudaErrorRow | None:
        """Return the row of a code such as 803."""
        return next((row for row in self.rows if row.code == code), None)

    def named(self, name: str) -> CudaErrorRow | None:
        """Return the row of a name such as cudaErrorNoDevice or CUDA_ERROR_NO_DEVICE."""
        return next((row for row in self.rows if name in (row.runtime, row.driver)), None)
