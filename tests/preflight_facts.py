"""Small jobs for tests: rosters, facts of tasks, and steps with what they measured."""

from collections.abc import Mapping, Sequence
from typing import Any

from gpucheck.cluster.model import (
    Device,
    Kind,
    Rank,
    RankResult,
    Roster,
    Step,
    StepResult,
    TaskFacts,
)

H200 = "NVIDIA H200"


def uuid(rank: int) -> str:
    """Return the UUID of the GPU of a rank."""
    return f"GPU-{rank:08x}-1111-2222-3333-444455556666"


def gpus(nodes: int, each: int, model: str = H200) -> Roster:
    """Return a job with one GPU a rank, and one task a node."""
    return Roster(
        ranks=tuple(
            Rank(
                rank=node * each + at, task=node, node=node, host=f"node{node}", local=at,
                device=f"cuda:{at}", gpu=at, pci=f"0000:{at + 1:02x}:00.0",
                uuid=uuid(node * each + at), model=model,
            )
            for node in range(nodes)
            for at in range(each)
        )
    )  # fmt: skip


def cpus(nodes: int, each: int) -> Roster:
    """Return a job of CPU processes, one task a rank."""
    return Roster(
        ranks=tuple(
            Rank(rank=r, task=r, node=r // each, host=f"node{r // each}", local=r % each)
            for r in range(nodes * each)
        )
    )


def facts(roster: Roster, **all_of_them: Any) -> dict[int, TaskFacts]:  # noqa: ANN401  # fields
    """Return what the tasks of a job say when all is alike."""
    tasks = sorted({rank.task for rank in roster.ranks})
    fields: dict[str, Any] = {
        "python": "3.11.9", "torch": "2.9.1+cu128", "cuda": "12.8", "cudnn": "9.10.2",
        "nccl": "2.27.5", "driver": "570.124.06", "shm_bytes": 64 << 30, "memlock_bytes": -1,
        "infiniband": [], "variables": {}, **all_of_them,
    }  # fmt: skip
    found = {}
    for task in tasks:
        mine = [rank for rank in roster.ranks if rank.task == task]
        devices = [
            Device(index=rank.gpu, name=rank.model, uuid=rank.uuid, pci=rank.pci)
            for rank in mine
            if rank.model
        ]
        found[task] = TaskFacts(task=task, host=mine[0].host, devices=devices, **fields)
    return found


def measured(
    kind: Kind,
    groups: Sequence[Sequence[int]],
    values: Mapping[int, Mapping[str, float]],
    *,
    number: int = 0,
    repeats: bool = False,
) -> StepResult:
    """Return a step in which every rank passed and measured these values."""
    step = Step(
        number=number, kind=kind, groups=tuple(tuple(group) for group in groups), backend="nccl",
        seconds=15, repeats=repeats,
    )  # fmt: skip
    ranks = [rank for group in groups for rank in group]
    results = {
        rank: RankResult(rank=rank, status="passed", measurements=dict(values.get(rank, {})))
        for rank in ranks
    }
    return StepResult(step=step, results=results)


def alone(rates: Mapping[int, float], name: str = "fp16 TFLOP/s", **more: Any) -> StepResult:  # noqa: ANN401  # of measured()
    """Return a step 0 with one rate of each rank."""
    return measured(
        "alone", [[rank] for rank in rates], {r: {name: v} for r, v in rates.items()}, **more
    )
