"""A rank is stuck: it is running, but does not reach the collective in which the others wait.

Symptoms: the watchdogs of the other ranks time out; a flight recorder or a monitored barrier names
the rank that did not join.

A text that says only that work on several GPUs hangs has this finding, too.

The rank may wait for data, a lock or a file system, or compute longer than the others.

When it is reported: a rank does not enter or finish a self-test with several ranks while others do.
If the rank is not known, the finding is nccl-timeout.

``gpucheck preflight`` names the rank, its host and GPU: a rank that never reached the all-reduce in
which the others were, or one that hangs with every partner while the partners pass with others.

Fix: ``py-spy dump --pid PID`` on that rank shows the line; TORCH_NCCL_TRACE_BUFFER_SIZE=20000 makes
the flight recorder log every collective.
"""

from gpucheck.facts.claims import Severity
from gpucheck.findings.form import Hit, InPreflight, Rule
from gpucheck.findings.witnesses.selftest_ranks import SelfTestRanks

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
    """Look for a rank for which the others waited in a collective of a self-test."""
    return ranks.hanging()
