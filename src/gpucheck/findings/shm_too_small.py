"""The shared memory of this machine or container (/dev/shm) is small.

Two things need it: the worker processes of a DataLoader, which pass tensors through it, and NCCL,
which connects the processes of several GPUs through it. Nothing else does, so a program on one GPU
without workers is never affected. Every container gets 64 MB by default.

Symptoms: "RuntimeError: DataLoader worker (pid 123) is killed by signal: Bus error. It is possible
that dataloader's workers are out of shared memory", or from NCCL "Error while creating shared
memory segment /dev/shm/nccl-..." and "No space left on device".

When it is reported: the size alone does not prove a failure. So gpucheck only warns, and only if
several GPUs are visible, which NCCL would connect unless NCCL_SHM_DISABLE=1 is set. With one GPU it
is for information, and the default 64 MB of a container are not even mentioned. Less than 1 MiB is
a warning with one GPU, too: with 64 KiB (perhaps meant as 64 MB) no DataLoader with workers
delivers a batch, and with 256 KiB batches of small images fail. It is an error if a self-test over
NCCL fails and NCCL says that it finds no space there.

``gpucheck preflight`` reports hosts on which several ranks share a /dev/shm that is too small; a
container for each rank is fine.

Fix: start the container with more shared memory.
"""

from gpucheck.advice.nccl_surroundings import enlarge_shared_memory
from gpucheck.derived import Gpus
from gpucheck.derived.surroundings import (
    MIB,
    holds_no_batch,
    in_words,
    nccl_uses_shared_memory,
    shares_too_little,
)
from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.request import Request
from gpucheck.facts.system import Container, Environment, LimitsOfProcess, System
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("the shared memory (/dev/shm) is small"),
    severity=Severity.WARNING,
    family="runtime",
    named_by=("nccl",),
    preflight=InPreflight(
        fix=enlarge_shared_memory(None).text,
    ),
)

_DEFAULT = 64 * MIB
"""The size that a container has by default."""


@RULE.check
def check(
    limits: LimitsOfProcess,
    system: System,
    container: Container,
    gpus: Gpus,
    request: Request,
    environment: Environment,
) -> Judgement:
    """Judge the size if there are GPUs to use."""
    if known(system.os, "system.os") != "linux":
        return NotApplicable(say("only Linux limits the size of shared memory"))
    total = known(limits.shm_total_bytes, "limits.shm_total_bytes")
    if not shares_too_little(total):
        return Fine(say("there is enough shared memory"))
    if request.gpus == 0 or not gpus.present():
        return Fine(say("no GPU here needs it"))
    visible = gpus.visible()
    if not visible:
        return Fine(say("no GPU is visible"))
    several = len(visible) > 1 and nccl_uses_shared_memory(environment.variables)
    if not several and container.runtime and total == _DEFAULT:
        return Fine(
            say(
                "a container has this size by default, and with one GPU only DataLoader workers "
                "use it"
            )
        )
    stops = holds_no_batch(total)
    return Hit(
        headline=_headline(in_words(total), several=several, stops=stops),
        evidence=("limits.shm_total_bytes", *(gpus.seen_by() if several else ())),
        fixes=(enlarge_shared_memory(container.runtime or ""),),
        severity=Severity.WARNING if several or stops else Severity.INFO,
        confidence=Confidence.LIKELY if stops else Confidence.POSSIBLE,
    )


def _headline(size: str, *, several: bool, stops: bool) -> str:
    if several and stops:
        return say(
            "Shared memory (/dev/shm) has {size}: too little for NCCL, and for DataLoader workers, "
            "which cannot pass even one batch of images through it; programs that use neither are "
            "not affected",
            size=size,
        )
    if several:
        return say(
            "Shared memory (/dev/shm) has {size}: too little for NCCL and for DataLoader workers; "
            "programs that use neither are not affected",
            size=size,
        )
    if stops:
        return say(
            "Shared memory (/dev/shm) has {size}: too little for DataLoader workers, which cannot "
            "pass even one batch of images through it; programs without them are not affected",
            size=size,
        )
    return say(
        "Shared memory (/dev/shm) has {size}: too little for DataLoader workers; programs without "
        "them are not affected",
        size=size,
    )
