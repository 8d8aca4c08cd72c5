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

from gpucheck.findings import Judgement, Severity
from gpucheck.rules import Rule
from gpucheck.rules.witnesses.preflight_says import PreflightSays
from gpucheck.rules.witnesses.selftest_ranks import SelfTestRanks

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
