"""From tasks to ranks: which tasks came, which devices they have, how ranks are numbered."""

from collections import Counter
from collections.abc import Mapping

import msgspec

from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.model import Rank, RankResult, Roster, Status, TaskFacts, gpu_number
from gpucheck.facts import builtins
from gpucheck.language import say

NO_DEVICE = "none"
TOLD_TO_END = "told-to-end"
"""The kind of a rank whose launcher ended its task before the job was judged."""


def assign_ranks(job: JobPlan, came: Mapping[int, TaskFacts]) -> Roster:
    """Number the ranks by node, task and device; by task alone where each task has one rank."""
    nodes = _nodes(job, came)
    shared = Counter(nodes.values())
    owners = _owners(nodes, came)
    counts = {
        task: _count(job, facts, alone=shared[nodes[task]] == 1 or nodes[task] in owners)
        for task, facts in came.items()
    }
    usual = Counter(counts.values()).most_common(1)[0][0] if counts else 1
    order = sorted(range(job.tasks), key=lambda task: (nodes[task], task))
    if usual == 1 and set(counts.values()) <= {1}:
        order = list(range(job.tasks))
    numbers: dict[int, dict[str, int]] = {}
    for task, facts in came.items():
        numbers.setdefault(nodes[task], {}).update(facts.gpu_numbers or {})
    ranks: list[Rank] = []
    on_node: Counter[int] = Counter()
    for task in order:
        node, count = nodes[task], counts.get(task, usual)
        of_task = came.get(task)
        for at in range(count):
            place = Rank(
                rank=len(ranks), task=task, node=node, host=_host(job, came, task),
                local=on_node[node],
            )  # fmt: skip
            if job.cuda:
                at_device = place.local if count == 1 else at
                place = _with_device(place, of_task, at_device, numbers.get(node, {}))
            ranks.append(place)
            on_node[node] += 1
    absent = frozenset(one.rank for one in ranks if one.task not in came)
    return Roster(ranks=tuple(ranks), absent=absent)


def unfit(roster: Roster, came: Mapping[int, TaskFacts], *, cuda: bool) -> dict[int, RankResult]:
    """Return the results of ranks that cannot even take part in the first step."""
    found = {}
    for one in roster.ranks:
        facts = came.get(one.task)
        if facts is None:
            continue
        if facts.problem:
            found[one.rank] = RankResult(
                rank=one.rank, status=_status(facts.kind), phase=facts.phase, kind=facts.kind,
                detail=facts.problem, data={"roots": builtins(facts.roots)}, look=facts.look,
            )  # fmt: skip
        elif cuda and one.device == NO_DEVICE:
            found[one.rank] = RankResult(
                rank=one.rank, status="failed", phase="census", kind="no-device",
                detail=say("torch sees no GPU for it"), data={"roots": builtins(facts.roots)},
            )  # fmt: skip
    return found


def _status(kind: str) -> Status:
    if kind == "silent":
        return "lost"
    if kind == TOLD_TO_END:
        return "stopped"
    if kind in ("timed-out", "unkillable"):
        return "timed-out"
    return "crashed" if kind in ("signal", "exit-status", "no-answer") else "failed"


def _owners(nodes: Mapping[int, int], came: Mapping[int, TaskFacts]) -> set[int]:
    """Return the nodes on which no two tasks see the same GPU."""
    seen: dict[int, list[str | None]] = {}
    unknown = set()
    for task, facts in came.items():
        uuids = [one.uuid for one in facts.devices or ()]
        seen.setdefault(nodes[task], []).extend(uuids)
        if not uuids or not all(uuids):
            unknown.add(nodes[task])
    return {node for node, uuids in seen.items() if len(set(uuids)) == len(uuids)} - unknown


def _count(job: JobPlan, facts: TaskFacts, *, alone: bool) -> int:
    if job.per_task is not None:
        return job.per_task
    return max(1, len(facts.devices or ())) if job.cuda and alone else 1


def _host(job: JobPlan, came: Mapping[int, TaskFacts], task: int) -> str:
    return came[task].host if task in came else job.hosts.get(task, "")


def _nodes(job: JobPlan, came: Mapping[int, TaskFacts]) -> dict[int, int]:
    """Number the nodes: as the launcher does, or by their names in the order of tasks."""
    told = {task: facts.node for task, facts in came.items()}
    names: dict[str, int] = {}
    used = {node for node in told.values() if node is not None}
    free = iter(number for number in range(10 * job.tasks + 10) if number not in used)
    found: dict[int, int] = {}
    for task in range(job.tasks):
        node = told.get(task)
        name = _host(job, came, task)
        if node is None:
            node = names.get(name) if name else None
        if node is None:
            node = next(free)
        if name:
            names.setdefault(name, node)
        found[task] = node
    return found


def _with_device(
    rank: Rank, facts: TaskFacts | None, place: int, numbers: Mapping[str, int]
) -> Rank:
    """Return the rank with the device at this place of its task.

    A task that sees one device uses it, whatever the task's place on the node.
    """
    devices = (facts.devices if facts is not None else None) or []
    if len(devices) == 1:
        place = 0
    if place >= len(devices):
        known = facts is not None and facts.devices is not None
        return msgspec.structs.replace(rank, device=NO_DEVICE if known else f"cuda:{place}")
    one = devices[place]
    return msgspec.structs.replace(
        rank,
        device=f"cuda:{place}",
        gpu=gpu_number(one, numbers),
        pci=one.pci,
        uuid=one.uuid,
        model=one.name,
    )
