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

If a collective did not end, or took more than a quarter of its time limit, and nobody is to blame,
a link between two hosts is named on which at least 5 % of the TCP packets got lost, or a host whose
links to several others lose them.

Fix: check ``nvidia-smi topo -m`` and ``nvidia-smi nvlink --status`` on the machine. Between nodes,
check ``ibstat`` and the lines "NET/" of NCCL_DEBUG=INFO.
"""

from gpucheck.facts.claims import Fix, Severity
from gpucheck.findings.form import InPreflight, Rule
from gpucheck.language import say

REPLACE_THE_LINK = Fix(
    text=say(
        "Find out where the packets get lost: look at the counters of errors and drops on both "
        "hosts, and at those of the switch ports between them. Replace the cable or transceiver, "
        "or use another port."
    ),
    commands=("ip -s link", "ethtool -S INTERFACE | grep -iE 'err|drop|discard|crc'"),
    verify="gpucheck preflight",
)
"""What to do about such a link."""

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
