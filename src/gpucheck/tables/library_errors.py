"""Result codes of cuDNN, cuBLAS and NCCL."""

from typing import ClassVar, Literal

from gpucheck.tables.base import Row, Table, Words

Library = Literal["cudnn", "cublas", "nccl"]


class LibraryErrorRow(Row, frozen=True):
    """A code (`error` is the name in the header), a short explanation, its findings.

    `also` are older names of the same code. `slugs` are what it usually indicates; none of them is
    a conclusion.
    """

    library: Library
    code: int
    error: Words
    meaning: Words
    also: tuple[Words, ...] = ()
    slugs: tuple[Words, ...] = ()


class LibraryErrors(Table, frozen=True):
    """Answers what a result code of a CUDA library means."""

    name: ClassVar[str] = "library_errors"
    rows: tuple[LibraryErrorRow, ...]

    def error(self, library: Library, code: int) -> LibraryErrorRow | None:
        """Return the row of a code; for cuDNN, 1 to 14 are codes of version 8, the others of 9."""
        found = (row for row in self.rows if (row.library, row.code) == (library, code))
        return next(found, None)

    def named(self, name: str) -> LibraryErrorRow | None:
        """Return the row of a name such as CUDNN_STATUS_EXECUTION_FAILED."""
        return next((row for row in self.rows if name == row.error or name in row.also), None)
