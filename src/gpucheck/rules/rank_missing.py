"""A rank of the job never arrived at the rendezvous.

What one sees: the others wait, and at last "Timed out initializing process group in store based
barrier ... (world_size=4, worker_count=2)".

The missing rank may not have been started (wrong --nnodes or node list), may have died while it
imported torch, or may not reach the master.

A self-test in several ranks says it of a rank that does not come to the meeting of the ranks.

When an address or a port is what fails, rendezvous-failed says so.

``gpucheck preflight`` names the rank, and the host where the launcher tells it.

Cure: look at the output of the rank that is missing, on its own node; compare --nnodes and
--node-rank on all nodes.
"""

from gpucheck.findings import Hit, Severity
from gpucheck.rules import InPreflight, Rule
from gpucheck.rules.witnesses.selftest_ranks import SelfTestRanks

RULE = Rule(
    __name__,
    title="a rank never arrived",
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        fix="Look at the output of the process that should have started there, and whether "
        "the node is up and the launcher was given it.",
    ),
)


@RULE.check
def check(ranks: SelfTestRanks) -> Hit | None:
    """A rank that never came to the meeting of the ranks of a self-test."""
    return ranks.missing()
