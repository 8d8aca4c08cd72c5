"""Texts that point to ranks-heterogeneous."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="ranks-heterogeneous",
    zh="各节点或 rank 的软件、驱动或设置不一致",
    signatures=(
        Signature(
            name="plugin",
            literal="libnccl-net.so",
            pattern=r"Plugin Path ?: \S{1,120}libnccl-net\.so",
            weight=70,
            says="Only some nodes load an NCCL network plugin",
            sample="NCCL INFO Plugin Path : /opt/hpcx/nccl_rdma_sharp_plugin/lib/libnccl-net.so",
            other="No plugin found (libnccl-net.so)",
            beside=("could not find: libnccl-net.so|no plugin found (libnccl-net.so)",),
        ),
        Signature(
            name="net-mismatch",
            literal="nccl_ignore_net_mismatch",
            pattern=r"NCCL_IGNORE_NET_MISMATCH",
            weight=86,
            code=True,
            says="The nodes have different network devices",
            sample="NCCL_IGNORE_NET_MISMATCH=1",
            other="NET_MISMATCH",
        ),
        Signature(
            name="different-env",
            literal="different",
            pattern=(
                r"(?:nodes|ranks|machines|hosts|instances).{0,60}(?:have|has|"
                r"run|use|with) (?:a )?different (?:driver|cuda|torch|pytorch|"
                r"nccl|gpu|version)"
            ),
            weight=84,
            says="The nodes differ in their software or GPUs",
            sample="the two nodes have different CUDA versions",
            other="different nodes",
        ),
        Signature(
            name="differs-check",
            literal="between ranks",
            pattern=(
                r"(?:mismatch|differ\w{0,4}|inconsistent).{0,60}(?:between|"
                r"across|on) (?:ranks|nodes)"
            ),
            weight=88,
            says="The nodes differ",
            sample="NCCL_ALGO is inconsistent between ranks across nodes",
            other="between ranks",
            unless=("collectives",),
        ),
        Signature(
            name="two-drivers",
            literal="cudadriverversion",
            pattern=r"cudaDriverVersion (?P<version>\d{4,5})\b",
            weight=74,
            says="The nodes have drivers of different CUDA versions",
            sample="NCCL INFO cudaDriverVersion 12020",
            other="cudaDriverVersion unknown",
            distinct="version",
        ),
        Signature(
            name="truncated",
            literal="bytes instead of",
            pattern=r"\b(?:receiving|received) \d{1,12} bytes instead of \d{1,12}\b",
            weight=78,
            says=(
                "Ranks send and expect different sizes: another NCCL, setting or call on one of "
                "them"
            ),
            sample="NCCL WARN Message truncated : received 4096 bytes instead of 256",
            other="wrote 3 bytes instead of 4",
            beside=("nccl|truncated|word:rank|word:ranks",),
        ),
    ),
    cures=(
        Cure(
            text=(
                "Use the same image and the same variables on every node; compare two snapshots."
            ),
            zh="所有节点使用相同的镜像和环境变量；比较两份快照。",
            commands=(
                "gpucheck collect -o node1.json",
                "gpucheck diff node1.json node2.json",
            ),
        ),
    ),
)
