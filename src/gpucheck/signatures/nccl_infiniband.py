"""Texts that point to nccl-infiniband."""

from gpucheck.signatures.base import Cure, Signature, Signs

SIGNS = Signs(
    slug="nccl-infiniband",
    zh="InfiniBand/RoCE 出错",
    signatures=(
        Signature(
            name="completion",
            literal="got completion",
            pattern=(
                r"NET/IB ?: Got completion (?:from peer|with).{0,120}(?:error|"
                r"status) ?=?(?P<code>\d{1,3})"
            ),
            weight=89,
            says="InfiniBand: a transfer failed with status {code}",
            sample=(
                "NCCL WARN NET/IB : Got completion from peer 10.1.2.3<40000> "
                "with error 4, opcode 100, len 100, vendor err 81 (Send)"
            ),
            other="NET/IB : Got connection",
        ),
        Signature(
            name="ibv",
            literal="ibv_",
            pattern=(
                r"(?:Call to |wrap_)?ibv_(?:reg_mr\w{0,8}|modify_qp|create_qp|"
                r"create_cq|alloc_pd|open_device|post_send|post_recv|poll_cq|"
                r"query_port|query_gid|get_async_event|reg_dmabuf_mr)\w{0,12} "
                r"failed"
            ),
            weight=88,
            says="InfiniBand verbs fail",
            sample="NCCL WARN Call to ibv_modify_qp failed with error Invalid argument",
            other="ibv_devinfo",
        ),
        Signature(
            name="ibv-no-device",
            literal="net/ib",
            pattern=(
                r"NET/IB ?: (?:Unable to open device|No device found|.{0,60}port "
                r"\d.{0,20}(?:down|not active)|.{0,40}failed)"
            ),
            weight=84,
            says="InfiniBand: a device cannot be used",
            sample="NCCL WARN NET/IB : Unable to open device mlx5_9",
            other="NET/IB : Using [0]mlx5_0:1/IB",
            unless=("net/ib : no device found",),
        ),
        Signature(
            name="async",
            literal="async event",
            pattern=(
                r"NET/IB ?: .{0,40}(?:async fatal event|Got async event ?: "
                r"?(?:port error|GID table change|local|QP|device fatal|path "
                r"mig\w{1,20}|P_Key))"
            ),
            weight=82,
            says="InfiniBand: the port or device reports an error",
            sample="NCCL WARN NET/IB : mlx5_0:1 Got async event : port error",
            other="async event loop",
        ),
        Signature(
            name="ib-disable",
            literal="nccl_ib_disable",
            pattern=(
                r"NCCL_IB_DISABLE\s{0,2}=\s{0,2}1.{0,80}(?:works?|fix|solv|"
                r"help|ok|fine|正常|可以|解决)|(?:works?|fix\w{0,3}|solv\w{0,3}|"
                r"only|正常|解决|fine|without).{0,60}NCCL_IB_DISABLE\s{0,2}=\s{0,2}1"
            ),
            weight=74,
            says=(
                "It works with InfiniBand switched off: the InfiniBand or RoCE network is at fault"
            ),
            sample="with NCCL_IB_DISABLE=1 it works",
            other="export NCCL_IB_DISABLE=1",
        ),
        Signature(
            name="peermem",
            literal="nvidia_peermem",
            pattern=(
                r"(?:nv_peer_mem|nvidia_peermem).{0,60}(?:not loaded|fail|error|"
                r"missing|could not|invalid)"
            ),
            weight=74,
            says="GPUDirect RDMA's kernel module is missing or broken",
            sample="modprobe: ERROR: could not insert nvidia_peermem: failed Invalid argument",
            other="nvidia_peermem loaded",
        ),
        Signature(
            name="peermem-insert",
            literal="could not insert 'nvidia_peermem'",
            pattern=r"could not insert '?(?:nvidia_peermem|nv_peer_mem)",
            weight=80,
            says="GPUDirect RDMA's kernel module cannot be loaded",
            sample="modprobe: ERROR: could not insert 'nvidia_peermem': Invalid argument",
            other="could not insert 'zfs'",
        ),
        Signature(
            name="memlock",
            literal="memlock",
            pattern=(
                r"(?:memlock|RLIMIT_MEMLOCK|ulimit -l|max locked memory).{0,80}(?:too "
                r"low|increase|unlimited|insufficient|64|limit)"
            ),
            weight=86,
            says="The limit on locked memory is too low for InfiniBand",
            sample=(
                "libibverbs: Warning: RLIMIT_MEMLOCK is 65536 bytes. This "
                "will severely limit memory registrations."
            ),
            other="memlock ok",
            beside=("ibv|infiniband|word:roce|word:rocev|net/ib|mlx5|rdma",),
        ),
        Signature(
            name="gid",
            literal="gid",
            pattern=(
                r"NCCL_IB_GID_INDEX.{0,80}(?:wrong|3|fix|set|correct|error)|"
                r"invalid GID|GID (?:index|table).{0,40}(?:error|change|invalid|"
                r"wrong)|local GID.{0,40}remote GID"
            ),
            weight=76,
            says="RoCE: the GID index does not fit",
            sample="Got completion with error, local GID ::ffff:10.0.0.1 remote GID ::",
            other="gid=1000",
            beside=("nccl|ibv|word:roce|word:rocev|mlx5",),
        ),
        Signature(
            name="ucx",
            literal="ucx",
            pattern=r"UCX +(?:ERROR|error).{0,120}(?:rc_|ib_|mlx5|rdma|verbs|ibv)",
            weight=64,
            says="UCX fails on InfiniBand",
            sample="UCX  ERROR ib_mlx5_log.c:177  Transport retry count exceeded on mlx5_0:1/IB",
            other="UCX version",
        ),
        Signature(
            name="retry",
            literal="transport retry count",
            pattern=r"transport retry (?:count|counter) exceeded",
            weight=88,
            says="InfiniBand: the other side does not answer",
            sample="Transport retry count exceeded on mlx5_0:1/IB",
            other="retry count",
        ),
        Signature(
            name="slow-ib",
            literal="infiniband",
            pattern=(
                r"(?:infiniband|roce|rdma|mlx5_\d).{0,80}(?:error|fail|down|"
                r"not active|inactive|broken)"
            ),
            weight=60,
            says="InfiniBand or RoCE is at fault",
            sample="the infiniband port is down",
            other="infiniband is fine",
            beside=("nccl",),
        ),
        Signature(
            name="warn",
            literal="nccl warn net/ib",
            pattern=r"NCCL WARN NET/IB ?: (?!No device found)",
            weight=76,
            says="InfiniBand or RoCE reports an error",
            sample="NCCL WARN NET/IB : Unable to open device mlx5_9",
            other="NCCL INFO NET/IB : Using",
        ),
        Signature(
            name="words",
            literal="mlx5",
            pattern=(
                r"mlx5_\d{1,2}.{0,120}(?:error|fail|timeout|timed out|hang|"
                r"down|invalid|unable)|(?:error|fail|timeout|hang|unable).{0,80}mlx5_"
            ),
            weight=58,
            says="InfiniBand or RoCE is at fault",
            sample="mlx5_0 async event error",
            other="mlx5_0 is up",
        ),
        Signature(
            name="roce-words",
            literal="roce",
            pattern=(
                r"\b(?:RoCE|RDMA|InfiniBand)\b.{0,120}(?:error|fail|timeout|"
                r"timed out|hang|slow|invalid|unable|not work)"
            ),
            weight=56,
            says="InfiniBand or RoCE is at fault",
            sample="over RoCE the job fails",
            other="RoCE v2 is used",
            beside=("nccl|torch|gpu",),
        ),
        Signature(
            name="libibverbs",
            literal="libibverbs",
            pattern=r"libibverbs: (?:Warning|Error)",
            weight=56,
            says="The InfiniBand libraries report an error",
            sample="libibverbs: Warning: couldn't open config directory '/etc/libibverbs.d'.",
            other="libibverbs is there",
        ),
        Signature(
            name="vendor",
            literal="vendor err",
            pattern=r"vendor err \d{1,4}",
            weight=84,
            says="InfiniBand: a transfer failed",
            sample="opcode 0, len 0, vendor err 129",
            other="vendor",
        ),
        Signature(
            name="gdr",
            literal="gpudirect",
            pattern=(
                r"(?:GPU ?Direct|GDR)(?: RDMA)?.{0,60}(?:fail|error|not (?:work|"
                r"available|supported)|hang)"
            ),
            weight=66,
            says="GPUDirect RDMA does not work",
            sample="GPUDirect RDMA fails on this node",
            other="GPUDirect is enabled",
            beside=("nccl",),
        ),
        Signature(
            name="modify-qp",
            literal="modify qp",
            pattern=r"failed to modify QP",
            weight=86,
            says="InfiniBand: a connection cannot be set up",
            sample="Failed to modify QP to RTR: Connection timed out",
            other="modify qp",
        ),
        Signature(
            name="ofi-request",
            literal="net/ofi",
            pattern=r"NET/OFI Request \S{1,40} completed with error",
            weight=80,
            says="The network adapter (libfabric) reports a failed transfer",
            sample="NCCL WARN NET/OFI Request 0x7f completed with error. RC: 5.",
            other="NET/OFI Selected Provider is efa",
        ),
    ),
    cures=(
        Cure(
            text=(
                "Look at the ports, the limit on locked memory and the GID; "
                "test once without InfiniBand."
            ),
            zh="检查端口状态、锁定内存上限和 GID；并关闭 InfiniBand 测试一次。",
            commands=(
                "ibv_devinfo",
                "ulimit -l",
                "NCCL_IB_DISABLE=1 NCCL_DEBUG=INFO torchrun SCRIPT",
            ),
        ),
    ),
)
