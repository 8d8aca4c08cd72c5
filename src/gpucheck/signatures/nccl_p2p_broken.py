"""Texts that point to nccl-p2p-broken."""

from gpucheck.signatures.base import Cure, Signature, Signs

_HANGS = (
    (
        " hang|hangs|hanging|hung |hung,|stuck|freez|deadlock|"
        "卡住|卡死|100% util|at 100%|util 99%|util 100%|no progress|"
        "never end|never print|never finish|blocks forever|does "
        "not return|never return"
    ),
)

SIGNS = Signs(
    slug="nccl-p2p-broken",
    zh="GPU 之间的 P2P 传输不可用或数据出错",
    signatures=(
        Signature(
            name="disable-helps",
            literal="nccl_p2p_disable",
            pattern=(
                r"""NCCL_P2P_DISABLE\s{0,2}=\s{0,2}[\"']?1.{0,100}(?:(?<!not )(?<!n't )"""
                r"(?<![\w/.-])(?:work(?:s|ed|ing|arounds?)?|fix(?:es|ed)?|solv\w{1,3}|helps?|"
                r"helped|ok|fine|runs|(?:can|could|will|does|it|they|now) run|trains|"
                r"success\w{0,5}|no (?:hang|problem)s?)(?![\w/-]|\.\w)|正常|可以|解决)|"
                r"(?:(?<!not )(?<!n't )(?<![\w/.-])(?:work(?:s|ed|ing|arounds?)?|fix(?:es|ed)?|"
                r"solv\w{1,3}|runs|fine|helps|cured|only|unless|without it)(?![\w/-]|\.\w)|"
                r"正常|解决).{0,80}NCCL_P2P_DISABLE"
            ),
            weight=82,
            says="It works with peer-to-peer switched off: P2P between these GPUs is broken",
            sample="It runs with NCCL_P2P_DISABLE=1.",
            other="export NCCL_P2P_DISABLE=0",
        ),
        Signature(
            name="page-fault",
            literal="io_page_fault",
            pattern=r"IO_PAGE_FAULT",
            weight=90,
            says="The IOMMU faults the GPUs' peer-to-peer transfers",
            sample=(
                "nvidia 0000:21:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT "
                "domain=0x0011 address=0xd0a00000 flags=0x0030]"
            ),
            other="a page fault",
        ),
        Signature(
            name="dmar",
            literal="dmar:",
            pattern=r"DMAR: (?:\[DMA (?:Write|Read)[^\]]{0,40}\]|DRHD: handling fault)",
            weight=84,
            says="The IOMMU faults the GPUs' peer-to-peer transfers",
            sample="DMAR: [DMA Write NO_PASID] Request device [3b:00.0] fault addr 0x1f0000000",
            other="DMAR: Host address width 46",
            beside=("nvidia|gpu|nccl|cuda",),
        ),
        Signature(
            name="iommu",
            literal="iommu",
            pattern=(
                r"(?:disabl\w{1,4}|turn\w{0,3} off|iommu=(?:off|pt|soft)|intel_iommu=off|"
                r"amd_iommu=off|关闭).{0,60}|iommu.{0,60}(?:off|disabl|cause|"
                r"problem)"
            ),
            weight=74,
            says="The IOMMU breaks peer-to-peer between GPUs",
            sample="disabling IOMMU in the BIOS fixed it",
            other="iommu groups",
            beside=("nccl|gpu|cuda|p2p",),
        ),
        Signature(
            name="acs",
            literal="acs",
            pattern=r"\bACS\b.{0,60}(?:enabled|disable|PCI|bridge|redirect)|ACSCtl: SrcValid\+",
            weight=80,
            says="PCIe ACS breaks peer-to-peer between GPUs",
            sample="ACSCtl: SrcValid+ TransBlk- ReqRedir+",
            other="acs of the car",
            beside=("nccl|gpu|cuda|p2p",),
        ),
        Signature(
            name="corrupt-copy",
            literal="cuda:1",
            pattern=(
                r"""(?:x|tensor|a|t)\.to\(['\"]?(?:cuda:)?1|(?:corrupt|garbage|"""
                r"wrong|differ|zeros?|nan).{0,80}(?:gpu to gpu|between (?:the "
                r")?(?:two )?gpus|peer)"
            ),
            weight=82,
            says="Copies between GPUs arrive wrong",
            sample="copies between the two GPUs are corrupt: garbage between GPUs cuda:1",
            other="cuda:1",
            beside=(
                (
                    "values change|garbage|corrupt|wrong value|different "
                    "value|not the same|tensor([0]|e-45|all zeros"
                ),
            ),
        ),
        Signature(
            name="copy-words",
            literal="gpu",
            pattern=(
                r"(?:copies|copy|copied|transfer\w{0,4}|moved|moving).{0,60}(?:between|"
                r"from one|gpu.to.gpu|to (?:the )?other|to another).{0,60}(?:differ|"
                r"corrupt|wrong|garbage|zero|different|change)|(?:values?|data|"
                r"tensor).{0,40}(?:change|corrupt|wrong|garbage|zero).{0,60}(?:from "
                r"one gpu|between gpus|gpu to gpu|to (?:the )?other gpu|to "
                r"another gpu)"
            ),
            weight=84,
            says="Copies between GPUs arrive wrong",
            sample="values change when a tensor goes from one GPU to the other",
            other="copy the file to the gpu machine",
            beside=("differ|corrupt|wrong|garbage|zero|change",),
        ),
        Signature(
            name="peer-copy",
            literal="peer",
            pattern=(
                r"cudaMemcpyPeer.{0,120}(?:does not match|corrupt|wrong|mismatch|"
                r"differ)|(?:simpleP2P|p2pBandwidth\w{0,20}).{0,80}(?:fail|"
                r"error|mismatch|verification)"
            ),
            weight=76,
            says="Peer-to-peer copies arrive wrong",
            sample="cudaMemcpyPeer gives a buffer that does not match",
            other="peer review",
        ),
        Signature(
            name="hang-consumer",
            literal="nccl",
            pattern=(
                r"(?:freez|hang|hung|stuck|never (?:prints|ends|finishes)|卡住|"
                r"100% ?util)\w{0,4}.{0,120}|100%"
            ),
            weight=62,
            says="A hang of several GPUs right after NCCL's set-up: P2P is the usual cause",
            sample="NCCL all_reduce_perf hangs, GPU-Util 100%",
            other="NCCL INFO",
            beside=(
                "100%|freez|word:hang|word:hangs|word:hanging|word:hung|stuck|never |卡住",
                "all_reduce_perf|init complete",
                (
                    "rtx 4090|rtx 3090|rtx a6000|rtx 4080|rtx 3080|gtx 1080|"
                    "rtx 2080|titan|a5000|rtx 5090|rtx 6000"
                ),
            ),
        ),
        Signature(
            name="all-reduce-hang",
            literal="all_reduce_perf",
            pattern=r"all_reduce_perf",
            weight=64,
            says="nccl-tests hang on one machine: P2P is the usual cause",
            sample="./build/all_reduce_perf -b 8 -e 128M -f 2 -g 2",
            other="all_reduce",
            beside=_HANGS,
            unless=(
                "net/ib",
                "mpirun",
                "hosts",
                "nodes",
                "srun",
                "nvswitch",
                "nvls",
            ),
        ),
        Signature(
            name="peer-unsupported",
            literal="peer access is not supported",
            pattern=r"peer access is not supported between these two devices",
            weight=60,
            says="The GPUs cannot access one another",
            sample="CUDA error: peer access is not supported between these two devices",
            other="peer access",
        ),
        Signature(
            name="init-complete-hang",
            literal="init complete",
            pattern=r"Init COMPLETE",
            weight=60,
            says="NCCL is set up and then nothing moves: P2P is the usual cause",
            sample="NCCL INFO comm 0x5581a0 rank 0 nranks 2 cudaDev 0 busId 7000 - Init COMPLETE",
            other="Init failed",
            beside=(
                (
                    " hang|hangs|hanging|hung |hung,|stuck|freez|deadlock|"
                    "卡住|卡死|100% util|at 100%|util 99%|util 100%|no progress|"
                    "never end|never print|never finish|blocks forever|does "
                    "not return|never return"
                ),
                "via p2p|p2p.cc",
            ),
            unless=(
                "net/ib/",
                "nnodes",
                "mpirun",
                "watchdog",
            ),
        ),
        Signature(
            name="p2p-words",
            literal="p2p",
            pattern=(
                r"\bP2P\b.{0,80}(?:hang|wrong|corrupt|fail|broken|not work|"
                r"garbage|nan|incorrect|stuck|problem|disabl)"
            ),
            weight=66,
            says="Peer-to-peer between the GPUs does not work",
            sample="with P2P the sums are wrong",
            other="P2P is enabled",
            beside=(
                "gpu|nccl|cuda|vllm|all-reduce|all_reduce|allreduce",
                (
                    "word:hang|word:hangs|word:hanging|wrong|"
                    "corrupt|fail|broken|not work|garbage|word:nan|"
                    "incorrect|stuck|problem|disabl"
                ),
            ),
        ),
        Signature(
            name="p2p-words-before",
            literal="p2p",
            pattern=r"(?:disabl|hang|wrong|corrupt|broken).{0,60}\bP2P\b",
            weight=66,
            says="Peer-to-peer between the GPUs does not work",
            sample="disabling P2P makes it work",
            other="P2P is enabled",
            beside=(
                "gpu|nccl|cuda|vllm|all-reduce|all_reduce|allreduce",
                (
                    "word:hang|word:hangs|word:hanging|hung|stuck|wrong|corrupt|broken|garbage|"
                    "word:nan|work|fix|solv|help|cure|crash|fail|卡"
                ),
            ),
        ),
        Signature(
            name="env-set",
            literal="nccl_p2p_disable",
            pattern=r"""NCCL_P2P_DISABLE\s{0,2}=\s{0,2}[\"']?1""",
            weight=54,
            says="Peer-to-peer is switched off by hand",
            sample="export NCCL_P2P_DISABLE=1",
            other="NCCL_P2P_DISABLE=0",
            beside=(
                (
                    "word:hang|word:hangs|word:hanging|word:hung|stuck|freez|"
                    "deadlock|garbage|corrupt|word:nan|illegal|timeout|timed out|卡"
                ),
            ),
            unless=(
                "does not help",
                "doesn't help",
                "no effect",
                "still hang",
                "still stuck",
                "not help",
                "same error",
                "did not help",
            ),
        ),
        Signature(
            name="via-p2p",
            literal="via p2p",
            pattern=r"via P2P/(?:IPC|direct|CUMEM|indirect)",
            weight=56,
            says="NCCL uses peer-to-peer, and then nothing moves",
            sample="NCCL INFO Channel 00 : 0[1000] -> 1[2000] via P2P/IPC",
            other="via SHM",
            beside=_HANGS,
            unless=(
                "net/ib/",
                "nnodes",
                "watchdog",
                "via net",
            ),
        ),
        Signature(
            name="dataparallel",
            literal="dataparallel",
            pattern=(
                r"DataParallel.{0,120}(?:hang|freez|stuck|nan|wrong|diverg|"
                r"does not (?:learn|converge)|loss)"
            ),
            weight=52,
            says="Work on several GPUs hangs or computes wrong values: P2P is the usual cause",
            sample="DataParallel hangs on two GPUs",
            other="DataParallel works",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Test without peer-to-peer; then switch off the IOMMU in the "
                "BIOS (or iommu=pt) and PCIe ACS."
            ),
            zh="先关闭 P2P 测试；然后在 BIOS 中关闭 IOMMU（或 iommu=pt）和 PCIe ACS。",
            commands=(
                "NCCL_P2P_DISABLE=1 torchrun SCRIPT",
                "nvidia-smi topo -m",
            ),
        ),
    ),
)
