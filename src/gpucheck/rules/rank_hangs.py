"""A rank is stuck: it runs, and does not come to the collective that the others wait in.

What one sees: the others' watchdogs time out; a flight recorder or a monitored barrier names the
rank that did not join.

It may wait for data, a lock or a file system, or compute longer than the others.

Without the name of the rank the finding is nccl-timeout.

A self-test in several ranks that one of them does not enter or leave names it, while others do.

``gpucheck preflight`` names the rank, its host and GPU: the one that never came to the all-reduce
that the others were in, or that hangs with every partner that passes with others.

Cure: ``py-spy dump --pid PID`` on that rank shows the line; TORCH_NCCL_TRACE_BUFFER_SIZE=20000
lets the flight recorder note every collective.
"""

from gpucheck.findings import Judgement, Severity
from gpucheck.rules import Rule
from gpucheck.rules.witnesses.preflight_says import PreflightSays
from gpucheck.rules.witnesses.selftest_ranks import SelfTestRanks

RULE = Rule(
    title="a rank is stuck",
    severity=Severity.ERROR,
    family="cluster",
    yields_to=(
        "gpu-fallen-off-bus",
        "gpu-hardware-fault",
        "fabric-manager-down",
        "host-out-of-memory",
        "shm-too-small",
        "nccl-p2p-broken",
        "nccl-transport-broken",
        "nccl-infiniband",
        "nccl-network-interface",
        "nccl-version-mismatch",
    ),
)


@RULE.check
def check(preflight: PreflightSays, ranks: SelfTestRanks) -> Judgement:
    """A self-test in several ranks shows it; else a pre-flight or a program's output does."""
    return ranks.hanging() or preflight.fine()
