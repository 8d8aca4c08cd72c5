"""Texts that point to gpu-memory-held."""

from gpucheck.signatures.base import Cure, Signature, Signs
from gpucheck.signatures.numbers import held_by_others, held_by_processes

_ASKED = r"(?:Tried to allocate (?P<asked>[\d.]{1,9}) (?P<asked_unit>[KMGT]iB)\.? "
"""How much a program asked for: more than the whole GPU has is its own affair."""

SIGNS = Signs(
    slug="gpu-memory-held",
    zh="显存被其他（或已死的）进程占用",
    signatures=(
        Signature(
            name="vllm",
            literal="less than desired gpu memory utilization",
            pattern=r"less than desired GPU memory utilization",
            weight=84,
            says="Another process holds the GPU's memory",
            sample=(
                "ValueError: Free memory on device (3.2/79.1 GiB) on startup "
                "is less than desired GPU memory utilization (0.9, 71.2 GiB)."
            ),
            other="memory utilization",
        ),
        Signature(
            name="full-before",
            literal="error: out of memory",
            pattern=r"CUDA error: out of memory",
            weight=85,
            says="CUDA cannot even start: the pasted nvidia-smi shows that the GPU is full already",
            sample="RuntimeError: CUDA error: out of memory",
            other="CUDA out of memory. Tried to allocate 2.00 GiB",
            beside=("fact:gpu_full",),
            unless=("tried to allocate",),
        ),
        Signature(
            name="process-has",
            literal="has",
            pattern=(
                _ASKED + r"GPU \d{1,3} has a total capac\w{1,4} of (?P<total>[\d.]{1,9}) "
                r"(?P<total_unit>[MG]iB).{0,80})?"
                r"Process \d{1,9} has (?P<held>[\d.]{1,9} [MG]iB) memory in use"
            ),
            weight=84,
            says="Another process holds {held} of the GPU's memory",
            sample=(
                "Process 12345 has 20.31 GiB memory in use. Including non-PyTorch "
                "memory, this process has 1.2 GiB memory in use."
            ),
            other="process 3 has started",
            check=held_by_processes,
        ),
        Signature(
            name="numbers",
            literal="total capacity",
            pattern=(
                _ASKED + r")?\(?GPU \d{1,3}; (?P<total>[\d.]{1,9}) (?P<total_unit>[MG]iB) "
                r"total capacity; (?P<own>[\d.]{1,9}) (?P<own_unit>[KMG]iB|"
                r"bytes) already allocated; (?P<free>[\d.]{1,9}) (?P<free_unit>[KMG]iB|"
                r"bytes) free; (?P<reserved>[\d.]{1,9}) (?P<reserved_unit>[KMG]iB|"
                r"bytes) (?:reserved|cached)"
            ),
            weight=86,
            says=(
                "PyTorch holds {reserved} {reserved_unit} of {total} {total_unit} "
                "and {free} {free_unit} are free: another process holds the "
                "rest"
            ),
            sample=(
                "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.80 "
                "GiB total capacity; 2.10 GiB already allocated; 20.00 MiB "
                "free; 2.40 GiB reserved in total by PyTorch)"
            ),
            other="(GPU 0; 2.00 GiB total capacity)",
            check=held_by_others,
        ),
        Signature(
            name="numbers-new",
            literal="has a total capac",
            pattern=(
                _ASKED + r"GPU \d{1,3} )?has a total capac\w{1,4} of (?P<total>[\d.]{1,9}) "
                r"(?P<total_unit>[MG]iB)(?: of which (?P<free>[\d.]{1,9}) "
                r"(?P<free_unit>[KMG]iB|bytes) is free)?.{0,200}this process has "
                r"(?P<reserved>[\d.]{1,9}) (?P<reserved_unit>[KMG]iB|bytes) memory in use"
            ),
            weight=86,
            says=(
                "This process holds {reserved} {reserved_unit} of {total} "
                "{total_unit}: another process holds the rest"
            ),
            sample=(
                "GPU 0 has a total capacity of 23.64 GiB of which 18.50 MiB "
                "is free. Process 4711 has 20.00 GiB memory in use. Including "
                "non-PyTorch memory, this process has 3.55 GiB memory in use."
            ),
            other="has a total capacity of 2 litres",
            check=held_by_others,
        ),
        Signature(
            name="zombie",
            literal="memory",
            pattern=(
                r"(?:zombie|defunct|left.?over|old|stale|dead|killed) process\w{0,2}.{0,80}(?:gp"
                r"u|memory)|memory.{0,60}(?:not (?:freed|released)|still (?:occupied|"
                r"in use|held|used)).{0,80}"
            ),
            weight=80,
            says="A dead or old process holds the GPU's memory",
            sample="GPU memory is still occupied after the process was killed",
            other="the memory of old processes in cpu",
            beside=("gpu|cuda|nvidia-smi",),
        ),
        Signature(
            name="others-use",
            literal="process",
            pattern=(
                r"(?:another|other) (?:user|process|job)\w{0,3}.{0,40}(?:using|"
                r"use|hold|occup)\w{0,5}.{0,40}(?:gpu|memory)"
            ),
            weight=72,
            says="Another process holds the GPU's memory",
            sample="another process is using the GPU memory",
            other="another process",
        ),
        Signature(
            name="old-processes",
            literal="process",
            pattern=(
                r"(?:zombie|defunct|older|stale|dead|previous|orphan\w{0,3}|"
                r"left.?over|hanging|crashed) (?:process|pid|job|session|kernel|"
                r"worker|run)"
            ),
            weight=84,
            says="A dead or old process holds the GPU's memory",
            sample="an orphaned process of the previous run holds 10 GiB of GPU memory",
            other="process",
            beside=(
                "out of memory|memory",
                "gpu|cuda|nvidia-smi",
            ),
        ),
        Signature(
            name="old-pids",
            literal="pid",
            pattern=(
                r"(?:zombie|defunct|older|stale|dead|previous|orphan\w{0,3}|"
                r"left.?over) pids?\b"
            ),
            weight=84,
            says="A dead or old process holds the GPU's memory",
            sample="the models of the older pids were removed",
            other="pid",
            beside=(
                "out of memory|memory",
                "gpu|cuda|nvidia-smi",
            ),
        ),
        Signature(
            name="unseen",
            literal="nvidia-smi",
            pattern=(
                r"(?:nvidia-smi|memory).{0,80}(?:no process|not (?:show|visible|"
                r"list)|without (?:any )?process|보이지)"
            ),
            weight=82,
            says="Memory is in use and no process is listed",
            sample="nvidia-smi shows 6 GB in use and no process",
            other="nvidia-smi works",
            beside=("out of memory|memory",),
        ),
        Signature(
            name="stays",
            literal="memory",
            pattern=(
                r"(?:memory|显存|vram).{0,60}(?:not (?:being |been )?(?:released|"
                r"freed)|n.t (?:been |being |get )?(?:released|freed)|"
                r"never (?:released|freed)|stays|remains|still (?:in use|used|"
                r"occupied|allocated|full)|already (?:in use|used|full|occupied)|"
                r"占用|未释放|没有释放|不释放)"
            ),
            weight=72,
            says="Memory of the GPU is held by a process that is dead or not yours",
            sample="the memory is not released after ctrl-C",
            other="memory is fine",
            beside=("gpu|cuda|nvidia-smi|显存",),
            unless=("some of your processes",),
        ),
        Signature(
            name="killed",
            literal="kill",
            pattern=(
                r"kill (?:-9|the|all|them|that|this).{0,60}(?:process|pid|python)|"
                r"(?:after|by) killing.{0,40}(?:process|python|it)"
            ),
            weight=66,
            says="An old process holds the GPU's memory",
            sample="after killing the old process it works",
            other="skill",
            beside=(
                "out of memory|memory",
                "gpu|cuda",
            ),
        ),
        Signature(
            name="other-user",
            literal="other",
            pattern=(
                r"(?:other|another|someone else|colleague|different) (?:users?|"
                r"person|people|process|program|job|application|container|model)\w{0,3}.{0,60}(?"
                r":gpu|memory|card|running)"
            ),
            weight=66,
            says="Another process holds the GPU's memory",
            sample="another user is running on the GPU",
            other="other memory",
            beside=("out of memory|memory",),
        ),
        Signature(
            name="free-little",
            literal="free",
            pattern=r"(?:only|just) [\d.]{1,6} ?(?:[MG]i?B) (?:is |are )?(?:free|left|available)",
            weight=62,
            says="Little memory is free before the program starts",
            sample="only 300 MiB are free",
            other="free",
            beside=(
                "out of memory",
                "process|nvidia-smi",
            ),
        ),
        Signature(
            name="zombie-any",
            literal="zombie",
            pattern=r"\bzombies?\b|\bdefunct\b",
            weight=74,
            says="A dead process holds the GPU's memory",
            sample="the parent has become a zombie",
            other="a horror film",
            beside=("mib|memory|nvidia-smi",),
        ),
        Signature(
            name="still-holds",
            literal="hold",
            pattern=(
                r"(?:still|keeps?|kept|continue to|can) (?:hold|retain|occup|"
                r"keep)\w{0,4}.{0,40}(?:gpu |video |v?ram|memory)"
            ),
            weight=72,
            says="Memory of the GPU is held by a process that is dead or not yours",
            sample="after termination it still holds GPU memory",
            other="hold the line",
            unless=("not hold",),
        ),
        Signature(
            name="keeps",
            literal="occupy",
            pattern=r"(?:keeps?|still|continue\w{0,2}) occupy\w{0,4}.{0,40}memory",
            weight=72,
            says="Memory of the GPU is held by a process that is dead or not yours",
            sample="a process keeps occupying GPU memory, occupy",
            other="occupy wall",
        ),
        Signature(
            name="occupied",
            literal="occupied",
            pattern=r"memory.{0,60}occupied|occupied.{0,60}memory",
            weight=72,
            says="Memory of the GPU is held by a process that is dead or not yours",
            sample="GPU memory is still occupied",
            other="the seat is occupied",
            beside=("gpu|cuda",),
        ),
        Signature(
            name="zh-release",
            literal="不释放",
            pattern=r"(?:显存|显卡|gpu).{0,30}不释放",
            weight=76,
            says="显存 is not released: a process holds it",
            sample="kill 之后显存不释放",
            other="不释放",
        ),
        Signature(
            name="fuser",
            literal="fuser",
            pattern=r"fuser -v /dev/nvidia",
            weight=66,
            says="A process that nvidia-smi does not list holds the GPU",
            sample="fuser -v /dev/nvidia* shows the process",
            other="fuser",
        ),
        Signature(
            name="no-such-process",
            literal="no such process",
            pattern=r"no such process",
            weight=70,
            says="A process that is gone still holds the GPU's memory",
            sample="kill -9 says no such process",
            other="process",
            beside=(
                "gpu|nvidia-smi",
                "memory|mib",
            ),
        ),
        Signature(
            name="no-process-holds",
            literal="process",
            pattern=(
                r"\bno (?:running )?process(?:es)?\b.{0,60}(?:using|use|hold|running|shown|listed)|"
                r"(?:don.?t|do not|without) (?:have )?any process\w{0,2}"
            ),
            weight=74,
            says="Memory of the GPU is held although no process is listed",
            sample="no process is shown, and 11 GB are used",
            other="the process is running",
            beside=(
                "mib /|allocated|memory",
                "out of memory|oom problem|cuda oom| oom |allocated by|already allocated|占用",
            ),
        ),
    ),
    cures=(
        Cure(
            text="See who holds the memory, and end what is left over.",
            zh="查看谁占用显存，结束残留的进程。",
            commands=(
                "nvidia-smi",
                "sudo fuser -v /dev/nvidia*",
            ),
        ),
    ),
)
