"""The join of tables that says whether a CUDA's compiler can make code for a GPU.

The code in a build is known from its wheel or its build script. Without either, it is still known
which GPUs the build's compiler has no code for.
"""

from typing import Literal

from msgspec import Struct

from gpucheck.tables.cubin_rules import CubinRules, Runs
from gpucheck.tables.gpu_architectures import GpuArchitectures
from gpucheck.tables.toolkit_targets import ToolkitTargets
from gpucheck.tables.versions import at_least, capability_numbers, parse

Beyond = Literal["too-new", "too-old"]


class Compilers(Struct, frozen=True):
    """Answers which GPUs no code of a CUDA's compiler runs on."""

    targets: ToolkitTargets
    rules: CubinRules
    architectures: GpuArchitectures

    def beyond(self, cuda: str, capability: str) -> Beyond | None:
        """Return whether a GPU is too new or too old for all machine code of a CUDA's compiler.

        None if some of its code runs on the GPU, or if the tables do not say.
        """
        targets = self.targets.targets(cuda)
        if targets is None:
            return "too-new" if self._before_generation(cuda, capability) else None
        device = capability_numbers(capability)
        if device is None or self.rules.covers(targets, capability, cuda) is not Runs.NO:
            return None
        newest = max(filter(None, map(_target, targets)), default=device)
        return "too-new" if device > newest else "too-old"

    def _before_generation(self, cuda: str, capability: str) -> bool:
        """Return whether a CUDA is older than the first one that knows any GPU of this major."""
        major = capability.partition(".")[0]
        firsts = [
            parse(row.first_toolkit)
            for row in self.architectures.rows
            if row.compute_capability.partition(".")[0] == major
        ]
        built = parse(cuda)
        if built is None or not firsts:
            return False
        return all(first is not None and not at_least(built, first) for first in firsts)


def _target(code: str) -> tuple[int, int] | None:
    digits = code.removeprefix("sm_").rstrip("af")
    return capability_numbers(f"{digits[:-1]}.{digits[-1]}")
