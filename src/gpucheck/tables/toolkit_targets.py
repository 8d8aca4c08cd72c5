"""The -arch values that each nvcc accepts."""

import re
from typing import ClassVar

from gpucheck.tables.base import Code, Row, Table, VersionText
from gpucheck.tables.versions import compare, numbers, parse

_TARGET = r"(?:sm|compute)_([0-9]{2,3}[af]?)"


class TargetsRow(Row, frozen=True):
    """An nvcc release of a toolkit: plain targets ("sm_86") and a- and f-targets ("sm_90a")."""

    cuda: VersionText
    nvcc: VersionText
    targets: tuple[Code, ...]
    specific_targets: tuple[Code, ...] = ()


class ToolkitTargets(Table, frozen=True):
    """Answers which GPUs a toolkit compiles for."""

    name: ClassVar[str] = "toolkit_targets"
    rows: tuple[TargetsRow, ...]

    def targets(self, cuda: str) -> tuple[str, ...] | None:
        """Return all targets of a toolkit: "12.4", or "12.4.131" for one nvcc release."""
        wanted = parse(cuda)
        if wanted is None or len(wanted) == 1:
            return None
        rows = [row for row in self.rows if numbers(row.cuda) == wanted[:2]]
        exact = [row for row in rows if compare(numbers(row.nvcc), wanted) == 0]
        found = (exact or rows)[:1]
        return found[0].targets + found[0].specific_targets if found else None

    def accepts(self, cuda: str, code: str) -> bool | None:
        """Return whether nvcc accepts a code such as sm_86, compute_90 or sm_100f."""
        targets, match = self.targets(cuda), re.fullmatch(_TARGET, code)
        if targets is None or match is None:
            return None
        return f"sm_{match[1]}" in targets

    def compiles_for(self, cuda: str, capability: str) -> bool | None:
        """Return whether nvcc has a target of its own for a compute capability such as "8.9"."""
        return self.accepts(cuda, "sm_" + capability.replace(".", ""))
