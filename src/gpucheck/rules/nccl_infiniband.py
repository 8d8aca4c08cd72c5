"""InfiniBand or RoCE fails under NCCL: verbs errors, a port that is down, GID, locked memory.

NCCL talks to the adapters through the verbs library. A wrong GID index on RoCE, a limit on locked
memory, a missing nvidia_peermem module, PCIe ACS, or a bad cable shows only when data flows.

What one sees: "NET/IB : Got completion from peer ... with error 12", "Call to ibv_modify_qp
failed", "Got async event : port error", "ibv_reg_mr failed: Cannot allocate memory".

Status 12 is a time-out: the other side did not answer (routing, GID, switch). Status 4 is a local
protection error: registration of GPU memory (peermem, ACS). "NET/IB : No device found" alone is
fine: NCCL then uses sockets.

gpucheck says it when a self-test goes wrong over NCCL and the words that were printed name it.

``gpucheck preflight`` names the host on which a port is down that most others have up: a warning,
and an error where a collective fails as well; and the ranks that pass with NCCL_IB_DISABLE=1 only.

Cure: ``ibv_devinfo`` on all nodes (state PORT_ACTIVE), ``ulimit -l`` unlimited, ``lsmod | grep
peermem``, on RoCE NCCL_IB_GID_INDEX of the RoCE v2 address (``show_gids``). NCCL_IB_DISABLE=1
tells whether InfiniBand is at fault: if the job then runs, it is.
"""

from gpucheck.findings import Severity
from gpucheck.rules import InPreflight, Rule

RULE = Rule(
    __name__,
    title="InfiniBand or RoCE fails under NCCL",
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight", "text"),
    named_by=("nccl",),
    preflight=InPreflight(
        fix="Look at the ports on the host that is named: PORT_ACTIVE is what they should be in.",
        commands=("ibv_devinfo", "ibstat"),
        cured_without=("NCCL_IB_DISABLE",),
    ),
)
