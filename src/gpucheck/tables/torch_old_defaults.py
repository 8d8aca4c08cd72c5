"""The CUDA version of PyPI's Linux wheels of PyTorch before 1.7."""

from typing import ClassVar

from gpucheck.tables.base import Line, Row, Table, VersionText
from gpucheck.tables.versions import compare, numbers, released


class OldDefaultRow(Row, frozen=True):
    """A release: the CUDA of the Linux x86_64 wheel that a plain `pip install torch` got."""

    torch: VersionText
    cuda: Line


class TorchOldDefaults(Table, frozen=True):
    """Answers which build a PyPI wheel is, for wheels older than the table of releases."""

    name: ClassVar[str] = "torch_old_defaults"
    rows: tuple[OldDefaultRow, ...]

    def cuda(self, version: str) -> str | None:
        """Return the CUDA ("10.1") of the wheel for Linux x86_64, None if unknown.

        A version with a local part ("1.4.0+cu92") is not from PyPI.
        """
        wanted = released(version)
        if wanted is None or "+" in version:
            return None
        found = (row for row in self.rows if compare(numbers(row.torch), wanted) == 0)
        return next((row.cuda for row in found), None)
