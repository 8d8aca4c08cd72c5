"""Return codes of NVML, the library behind nvidia-smi."""

from typing import ClassVar

from gpucheck.tables.base import Row, Table, Words


class NvmlErrorRow(Row, frozen=True):
    """A code (`error` is NVIDIA's name), a short explanation, and the findings it indicates."""

    code: int
    error: Words
    meaning: Words
    slugs: tuple[Words, ...] = ()


class NvmlErrors(Table, frozen=True):
    """Answers what an NVML return code means."""

    name: ClassVar[str] = "nvml_errors"
    rows: tuple[NvmlErrorRow, ...]

    def error(self, code: int) -> NvmlErrorRow | None:
        """Return the row of a code such as 18."""
        return next((row for row in self.rows if row.code == code), None)
