"""A rank died of a signal: a segmentation fault, an abort.

What one sees: "Signal 11 (SIGSEGV) received by PID 4242", "exitcode : -11", "Segmentation fault
(core dumped)", and on the other ranks a lost connection or a time-out.

A negative exit code of torchrun is the number of the signal: -9 is most often the kernel's
(host-out-of-memory), -7 a bus error (shm-too-small), -15 the launcher's own end of the others.

The message alone does not tell why; the first lines of that rank's own output do.

gpucheck says it of a self-test in several ranks when some died in it and others did not.

``gpucheck preflight`` names the rank whose end came first; those that lost their connection after
it are its victims.

Cure: read the output of the rank that failed first (torchrun's "Root Cause" table names it), run
it alone with PYTHONFAULTHANDLER=1, and look into dmesg.
"""

from gpucheck.findings import Hit, Severity
from gpucheck.rules import InPreflight, Rule
from gpucheck.rules.witnesses.selftest_ranks import SelfTestRanks

RULE = Rule(
    __name__,
    title="a rank died",
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
        fix="Look on that host for errors of the driver and for processes that the kernel killed.",
        commands=(
            "sudo dmesg | grep -i -e NVRM -e Xid | tail -n 20",
            "sudo dmesg | grep -i -e oom -e segfault | tail -n 20",
        ),
        of_ranks=("error",),
    ),
)


@RULE.check
def check(ranks: SelfTestRanks) -> Hit | None:
    """A rank whose process ended in the middle of a self-test."""
    return ranks.died()
