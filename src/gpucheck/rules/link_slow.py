"""The links between GPUs or nodes carry far less than they should.

What one sees: nccl-tests show a bus bandwidth far below that of equal machines; NVLink, PCIe
peer-to-peer, InfiniBand or the network may be the cause.

It is an error under 50 % and a warning under 80 % of what it is compared with.

A link that is down (nvlink-down, nccl-infiniband) or NCCL that uses sockets in place of
InfiniBand (nccl-network-interface) is told in place of this where it is seen.

``gpucheck preflight`` compares the bus bandwidth (by the definitions of nccl-tests) of pairs and
groups with groups of the same kind in the job, else with this machine's own baseline, else with
a published figure for exactly this board, number, NVLinks and size. A slow one is measured again
before it is named. CPU processes are accused under 40 % only.

Cure: ``nvidia-smi topo -m`` and ``nvidia-smi nvlink --status`` on the machine, ``ibstat`` and the
lines "NET/" of NCCL_DEBUG=INFO between nodes.
"""

from gpucheck.findings import Severity
from gpucheck.rules import InPreflight, Rule

RULE = Rule(
    __name__,
    title="links between GPUs or nodes are slower than they should be",
    severity=Severity.WARNING,
    family="cluster",
    suppressed_by=(
        "nvlink-down",
        "nccl-infiniband",
        "nccl-network-interface",
    ),
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=5,
        fix="Look at the links of the hosts that are named.",
        commands=("nvidia-smi topo -m", "nvidia-smi nvlink --status", "ibstat"),
        breaks_node=True,
    ),
)
