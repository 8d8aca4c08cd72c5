"""An NCCL collective did not finish in time, and no more specific cause is visible.

All ranks must enter the same collective. If one of them hangs, dies, computes much longer than the
others, or calls another collective, the rest wait until the watchdog ends the job.

Symptoms: "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, ...)
ran for 1800328 milliseconds before timing out", on every rank except the one that caused it.

When it is reported: a more specific cause is reported instead if it shows: a network or InfiniBand
error, a rank that died, or ranks that call different collectives. A self-test over NCCL that no
rank finishes in time also gets this name if neither NCCL's messages nor a run without one of its
transports shows more.

``gpucheck preflight`` reports this for two ranks, or nodes, that never finish a collective with
each other while each finishes one with others. If it cannot name anybody, it ends with exit status
3.

Fix: find the rank that did not arrive (TORCH_NCCL_TRACE_BUFFER_SIZE=20000 with
TORCH_NCCL_DUMP_ON_TIMEOUT=1 writes what each rank was doing; py-spy dump --pid shows its stack). If
one rank prepares data or writes a checkpoint while the others wait, raise the timeout of
init_process_group, or let all ranks wait at a barrier of a CPU group (gloo).
"""

from gpucheck.facts.claims import Severity
from gpucheck.findings.form import Hit, InPreflight, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestRanks
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("a collective timed out"),
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
        exit_class=3,
        fix=say("Run it again with more time and NCCL's own log, to see what the ranks wait for."),
        commands=("NCCL_DEBUG=INFO gpucheck preflight --timeout 600",),
        of_links=("connect", "hang"),
    ),
)


@RULE.check
def check(ranks: SelfTestRanks) -> Hit | None:
    """Look for a collective of a self-test that no rank has left."""
    return ranks.timeout()
