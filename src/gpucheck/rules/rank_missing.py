"""A rank of the job never arrived at the rendezvous.

Symptoms: the others wait, and finally "Timed out initializing process group in store based barrier
... (world_size=4, worker_count=2)".

Causes: the missing rank was not started (wrong --nnodes or node list), died while it imported
torch, or does not reach the master.

When it is reported: a rank of a self-test with several ranks does not come to their rendezvous. If
an address or a port fails, rendezvous-failed reports it.

``gpucheck preflight`` names the rank, and the host if the launcher tells it.

Fix: read the output of the missing rank on its own node; compare --nnodes and --node-rank on all
nodes.
"""

from gpucheck.findings import Judgement, Severity
from gpucheck.rules import Rule
from gpucheck.views.preflight_says import PreflightSays
from gpucheck.views.selftest_ranks import SelfTestRanks

RULE = Rule(
    title="a rank never arrived",
    severity=Severity.ERROR,
    family="cluster",
)


@RULE.check
def check(preflight: PreflightSays, ranks: SelfTestRanks) -> Judgement:
    """A self-test in several ranks shows it; else a pre-flight or a program's output does."""
    return ranks.missing() or preflight.fine()
