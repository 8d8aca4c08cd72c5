"""Texts that point to link-slow."""

from gpucheck.findings import Severity
from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="link-slow",
    zh="GPU 或节点之间的链路过慢",
    signatures=(
        Signature(
            name="bandwidth",
            literal="bandwidth",
            pattern=r"(?:bus ?bw|busbw|algbw|bandwidth).{0,60}(?:low|lower|slow|only|poor|drop)",
            weight=56,
            says="The links between GPUs or nodes are slower than they should be",
            sample="the bus bandwidth is only 2 GB/s",
            other="bandwidth 200",
            beside=("nccl|all_reduce|nvlink|infiniband|p2p",),
            severity=Severity.WARNING,
        ),
    ),
    cures=(
        Cure(
            text="Compare with what the links should carry.",
            zh="与链路应有的带宽比较。",
            commands=(
                "nvidia-smi topo -m",
                "NCCL_DEBUG=INFO ./build/all_reduce_perf -b 8 -e 1G -f 2 -g 2",
            ),
        ),
    ),
)
