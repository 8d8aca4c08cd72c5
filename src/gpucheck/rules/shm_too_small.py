"""The shared memory of this machine or container (/dev/shm) is small.

Two things need it: the worker processes of a DataLoader, which pass tensors through it, and NCCL,
which joins the processes of several GPUs through it. Nothing else does, so a program on one GPU
without workers never notices. 64 MB is what every container gets by default.

What one sees: "RuntimeError: DataLoader worker (pid 123) is killed by signal: Bus error. It is
possible that dataloader's workers are out of shared memory", or from NCCL "Error while creating
shared memory segment /dev/shm/nccl-..." and "No space left on device".

Since the size alone proves no failure, gpucheck only warns, and only where several GPUs are
visible, which NCCL would join unless NCCL_SHM_DISABLE=1 is set. With one GPU it is information, and
the 64 MB that a container has by default are not even mentioned.

When a self-test over NCCL goes wrong and NCCL says that it finds no room there, it is an error.

``gpucheck preflight`` says so of the hosts where several ranks share what is too small; a container
for each rank is fine.

Cure: start the container with more shared memory.
"""

from gpucheck.facts import known
from gpucheck.findings import (
    Confidence,
    Fine,
    Hit,
    Judgement,
    NotApplicable,
    Severity,
)
from gpucheck.fixes.nccl_surroundings import enlarge_shared_memory
from gpucheck.probes.container import Container
from gpucheck.probes.environment import Environment
from gpucheck.probes.limits import LimitsOfProcess
from gpucheck.probes.request import Request
from gpucheck.probes.system import System
from gpucheck.rules import Rule
from gpucheck.views import Gpus
from gpucheck.views.process_limits import (
    MIB,
    in_words,
    nccl_uses_shared_memory,
    shares_too_little,
)

RULE = Rule(
    title="the shared memory (/dev/shm) is small",
    severity=Severity.WARNING,
    family="runtime",
)

_DEFAULT = 64 * MIB
"""What every container gets."""


@RULE.check
def check(
    limits: LimitsOfProcess,
    system: System,
    container: Container,
    gpus: Gpus,
    request: Request,
    environment: Environment,
) -> Judgement:
    """Judge the size only where GPUs are there to be used."""
    if known(system.os, "system.os") != "linux":
        return NotApplicable("shared memory has a size on Linux only")
    total = known(limits.shm_total_bytes, "limits.shm_total_bytes")
    if not shares_too_little(total):
        return Fine("there is enough shared memory")
    if request.gpus == 0 or not gpus.present():
        return Fine("there is no GPU to use it for")
    visible = gpus.visible()
    if not visible:
        return Fine("no GPU is visible")
    several = len(visible) > 1 and nccl_uses_shared_memory(environment.variables)
    if not several and container.runtime and total == _DEFAULT:
        return Fine("the default of every container, and one GPU: only DataLoader workers use it")
    who = "NCCL and DataLoader workers" if several else "DataLoader workers"
    return Hit(
        headline=f"Shared memory (/dev/shm) of {in_words(total)}: too little for {who}; nothing "
        "else uses it",
        evidence=("limits.shm_total_bytes", *gpus.seen_by()),
        fixes=(enlarge_shared_memory(container.runtime or ""),),
        severity=Severity.WARNING if several else Severity.INFO,
        confidence=Confidence.POSSIBLE,
    )
