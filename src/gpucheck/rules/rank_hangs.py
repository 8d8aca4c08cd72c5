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

from gpucheck.findings import Hit, Severity
from gpucheck.rules import InPreflight, Rule
from gpucheck.rules.witnesses.selftest_ranks import SelfTestRanks

RULE = Rule(
    __name__,
    title="a rank is stuck",
    severity=Severity.ERROR,
    family="cluster",
    suppressed_by=(
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
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        fix="Look on that host for errors of the driver; a GPU on which programs hang needs "
        "a reset or a reboot.",
        commands=("sudo dmesg | grep -i -e NVRM -e Xid | tail -n 20",),
        of_ranks=("connect", "hang"),
    ),
)


@RULE.check
def check(ranks: SelfTestRanks) -> Hit | None:
    """A rank for which the others waited in a collective of a self-test."""
    return ranks.hanging()
