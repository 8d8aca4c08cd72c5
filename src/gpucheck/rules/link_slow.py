"""The links between GPUs or nodes carry far less than they should.

What one sees: nccl-tests show a bus bandwidth far below that of equal machines; NVLink, PCIe
peer-to-peer, InfiniBand or the network may be the cause.

It is an error under 50 % and a warning under 80 % of what it is compared with.

A link that is down (nvlink-down, nccl-infiniband) or NCCL that uses sockets in place of
InfiniBand (nccl-network-interface) is told in place of this where it is seen.

Cure: ``nvidia-smi topo -m`` and ``nvidia-smi nvlink --status`` on the machine, ``ibstat`` and the
lines "NET/" of NCCL_DEBUG=INFO between nodes.
"""

from gpucheck.findings import Judgement, NotApplicable, Severity
from gpucheck.rules import Rule

RULE = Rule(
    title="links between GPUs or nodes are slower than they should be",
    severity=Severity.WARNING,
    family="cluster",
    yields_to=(
        "nvlink-down",
        "nccl-infiniband",
        "nccl-network-interface",
    ),
)


@RULE.check
def check() -> Judgement:
    """Nothing that is read from a machine shows it; what a text says of it, triage weighs."""
    return NotApplicable("only a program's output shows it: give it to gpucheck triage")
