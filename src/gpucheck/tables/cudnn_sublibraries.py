"""The shared libraries that one cuDNN consists of, by major version."""

from typing import ClassVar, Literal

from gpucheck.tables.base import Library, Major, Row, Table, VersionText
from gpucheck.tables.versions import compare, numbers, parse


class SublibraryRow(Row, frozen=True):
    """A library of a cuDNN major; the releases that contain it, and those that do not."""

    cudnn: Major
    soname: Library
    role: Literal["main", "loader", "part"]
    seen_in: tuple[VersionText, ...] = ()
    not_in: tuple[VersionText, ...] = ()


class CudnnSublibraries(Table, frozen=True):
    """Answers which files belong to a cuDNN."""

    name: ClassVar[str] = "cudnn_sublibraries"
    rows: tuple[SublibraryRow, ...]

    def main(self, cudnn: str) -> str | None:
        """Return the library that programs load, such as libcudnn.so.9."""
        return next((row.soname for row in self._of(cudnn) if row.role != "part"), None)

    def expected(self, cudnn: str) -> tuple[str, ...] | None:
        """Return the SONAMEs that a cuDNN ("9.1.0.70", "9") certainly has; None: unknown major.

        A library that only some releases of the major contain is included for those releases.
        """
        wanted = parse(cudnn)
        rows = self._of(cudnn)
        if wanted is None or not rows:
            return None
        return tuple(row.soname for row in rows if not row.not_in or _is_one_of(wanted, row))

    def major_of(self, soname: str) -> str | None:
        """Return the cuDNN major ("9") that a SONAME belongs to."""
        return next((row.cudnn for row in self.rows if row.soname == soname), None)

    def _of(self, cudnn: str) -> list[SublibraryRow]:
        major = cudnn.partition(".")[0]
        return [row for row in self.rows if row.cudnn == major]


def _is_one_of(version: tuple[int, ...], row: SublibraryRow) -> bool:
    """Return whether this release contains the library; the fourth number does not count."""
    return any(compare(numbers(seen)[:3], version[:3]) == 0 for seen in row.seen_in)
