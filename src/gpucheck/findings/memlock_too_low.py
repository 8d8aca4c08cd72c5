"""The limit of locked memory is too low for InfiniBand.

InfiniBand and RoCE (RDMA) need memory that the kernel may not move. A process may lock only as much
as its memlock limit allows, and the usual default is 64 KiB or 8 MiB. NCCL registers its buffers,
several MiB for each connection, so it exceeds the default as soon as it talks to other machines
over InfiniBand.

Symptoms: NCCL says "Call to ibv_reg_mr failed with error Cannot allocate memory" or "ibv_create_cq
failed" at the start of a job on several machines.

When it is reported: only on machines with InfiniBand devices, and as a warning, because a job on
this machine alone is not affected. A process with CAP_IPC_LOCK, such as root's outside of
containers, is not bound by the limit, so nothing is reported.

``gpucheck preflight`` reports every host with a low limit if the job uses InfiniBand between
several nodes.

Fix: raise the limit for whatever starts the job: the login, the container, or Slurm's daemon.
"""

from gpucheck.advice.nccl_surroundings import lift_memlock
from gpucheck.derived import Gpus
from gpucheck.derived.surroundings import in_words, locks_too_little
from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.system import Container, LimitsOfProcess, System
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.language import in_series, say

RULE = Rule(
    __name__,
    title=say("the memlock limit is too low for InfiniBand"),
    severity=Severity.WARNING,
    family="cluster",
    preflight=InPreflight(
        exit_class=4,
        fix=lift_memlock(None, under_slurm=None).text,
    ),
)

_MOST_NAMED = 4  # chosen: they only show that there is InfiniBand


@RULE.check
def check(limits: LimitsOfProcess, system: System, container: Container, gpus: Gpus) -> Judgement:
    """Judge the limit on a machine that has InfiniBand and a GPU."""
    if system.os in ("windows", "macos"):
        return NotApplicable(say("only Linux has the memlock limit"))
    devices = known(limits.infiniband_devices, "limits.infiniband_devices")
    if not devices:
        return NotApplicable(say("there is no InfiniBand device"))
    memlock = known(limits.memlock_bytes, "limits.memlock_bytes")
    if not locks_too_little(memlock):
        return Fine(say("enough memory may be locked"))
    if limits.may_exceed_memlock:
        return Fine(say("this process may exceed the limit: it has CAP_IPC_LOCK"))
    if not gpus.present():
        return NotApplicable(say("there is no NVIDIA GPU"))
    return Hit(
        headline=say(
            "Only {limit} of memory can be locked, which is too little for NCCL over InfiniBand "
            "({devices})",
            limit=in_words(memlock),
            devices=_some(devices),
        ),
        evidence=("limits.memlock_bytes", "limits.infiniband_devices"),
        fixes=(lift_memlock(container.runtime or "", under_slurm=system.under_slurm),),
        confidence=Confidence.LIKELY,
    )


def _some(devices: list[str]) -> str:
    """Return the first devices, and how many more there are."""
    named, more = in_series(devices[:_MOST_NAMED]), len(devices) - _MOST_NAMED
    return say("{those} and {count} more", those=named, count=more) if more > 0 else named
