"""The links between GPUs or nodes are far slower than they should be.

Symptoms: nccl-tests show a bus bandwidth far below that of comparable machines. NVLink, PCIe
peer-to-peer, InfiniBand or the network may be the cause.

When it is reported: below 50 % of the reference it is an error, below 80 % a warning. If the cause
is visible, it is reported instead: a link that is down (nvlink-down, nccl-infiniband), or NCCL that
uses sockets in place of InfiniBand (nccl-network-interface).

``gpucheck preflight`` measures the bus bandwidth (as nccl-tests define it) of pairs and groups. It
compares each with groups of the same kind in the job, otherwise with the baseline of this machine,
otherwise with a published value for exactly this board, number of GPUs, NVLinks and size. A slow
group is measured again before it is named. From three nodes on, all nodes are measured in pairs,
and a host that is slow with every partner is named. Ranks on the CPU are reported only below 40 %,
and not if the machine was busy.

Fix: check ``nvidia-smi topo -m`` and ``nvidia-smi nvlink --status`` on the machine. Between nodes,
check ``ibstat`` and the lines "NET/" of NCCL_DEBUG=INFO.
"""

from gpucheck.facts.claims import Severity
from gpucheck.findings.form import InPreflight, Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("links between GPUs or nodes are slower than they should be"),
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
        fix=say("Look at the links of the hosts that are named."),
        commands=("nvidia-smi topo -m", "nvidia-smi nvlink --status", "ibstat"),
        breaks_node=True,
    ),
)
