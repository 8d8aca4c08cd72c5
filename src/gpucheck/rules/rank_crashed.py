"""A rank was killed by a signal, such as a segmentation fault or an abort.

Symptoms: "Signal 11 (SIGSEGV) received by PID 4242", "exitcode : -11", "Segmentation fault (core
dumped)", and on the other ranks a lost connection or a timeout.

A negative exit code of torchrun is the number of the signal: -9 usually comes from the kernel
(host-out-of-memory), -7 is a bus error (shm-too-small), -15 is how the launcher ends the other
ranks.

The message alone does not say why; the first lines of that rank's own output do.

When it is reported: some ranks of a self-test with several ranks died and others did not.

``gpucheck preflight`` names the rank that ended first. Ranks that lost their connection to it
afterwards are its victims.

Fix: read the output of the rank that failed first (torchrun's "Root Cause" table names it), run it
alone with PYTHONFAULTHANDLER=1, and check dmesg.
"""

from gpucheck.findings import Judgement, Severity
from gpucheck.rules import Rule
from gpucheck.views.preflight_says import PreflightSays
from gpucheck.views.selftest_ranks import SelfTestRanks

RULE = Rule(
    title="a rank died",
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
    return ranks.died() or preflight.fine()
