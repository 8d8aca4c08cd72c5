"""The limit of locked memory is too low for InfiniBand.

InfiniBand and RoCE (RDMA) need memory that the kernel may not move. A process may lock only as much
as its memlock limit allows, and the usual default is 64 KiB or 8 MiB. NCCL registers its buffers,
several MiB for each connection, so it exceeds the default as soon as it talks to other machines
over InfiniBand.

Symptoms: NCCL says "Call to ibv_reg_mr failed with error Cannot allocate memory" or "ibv_create_cq
failed" at the start of a job on several machines.

When it is reported: only on machines with InfiniBand devices, and as a warning, because a job on
this machine alone is not affected.

``gpucheck preflight`` reports every host with a low limit if the job uses InfiniBand between
several nodes.

Fix: raise the limit for whatever starts the job: the login, the container, or Slurm's daemon.
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
from gpucheck.probes.system import System
from gpucheck.rules import InPreflight, Rule
from gpucheck.views import Gpus

RULE = Rule(
    __name__,
    title="the memlock limit is too low for InfiniBand",
    severity=Severity.WARNING,
    family="cluster",
    preflight=InPreflight(
        exit_class=4,
        fix="Lift the limit of locked memory for whatever starts the ranks: "
        "LimitMEMLOCK=infinity in the unit of slurmd, --ulimit memlock=-1 for a "
        "container.",
    ),
)

_MIB = 1024 * 1024
# A few NCCL connections with their 4 MiB buffers; the defaults of 64 KiB and 8 MiB lie below.
_ENOUGH = 64 * _MIB
_UNLIMITED = -1
_LIFT = (
    "printf '* soft memlock unlimited\\n* hard memlock unlimited\\n' | "
    "sudo tee /etc/security/limits.d/90-memlock.conf"
)


@RULE.check
def check(limits: LimitsOfProcess, system: System, container: Container, gpus: Gpus) -> Judgement:
    """Judge the limit where InfiniBand and a GPU are there."""
    if system.os in ("windows", "macos"):
        return NotApplicable("memlock is a limit of Linux")
    devices = known(limits.infiniband_devices, "limits.infiniband_devices")
    if not devices:
        return NotApplicable("there is no InfiniBand device")
    memlock = known(limits.memlock_bytes, "limits.memlock_bytes")
    if memlock == _UNLIMITED or memlock >= _ENOUGH:
        return Fine("enough memory may be locked")
    if not gpus.present():
        return NotApplicable("there is no NVIDIA GPU")
    size = f"{memlock // _MIB} MiB" if memlock >= _MIB else f"{memlock // 1024} KiB"
    return Hit(
        headline=f"Only {size} of memory may be locked: too little for NCCL over InfiniBand "
        f"({', '.join(devices[:4])})",
        evidence=("limits.memlock_bytes", "limits.infiniband_devices"),
        fixes=(_fix(container, system),),
        confidence=Confidence.LIKELY,
    )


def _fix(container: Container, system: System) -> Fix:
    verify = "ulimit -l"
    if container.runtime in ("docker", "podman"):
        text = f"Start the container with --ulimit memlock=-1 ({container.runtime} run)."
        return Fix(text=text, verify=verify)
    if container.runtime:
        text = "Lift the memlock limit of the container's runtime: LimitMEMLOCK=infinity in the "
        return Fix(text=f"{text}unit of its daemon, then restart it.", verify=verify)
    if system.under_slurm:
        return Fix(
            text="Set LimitMEMLOCK=infinity in the unit of slurmd on every node and restart it; "
            "Slurm passes its own limit on to the jobs.",
            commands=("sudo systemctl edit slurmd", "sudo systemctl restart slurmd"),
            verify=f"srun bash -c '{verify}'",
        )
    return Fix(
        text="Lift the limit, then log in again.",
        commands=(_LIFT,),
        verify=verify,
    )
