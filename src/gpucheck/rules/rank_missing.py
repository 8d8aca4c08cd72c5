"""A rank of the job never arrived at the rendezvous.

What one sees: the others wait, and at last "Timed out initializing process group in store based
barrier ... (world_size=4, worker_count=2)".

The missing rank may not have been started (wrong --nnodes or node list), may have died while it
imported torch, or may not reach the master.

When an address or a port is what fails, rendezvous-failed says so.

Cure: look at the output of the rank that is missing, on its own node; compare --nnodes and
--node-rank on all nodes.
"""

from gpucheck.findings import Judgement, NotApplicable, Severity
from gpucheck.rules import Rule

RULE = Rule(
    title="a rank never arrived",
    severity=Severity.ERROR,
    family="cluster",
)


@RULE.check
def check() -> Judgement:
    """Nothing that is read from a machine shows it; what a text says of it, triage weighs."""
    return NotApplicable("only a program's output shows it: give it to gpucheck triage")
