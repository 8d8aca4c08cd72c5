"""A simulated job, which is judged as a real one is, from its first step to its report."""

import functools

import msgspec
import preflight_samples
from fabric_support import Fabric, Results, hung, passed
from rules_support import TABLES

from gpucheck.cluster import launcher
from gpucheck.cluster.attendance import Heard
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.judgement import Judgement, Result
from gpucheck.cluster.model import Rank, RankResult, Roster, Step, TaskFacts
from gpucheck.facts.preflight import Look, PhaseSeconds
from gpucheck.language import say

NODES, PER_NODE, BAD = 8, 8, 37
_STUCK = Look(
    state="uninterruptible", zygote="sleeping", cpu_seconds=0.4, wait_seconds=0.0,
    wchan="os_acquire_rwlock_write", syscall=16,
    kernel=("os_acquire_rwlock_write", "nvidia_ioctl", "__x64_sys_ioctl", "do_syscall_64"),
    python=("torch/distributed/distributed_c10d.py:2897 all_reduce", "worker/trial.py:61 run"),
)  # fmt: skip
"""What a supervisor sees of a process that waits in the driver of the GPU."""


@functools.cache
def hang() -> Result:
    """Eight nodes of eight H100; one rank stops in the driver while NCCL opens its connections."""
    ranks = preflight_samples.ranks(NODES, PER_NODE)
    roster = Roster(
        ranks=tuple(
            Rank(
                rank=one.rank, task=one.task, node=one.task, host=one.host or "",
                local=one.rank % PER_NODE, device=one.device, gpu=one.gpu, pci=one.pci,
                uuid=one.uuid, model=one.model,
            )
            for one in ranks
        )
    )  # fmt: skip
    facts = {
        task: TaskFacts(
            task=task, host=f"gpu-{task:04d}", address=f"10.0.0.{task + 1}", python="3.11.7",
            torch="2.9.1+cu130", cuda="13.0", nccl="2.27.7", driver="580.65.06",
        )
        for task in range(NODES)
    }  # fmt: skip
    fabric = Fabric(roster, _alone, _stops_in_the_driver)
    place = msgspec.structs.replace(launcher.alone({}), launcher="slurm", tasks=NODES)
    plan = JobPlan(tasks=NODES, cuda=True)
    judgement = Judgement(plan, place, TABLES, local=lambda: None, clock=lambda: 81.6)
    heard = Heard(roster=roster, facts=facts, history=fabric.history)
    while (step := judgement.next_step(heard)) is not None:
        fabric.do(step)
    judgement.finish(heard)
    assert judgement.result is not None
    return judgement.result


def _alone(step: Step, group: tuple[int, ...]) -> Results | None:
    if step.kind != "alone":
        return None
    return {
        rank: msgspec.structs.replace(
            result, seconds=3.1,
            measurements={"fp32 TFLOP/s": 51.0 + rank % 7 / 10, "copy GB/s": 52.3 + rank % 5 / 10},
        )
        for rank, result in passed(group).items()
    }  # fmt: skip


def _stops_in_the_driver(step: Step, group: tuple[int, ...]) -> Results | None:
    if BAD not in group:
        return None
    waited: PhaseSeconds = {"start": 0.3, "set-device": 0.6, "store": 0.1}
    return {
        **{rank: _waits(one, {**waited, "connect": 2.0 + rank % 4 / 10, "enter": step.seconds - 3})
           for rank, one in hung(group).items()},
        BAD: RankResult(
            rank=BAD, status="timed-out", phase="connect", kind="timed-out", order=len(group),
            detail=say(
                "{phase} did not end within {seconds:.0f} s", phase="connect", seconds=step.seconds
            ),
            phase_seconds={**waited, "connect": step.seconds - 1}, look=_STUCK,
        ),
    }  # fmt: skip


def _waits(result: RankResult, seconds: PhaseSeconds) -> RankResult:
    return msgspec.structs.replace(result, seconds=60.0, phase_seconds=seconds)
