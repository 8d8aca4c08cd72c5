"""Error codes of the CUDA runtime and driver interfaces."""

from typing import ClassVar

from gpucheck.tables.base import Row, Table, Words


class CudaErrorRow(Row, frozen=True):
    """A code with its names in the runtime and the driver interface, and a short explanation.

    `before_10_1` is the number of this error in the runtime before CUDA 10.1, if it was different.
    `message` is the text of cudaGetErrorString. `slugs` are the findings it usually indicates, the
    most usual first; none of them is a conclusion.
    """

    code: int
    runtime: Words | None = None
    driver: Words | None = None
    before_10_1: int | None = None
    message: Words | None = None
    meaning: Words | None = None
    slugs: tuple[Words, ...] = ()


class CudaErrors(Table, frozen=True):
    """Answers what a CUDA error code means."""

    name: ClassVar[str] = "cuda_errors"
    rows: tuple[CudaErrorRow, ...]

    def error(self, code: int) -> CudaErrorRow | None:
        """Return the row of a code such as 803."""
        return next((row for row in self.rows if row.code == code), None)

    def error_before_10_1(self, code: int) -> CudaErrorRow | None:
        """Return the row of the error that had this number, and not its own, before CUDA 10.1."""
        return next((row for row in self.rows if row.before_10_1 == code), None)

    def named(self, name: str) -> CudaErrorRow | None:
        """Return the row of a name such as cudaErrorNoDevice or CUDA_ERROR_NO_DEVICE."""
        return next((row for row in self.rows if name in (row.runtime, row.driver)), None)
