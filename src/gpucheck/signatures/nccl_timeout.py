"""Texts that point to nccl-timeout."""

from gpucheck.signatures.base import Cure, Signature, Signs

_SEVERAL_RANKS = (
    (
        "nccl|ddp|distributeddataparallel|torchrun|all_reduce|"
        "allreduce|all-reduce|multi-gpu|multi gpu|dist.barrier|"
        "distributed.barrier|accelerate launch|deepspeed|torch.distributed|"
        "fsdp|tensor-parallel|tensor_parallel|nproc_per_node|"
        "nproc-per-node|多卡|dataparallel"
    ),
)

SIGNS = Signs(
    slug="nccl-timeout",
    zh="集合通信超时",
    signatures=(
        Signature(
            name="watchdog",
            literal="watchdog caught collective operation timeout",
            pattern=(
                r"watchdog caught collective operation timeout: WorkNCCL\(.{0,60}OpType=(?P<op>\w"
                r"{1,30})"
            ),
            weight=58,
            says="A collective ({op}) timed out",
            sample=(
                "[Rank 2] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, "
                "OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) "
                "ran for 600123 milliseconds before timing out."
            ),
            other="watchdog",
        ),
        Signature(
            name="failed-timed",
            literal="nccl operations have failed or timed out",
            pattern=r"Some NCCL operations have failed or timed out",
            weight=46,
            says="A collective failed or timed out",
            sample="Some NCCL operations have failed or timed out.",
            other="NCCL operations",
        ),
        Signature(
            name="heartbeat",
            literal="processgroupnccl's watchdog got stuck",
            pattern=r"watchdog got stuck for \d{1,6} seconds|Heartbeat monitor timed out",
            weight=50,
            says="NCCL's watchdog is stuck",
            sample=(
                "ProcessGroupNCCL's watchdog got stuck for 480 seconds without "
                "making progress in monitoring enqueued collectives."
            ),
            other="watchdog",
        ),
        Signature(
            name="barrier",
            literal="monitored barrier",
            pattern=(
                r"(?:failed to pass|timed out in) monitored ?barrier|monitored "
                r"barrier.{0,80}(?:timed out|failed|timeout)"
            ),
            weight=52,
            says="A barrier timed out",
            sample="RuntimeError: Rank 0 failed to pass monitored barrier in 1800000 ms",
            other="barrier",
        ),
        Signature(
            name="timed-recv",
            literal="timed out waiting",
            pattern=r"timed out waiting \d{1,9}ms for (?:recv|send) operation to complete",
            weight=50,
            says="A collective timed out",
            sample=(
                "RuntimeError: [../third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:84] "
                "Timed out waiting 1800000ms for recv operation to complete"
            ),
            other="timed out",
        ),
        Signature(
            name="exec-timeout",
            literal="execution timeout",
            pattern=r"NCCL.{0,60}(?:execution timeout|timed? ?out)",
            weight=54,
            says="NCCL timed out",
            sample="NCCL communicator execution timeout",
            other="execution timeout of SQL",
        ),
        Signature(
            name="generic",
            literal="timeout(ms)=",
            pattern=r"Timeout\(ms\)=\d{3,9}\) ran for",
            weight=42,
            says="A collective timed out",
            sample="Timeout(ms)=600000) ran for 600050 milliseconds before timing out.",
            other="timeout",
        ),
        Signature(
            name="context",
            literal="gpu",
            pattern=(
                r"(?<!nothing )(?<!not )(?<!not a )(?<!no )(?<!never )(?<!n.t )"
                r"(?:hang|hung|stuck|freez|deadlock|卡住|卡死|no progress)"
            ),
            weight=38,
            says="Work on several GPUs hangs",
            sample="multi-gpu training hangs",
            other="gpu",
            beside=_SEVERAL_RANKS,
        ),
        Signature(
            name="context-hang",
            literal="hang",
            pattern=r"(?<!nothing )(?<!not )(?<!not a )(?<!no )(?<!never )(?<!n.t )\bhang",
            weight=40,
            says="Work on several GPUs hangs",
            sample="the job hangs in all_reduce",
            other="change",
            beside=_SEVERAL_RANKS,
        ),
        Signature(
            name="context-stuck",
            literal="stuck",
            pattern=r"\bstuck\b",
            weight=40,
            says="Work on several GPUs hangs",
            sample="stuck at barrier",
            other="duck",
            beside=_SEVERAL_RANKS,
        ),
        Signature(
            name="context-zh",
            literal="卡住",
            pattern=r"卡住",
            weight=40,
            says="Work on several GPUs hangs",
            sample="多卡训练卡住",
            other="显卡",
            beside=_SEVERAL_RANKS,
        ),
        Signature(
            name="timeout-words",
            literal="timed out",
            pattern=(
                r"(?:collective|all_?reduce|barrier|broadcast|all_?gather|nccl).{0,80}timed out"
            ),
            weight=44,
            says="A collective timed out",
            sample="the all_reduce timed out",
            other="timed out",
        ),
        Signature(
            name="timeout-ms",
            literal="timeout",
            pattern=(
                r"(?:collective|all_?reduce|barrier|broadcast|all_?gather|nccl|watchdog)"
                r"(?:(?!respect|honou?r|ignor|config|default|longer).){0,80}(?<!_)time-?out"
                r"(?!\s?[=(]|\s(?:that|argument|param|setting|value|option|is set|of \d|to \d))"
            ),
            weight=42,
            says="A collective timed out",
            sample="an NCCL timeout after 30 minutes",
            other="timeout of http",
        ),
        Signature(
            name="zh-timeout",
            literal="超时",
            pattern=r"超时",
            weight=42,
            says="A collective timed out",
            sample="NCCL 通信超时",
            other="时间",
            beside=_SEVERAL_RANKS,
        ),
        Signature(
            name="freezes",
            literal="freez",
            pattern=r"\bfreez",
            weight=40,
            says="Work on several GPUs hangs",
            sample="it freezes in DDP",
            other="frozen",
            beside=_SEVERAL_RANKS,
        ),
        Signature(
            name="deadlock",
            literal="deadlock",
            pattern=r"deadlock",
            weight=42,
            says="Work on several GPUs hangs",
            sample="a deadlock in all_reduce",
            other="lock",
            beside=_SEVERAL_RANKS,
        ),
        Signature(
            name="hung",
            literal="hung",
            pattern=r"\bhung\b",
            weight=40,
            says="Work on several GPUs hangs",
            sample="the ranks are hung",
            other="hungry",
            beside=_SEVERAL_RANKS,
        ),
        Signature(
            name="watchdog-any",
            literal="watchdog",
            pattern=(
                r"(?:NCCL|collective|ProcessGroup).{0,80}watchdog|watchdog.{0,80}(?:NCCL|"
                r"collective|timeout|terminated)"
            ),
            weight=50,
            says="NCCL's watchdog ended the job",
            sample="Process group watchdog thread terminated with exception",
            other="watchdog timer",
        ),
        Signature(
            name="seqnum",
            literal="worknccl(",
            pattern=r"WorkNCCL\((?:SeqNum|OpType)",
            weight=50,
            says="A collective did not end",
            sample="WorkNCCL(SeqNum=12, OpType=ALLGATHER",
            other="WorkNCCL",
        ),
        Signature(
            name="last-enqueued",
            literal="last enqueued",
            pattern=r"last enqueued (?:NCCL )?work",
            weight=52,
            says="A collective did not end",
            sample="last enqueued NCCL work: 120, last completed NCCL work: 118.",
            other="enqueued",
        ),
    ),
    cures=(
        Cure(
            text="Find the rank that did not come: read each rank's own output, and its stack.",
            zh="找出没有到达的 rank：查看每个 rank 自己的输出和调用栈。",
            commands=(
                "export TORCH_NCCL_TRACE_BUFFER_SIZE=20000 TORCH_NCCL_DUMP_ON_TIMEOUT=1",
                "NCCL_DEBUG=INFO torchrun SCRIPT",
                "py-spy dump --pid PID",
            ),
        ),
    ),
)
