"""A rank of the job never arrived at the rendezvous.

Symptoms: the others wait, and finally "Timed out initializing process group in store based barrier
... (world_size=4, worker_count=2)".

Causes: the missing rank was not started (wrong --nnodes or node list), died while it imported
torch, or does not reach the master.

When it is reported: a rank of a self-test with several ranks does not come to their rendezvous. If
an address or a port fails, rendezvous-failed reports it.

``gpucheck preflight`` names the rank, and the host if the launcher reports it.

Fix: read the output of the missing rank on its own node, and compare --nnodes and --node-rank on
all nodes.
"""

from gpucheck.facts.claims import Severity
from gpucheck.findings.form import Hit, InPreflight, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestRanks
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("a rank never arrived"),
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        fix=say(
            "Read the output of the process that should have started there. If it says that task 0 "
            "was not reached, check the network between the two hosts. Otherwise check that the "
            "node is up and that the launcher knows of it."
        ),
    ),
)


@RULE.check
def check(ranks: SelfTestRanks) -> Hit | None:
    """Look for a rank that never joined the rendezvous of a self-test."""
    return ranks.missing()
