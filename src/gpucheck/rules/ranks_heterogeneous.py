"""The nodes or ranks of a job differ in drivers, torch, CUDA libraries, GPUs or NCCL settings.

Ranks must agree on protocols, buffer sizes and algorithms. Nodes with another NCCL, another
network plugin, other NCCL_* variables or another number of adapters hang or fail together while
each of them works alone.

What one sees: a hang without an error that appears only with certain nodes; different lines "NCCL
version" or "cudaDriverVersion"; a plugin that only some nodes load.

It is an error when torch, CUDA's major version or NCCL differ, else a warning. When NCCL's
versions differ nccl-version-mismatch says so.

Cure: the same image or environment on every node, and the same environment variables for every
rank.
"""

from gpucheck.findings import Judgement, NotApplicable, Severity
from gpucheck.rules import Rule

RULE = Rule(
    title="the nodes or ranks differ in what must be the same",
    severity=Severity.ERROR,
    family="cluster",
    yields_to=("nccl-version-mismatch",),
)


@RULE.check
def check() -> Judgement:
    """Nothing that is read from a machine shows it; what a text says of it, triage weighs."""
    return NotApplicable("only a program's output shows it: give it to gpucheck triage")
