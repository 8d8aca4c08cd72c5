"""A rank was killed by a signal, such as a segmentation fault or an abort.

Symptoms: "Signal 11 (SIGSEGV) received by PID 4242", "exitcode : -11", "Segmentation fault (core
dumped)", and on the other ranks a lost connection or a timeout. If a text shows only one
process, its crash is reported as application-bug.

A negative exit code of torchrun is the number of the signal: -9 usually comes from the kernel
(host-out-of-memory), -7 is a bus error (shm-too-small), -15 is how the launcher ends the other
ranks.

The message alone does not say why the rank died. The first lines of that rank's own output do.

When it is reported: some ranks of a self-test with several ranks died and others did not.

``gpucheck preflight`` names the rank that ended first. Ranks that lost their connection to it
afterwards are its victims.

Fix: read the output of the rank that failed first (torchrun's "Root Cause" table names it), run it
alone with PYTHONFAULTHANDLER=1, and check dmesg.
"""

from gpucheck.facts.claims import Severity
from gpucheck.findings.form import Hit, InPreflight, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestRanks
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("a rank died"),
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
        fix=say("Check that host for driver errors and for processes that the kernel killed."),
        commands=(
            "sudo dmesg | grep -i -e NVRM -e Xid | tail -n 20",
            "sudo dmesg | grep -i -e oom -e segfault | tail -n 20",
        ),
        of_ranks=("error",),
    ),
)


@RULE.check
def check(ranks: SelfTestRanks) -> Hit | None:
    """Look for a rank whose process ended in the middle of a self-test."""
    return ranks.died()
