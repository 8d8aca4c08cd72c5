"""The file names (SONAMEs) under which a CUDA major's libraries are loaded."""

from typing import ClassVar

from gpucheck.tables.base import Library, Major, Row, Table, Words


class SonameRow(Row, frozen=True):
    """A library ("cublas"), a CUDA major ("12") and the SONAME it has there."""

    library: Words
    cuda: Major
    soname: Library


class CudaSonames(Table, frozen=True):
    """Answers which SONAME a library has, and to which CUDA majors a SONAME belongs."""

    name: ClassVar[str] = "cuda_sonames"
    rows: tuple[SonameRow, ...]

    def soname(self, library: str, cuda: str) -> str | None:
        """Return the SONAME of a library for a CUDA version or major ("12.4", "12")."""
        major = cuda.partition(".")[0]
        found = (row.soname for row in self.rows if (row.library, row.cuda) == (library, major))
        return next(found, None)

    def majors_of(self, soname: str) -> tuple[str, ...]:
        """Return the CUDA majors that have a SONAME; empty if the table does not know it."""
        return tuple(row.cuda for row in self.rows if row.soname == soname)

    def library_of(self, soname: str) -> str | None:
        """Return the library of a SONAME such as libcublas.so.12."""
        return next((row.library for row in self.rows if row.soname == soname), None)
