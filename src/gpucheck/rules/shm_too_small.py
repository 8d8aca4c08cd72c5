"""The shared memory of this machine or container (/dev/shm) is small.

Two things need it: the worker processes of a DataLoader, which pass tensors through it, and NCCL,
which connects the processes of several GPUs through it. Nothing else does, so a program on one GPU
without workers is never affected. Every container gets 64 MB by default.

Symptoms: "RuntimeError: DataLoader worker (pid 123) is killed by signal: Bus error. It is possible
that dataloader's workers are out of shared memory", or from NCCL "Error while creating shared
memory segment /dev/shm/nccl-..." and "No space left on device".

When it is reported: the size alone does not prove a failure. So gpucheck only warns, and only if
several GPUs are visible, which NCCL would connect. With one GPU it is for information, and the
default 64 MB of a container are not even mentioned. It is an error if a self-test over NCCL fails
and NCCL says that it finds no space there.

``gpucheck preflight`` reports hosts on which several ranks share a /dev/shm that is too small; a
container for each rank is fine.

Fix: start the container with more shared memory.
"""

from gpucheck.facts import known
from gpucheck.findings import (
    Confidence,
    Fine,
    Fix,
    Hit,
    Judgement,
    NotApplicable,
    Severity,
)
from gpucheck.probes.container import Container
from gpucheck.probes.limits import LimitsOfProcess
from gpucheck.probes.request import Request
from gpucheck.probes.system import System
from gpucheck.rules import InPreflight, Rule
from gpucheck.views import Gpus

RULE = Rule(
    __name__,
    title="the shared memory (/dev/shm) is small",
    severity=Severity.WARNING,
    family="runtime",
    named_by=("nccl",),
    preflight=InPreflight(
        fix="Start the container with more shared memory: --shm-size=8g or --ipc=host, in "
        "Kubernetes an emptyDir volume with medium: Memory at /dev/shm.",
    ),
)

_MIB = 1024 * 1024
_ENOUGH = 512 * _MIB
_DEFAULT = 64 * _MIB
_UNLIMITED = -1


@RULE.check
def check(
    limits: LimitsOfProcess,
    system: System,
    container: Container,
    gpus: Gpus,
    request: Request,
) -> Judgement:
    """Judge the size only where GPUs are there to be used."""
    if known(system.os, "system.os") != "linux":
        return NotApplicable("shared memory has a size on Linux only")
    total = known(limits.shm_total_bytes, "limits.shm_total_bytes")
    if total == _UNLIMITED or total >= _ENOUGH:
        return Fine("there is enough shared memory")
    if request.gpus == 0 or not gpus.present():
        return Fine("there is no GPU to use it for")
    visible = gpus.visible()
    if not visible:
        return Fine("no GPU is visible")
    several = len(visible) > 1
    if not several and container.runtime and total == _DEFAULT:
        return Fine("the default of every container, and one GPU: only DataLoader workers use it")
    size = f"{total // _MIB} MiB"
    who = "NCCL and DataLoader workers" if several else "DataLoader workers"
    return Hit(
        headline=f"Shared memory (/dev/shm) of {size}: too little for {who}; nothing else uses it",
        evidence=("limits.shm_total_bytes", *gpus.seen_by()),
        fixes=(_fix(container),),
        severity=Severity.WARNING if several else Severity.INFO,
        confidence=Confidence.POSSIBLE,
    )


def _fix(container: Container) -> Fix:
    verify = "df -h /dev/shm"
    if container.runtime in ("docker", "podman"):
        return Fix(
            text="Start the container with more shared memory: add --shm-size=8g, or --ipc=host, "
            f"to {container.runtime} run (in a compose file: shm_size: 8gb).",
            verify=verify,
        )
    if container.runtime == "kubernetes":
        return Fix(
            text="Mount an emptyDir volume with medium: Memory at /dev/shm in the pod.",
            verify=verify,
        )
    if container.runtime:
        return Fix(text="Give the container more shared memory when it starts.", verify=verify)
    return Fix(
        text="Make it larger; the line lasts until the next boot, /etc/fstab makes it permanent.",
        commands=("sudo mount -o remount,size=8G /dev/shm",),
        verify=verify,
    )
