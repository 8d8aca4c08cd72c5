"""Texts that point to application-bug: ranks that do not do the same, or are too many."""

from gpucheck.signatures.base import Cure, Signature

SIGNATURES = (
    Signature(
        name="collectives",
        literal="mismatch between collectives",
        pattern=r"detected mismatch between collectives on ranks",
        weight=95,
        says="Ranks call different collectives",
        sample=(
            "RuntimeError: Detected mismatch between collectives on ranks. "
            "Rank 1 is running collective"
        ),
        other="a mismatch",
        stands=True,
        cures=(
            Cure(
                text=(
                    "Let all ranks call the same collectives in the same "
                    "order and with the same shapes; TORCH_DISTRIBUTED_DEBUG=DETAIL "
                    "shows where they part."
                ),
                zh=(
                    "所有 rank 必须以相同的顺序和形状调用相同的集合通信；"
                    "TORCH_DISTRIBUTED_DEBUG=DETAIL 可显示分歧处。"
                ),
                commands=("TORCH_DISTRIBUTED_DEBUG=DETAIL torchrun SCRIPT",),
            ),
        ),
    ),
    Signature(
        name="default-pg",
        literal="process group has not been initialized",
        pattern=r"default process group has not been initialized",
        weight=88,
        says="The program uses torch.distributed before init_process_group",
        sample=(
            "RuntimeError: Default process group has not been initialized, "
            "please make sure to call init_process_group."
        ),
        other="process group",
        stands=True,
        cures=(
            Cure(
                text=(
                    "Call torch.distributed.init_process_group before it "
                    "is used, and start with torchrun."
                ),
                zh="使用前先调用 torch.distributed.init_process_group，并用 torchrun 启动。",
                commands=("torchrun --nproc-per-node=gpu SCRIPT",),
            ),
        ),
    ),
    Signature(
        name="local-rank",
        literal="unrecognized arguments: --local",
        pattern=r"unrecognized arguments: --local[-_]rank",
        weight=88,
        says="The script does not take --local-rank, which this launcher passes",
        sample="error: unrecognized arguments: --local-rank=0",
        other="unrecognized arguments: --foo",
        stands=True,
        cures=(
            Cure(
                text=(
                    "Read LOCAL_RANK from the environment in place of --local-rank, "
                    "and start with torchrun."
                ),
                zh=("从环境变量 LOCAL_RANK 读取，而不是 --local-rank 参数，并用 torchrun 启动。"),
            ),
        ),
    ),
    Signature(
        name="more-ranks",
        literal="invalid device ordinal",
        pattern=r"invalid device ordinal",
        weight=84,
        says="More processes than GPUs, or a device number that does not exist",
        sample="RuntimeError: CUDA error: invalid device ordinal",
        other="ordinal",
        beside=(
            "local_rank|nproc_per_node|nproc-per-node|torchrun|set_device|word:rank|word:ranks",
        ),
        cures=(
            Cure(
                text=(
                    "Start no more processes on a node than it has visible "
                    "GPUs, and give each its LOCAL_RANK."
                ),
                zh="每个节点的进程数不要超过可见 GPU 数，并让每个进程使用自己的 LOCAL_RANK。",
                commands=("torchrun --nproc-per-node=gpu SCRIPT",),
            ),
        ),
    ),
    Signature(
        name="unbalanced-data",
        literal="uneven",
        pattern=(
            r"(?:join|uneven inputs|different number of (?:batches|samples|"
            r"steps)).{0,80}rank"
        ),
        weight=64,
        says="Ranks have different numbers of batches",
        sample="uneven inputs: a different number of batches on each rank",
        other="uneven",
        unless=("fact:cuda_available=true",),
    ),
    Signature(
        name="backend-cpu",
        literal="no backend type associated with device type",
        pattern=r"no backend type associated with device type",
        weight=84,
        says="A collective is called on tensors of a device that the backend does not serve",
        sample="RuntimeError: No backend type associated with device type cpu",
        other="backend type",
        stands=True,
    ),
    Signature(
        name="dense-cuda",
        literal="tensors must be cuda and dense",
        pattern=r"tensors must be CUDA and dense",
        weight=84,
        says="A NCCL collective is called on CPU tensors",
        sample="RuntimeError: Tensors must be CUDA and dense",
        other="tensors",
        stands=True,
    ),
    Signature(
        name="rank-shapes",
        literal="rank == 0",
        pattern=r"if (?:rank|local_rank|args\.rank|global_rank) == 0",
        weight=60,
        code=True,
        says="One rank does something else than the others",
        sample="if rank == 0:",
        other="rank = 0",
        beside=(
            "all_reduce|all_gather|broadcast|barrier",
            (
                "said: hang|hangs|hanging|hung |hung,|stuck|freez|deadlock|"
                "卡住|卡死|100% util|at 100%|util 99%|util 100%|no progress|"
                "never end|never print|never finish|blocks forever|does "
                "not return|never return"
            ),
        ),
        unless=("nothing hangs", "not hang", "n't hang", "without hang"),
    ),
    Signature(
        name="mismatched-collective",
        literal="mismatched collective detected",
        pattern=r"Mismatched collective detected",
        weight=92,
        says="Ranks call different collectives",
        sample=(
            "NCCL WARN Mismatched collective detected, please check your collective calls at "
            "and "
            "around rank 7."
        ),
        other="a mismatch",
        stands=True,
    ),
    Signature(
        name="pg-twice",
        literal="initialize the default process group twice",
        pattern=r"trying to initialize the default process group twice",
        weight=84,
        says="The program calls init_process_group twice",
        sample="RuntimeError: trying to initialize the default process group twice!",
        other="do not initialize the default process group twice",
    ),
)
