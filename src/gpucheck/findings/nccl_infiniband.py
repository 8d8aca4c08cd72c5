"""InfiniBand or RoCE fails under NCCL: verbs errors, a port that is down, GID, locked memory.

NCCL talks to the adapters through the verbs library. A wrong GID index on RoCE, a low limit on
locked memory, a missing nvidia_peermem module, PCIe ACS, or a bad cable shows only when data flows.

Symptoms: "NET/IB : Got completion from peer ... with error 12", "Call to ibv_modify_qp failed",
"Got async event : port error", "ibv_reg_mr failed: Cannot allocate memory".

Status 12 is a timeout: the other side did not answer (routing, GID, switch). Status 4 is a local
protection error: registration of GPU memory (peermem, ACS). "NET/IB : No device found" alone is
fine: NCCL then uses sockets.

When it is reported: gpucheck reports this when a self-test over NCCL fails and NCCL's messages name
InfiniBand or RoCE as the cause.

``gpucheck preflight`` names a host on which a port is down, or slower, that is up at its full rate
on most others: a warning, and an error if a collective fails as well. It warns if a port counts
errors of the link during the run, such as link_downed or symbol_error. It also names ranks that
pass only with NCCL_IB_DISABLE=1.

Fix: check ``ibv_devinfo`` on all nodes (state PORT_ACTIVE), ``ulimit -l`` (unlimited), ``lsmod |
grep peermem``, and on RoCE that NCCL_IB_GID_INDEX is the index of the RoCE v2 address
(``show_gids``). NCCL_IB_DISABLE=1 shows whether InfiniBand is at fault: if the job then runs, it
is.
"""

from gpucheck.facts.claims import Severity
from gpucheck.findings.form import InPreflight, Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("InfiniBand or RoCE fails under NCCL"),
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight", "text"),
    named_by=("nccl",),
    preflight=InPreflight(
        fix=say("Look at the ports of the host that is named: their state should be PORT_ACTIVE."),
        commands=("ibv_devinfo", "ibstat"),
        passes_without=("NCCL_IB_DISABLE",),
    ),
)
