"""The GPUs for which the nvcc of a CUDA toolkit compiles."""

from gpucheck.derived.base import Derived
from gpucheck.language import say
from gpucheck.tables.cubin_rules import CubinRules
from gpucheck.tables.gpu_architectures import GpuArchitectures
from gpucheck.tables.toolkit_targets import ToolkitTargets
from gpucheck.tables.versions import at_least, capability_numbers, parse


class NvccTargets(Derived):
    """Answers from the targets of each nvcc, or from the first and last toolkit of each GPU."""

    def __init__(
        self, targets: ToolkitTargets, architectures: GpuArchitectures, cubins: CubinRules
    ) -> None:
        self._targets = targets
        self._architectures = architectures
        self._cubins = cubins

    def knows(self, cuda: str, capability: str) -> bool | None:
        """Return whether a toolkit compiles for a compute capability such as "8.9" or "9.0a"."""
        compiles = self._targets.compiles_for(cuda, capability)
        row, have = self._architectures.row(capability.rstrip("af")), parse(cuda)
        if compiles is not None or row is None or have is None:
            return compiles
        first, last = parse(row.first_toolkit), parse(row.last_toolkit)
        if first is not None and not at_least(have, first):
            return False
        # Within the last major the table of targets decides.
        return False if last is not None and have[0] > last[0] else None

    def why_not(self, cuda: str, capability: str) -> str:
        """Return which toolkits support the capability, in words that follow it."""
        row, have = self._architectures.row(capability.rstrip("af")), parse(cuda)
        if row is None or have is None:
            return ""
        first, last = parse(row.first_toolkit), parse(row.last_toolkit)
        if first is not None and not at_least(have, first):
            return say(
                " ({architecture}), which CUDA {cuda} was the first to support",
                architecture=row.architecture,
                cuda=row.first_toolkit,
            )
        if last is not None and not at_least(last, have[:2]):
            return say(
                " ({architecture}), which CUDA {cuda} was the last to support",
                architecture=row.architecture,
                cuda=row.last_toolkit,
            )
        return say(" ({architecture})", architecture=row.architecture)

    def first(self, capability: str) -> str:
        """Return the first toolkit that supports a capability; "" if the table does not have it."""
        row = self._architectures.row(capability.rstrip("af"))
        return (row.first_toolkit or "") if row is not None else ""

    def stand_in(self, cuda: str, capability: str) -> str:
        """Return the highest lower capability that nvcc supports and whose code runs here."""
        wanted = capability_numbers(capability)
        if wanted is None:
            return ""
        for number in range(wanted[1] - 1, -1, -1):
            lower = f"{wanted[0]}.{number}"
            if self._targets.compiles_for(cuda, lower) and self._cubins.runs(
                f"sm_{wanted[0]}{number}", capability, cuda
            ):
                return lower
        return ""
