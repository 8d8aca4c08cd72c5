"""InfiniBand or RoCE fails under NCCL: verbs errors, a port that is down, GID, locked memory.

NCCL talks to the adapters through the verbs library. A wrong GID index on RoCE, a limit on locked
memory, a missing nvidia_peermem module, PCIe ACS, or a bad cable shows only when data flows.

What one sees: "NET/IB : Got completion from peer ... with error 12", "Call to ibv_modify_qp
failed", "Got async event : port error", "ibv_reg_mr failed: Cannot allocate memory".

Status 12 is a time-out: the other side did not answer (routing, GID, switch). Status 4 is a local
protection error: registration of GPU memory (peermem, ACS). "NET/IB : No device found" alone is
fine: NCCL then uses sockets.

Cure: ``ibv_devinfo`` on all nodes (state PORT_ACTIVE), ``ulimit -l`` unlimited, ``lsmod | grep
peermem``, on RoCE NCCL_IB_GID_INDEX of the RoCE v2 address (``show_gids``). NCCL_IB_DISABLE=1
tells whether InfiniBand is at fault: if the job then runs, it is.
"""

from gpucheck.findings import Judgement, NotApplicable, Severity
from gpucheck.rules import Rule

RULE = Rule(
    title="InfiniBand or RoCE fails under NCCL",
    severity=Severity.ERROR,
    family="cluster",
)


@RULE.check
def check() -> Judgement:
    """Nothing that is read from a machine shows it; what a text says of it, triage weighs."""
    return NotApplicable("only a program's output shows it: give it to gpucheck triage")
