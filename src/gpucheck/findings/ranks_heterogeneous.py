"""The nodes or ranks of a job differ in drivers, torch, CUDA libraries, GPUs or NCCL settings.

Ranks must agree on protocols, buffer sizes and algorithms. Nodes with another NCCL, another network
plugin, other NCCL_* variables or another number of adapters hang or fail together, although each of
them works alone.

Symptoms: a hang without an error that appears only with certain nodes; different lines "NCCL
version" or "cudaDriverVersion"; a plugin that only some nodes load.

When it is reported: it is an error if torch, CUDA's major version or NCCL differ, otherwise a
warning. Different NCCL versions are reported as nccl-version-mismatch.

``gpucheck preflight`` names the hosts that differ from the majority, with both values; every host
has one vote. A tie is reported as a tie. A value that is unknown on a host does not count as a
difference. Shared memory and the limit of locked memory count if one host has less than half of
another. Interfaces and adapters (NCCL_SOCKET_IFNAME, NCCL_IB_HCA) count only if some hosts do not
have the variable at all.

Settings and firmware of the nodes are compared as well: VBIOS, InfoROM, power limit, application
clock, persistence mode, ECC, MIG, PCIe link, waiting repairs and NVLink fabric of the GPUs; the
number of NVSwitches; type, firmware, PCIe link, states, rates and link layers of the RDMA adapters;
the modules of the driver, nvidia_peermem and gdrdrv; as root PCIe payload, read request, relaxed
ordering and ACS. What depends on the GPU is compared
between nodes with one and the same model.

It also names a task whose command line, or a file that it names, was refused while other tasks
accepted theirs, and tasks that presented another token to the store of the pre-flight.

Fix: use the same image or environment on every node, the same firmware and GPU settings, and the
same command line and environment variables for every rank.
"""

from gpucheck.facts.claims import Severity
from gpucheck.findings.form import InPreflight, Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("the nodes or ranks differ in what must be the same"),
    severity=Severity.ERROR,
    family="cluster",
    suppressed_by=("nccl-version-mismatch",),
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=4,
        fix=say(
            "Give every node the same image or environment, the same firmware and GPU settings, "
            "and every rank the same command line and the same variables."
        ),
    ),
)
