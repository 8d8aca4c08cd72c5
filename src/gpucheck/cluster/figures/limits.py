"""Limits, links and devices of the nodes that make collectives fail or slow."""

from collections import Counter
from collections.abc import Collection, Iterable

from gpucheck.cluster.diagnose.naming import blamed, words_of
from gpucheck.cluster.model import Device, Facts, Rank, Roster, gpu_number
from gpucheck.derived.gpu_labels import lost_links
from gpucheck.derived.surroundings import (
    in_words,
    locks_too_little,
    nccl_uses_shared_memory,
    shares_too_little,
)
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Culprit, LinksDown, SharedGpu
from gpucheck.findings.limits import MEMLOCK_TOO_LOW, SHM_TOO_SMALL
from gpucheck.findings.links import NVLINK_DOWN
from gpucheck.findings.nccl import NCCL_DUPLICATE_GPU
from gpucheck.language import in_series, say, say_many

_MOST_HOSTS = 4
"""Chosen: one notice has a sentence for so many hosts, and the names of the others."""
_MOST_GPUS = 16
"""Chosen: nearly every node has no more; of others the rest is a number."""
_ACTIVE = "ACTIVE"


def notices(roster: Roster, facts: Facts) -> list[str]:
    """Return a sentence for each host with such GPUs; beyond a few hosts, one for the others.

    Several tasks that see the same GPUs take one each, so with fewer tasks some GPUs are left over.
    A GPU that no task of a node sees was kept from the job on purpose. Nothing is said of a node
    where some task does not know its GPUs.
    """
    by_node: dict[int, list[Rank]] = {}
    for rank in roster.ranks:
        by_node.setdefault(rank.node, []).append(rank)
    sentences: list[str] = []
    hosts: list[str] = []
    for node, ranks in by_node.items():
        if words := _on(ranks, facts):
            hosts.append(ranks[0].host or say("node {node}", node=node))
            sentences.append(say("{host}: {words}", host=hosts[-1], words=words))
    if len(sentences) <= _MOST_HOSTS:
        return sentences
    more = say_many(
        len(sentences) - _MOST_HOSTS,
        "{count} more host with GPUs that have no rank: {hosts}",
        "{count} more hosts with GPUs that have no rank: {hosts}",
        hosts=words_of(hosts[_MOST_HOSTS:]),
    )
    return [*sentences[:_MOST_HOSTS], more]


def _on(ranks: list[Rank], facts: Facts) -> str:
    """Return in words which GPUs of a node are left over. "" if there are none, or nobody knows."""
    tasks = {rank.task for rank in ranks}
    here = [facts[task] for task in tasks if task in facts]
    numbers = {
        uuid: at for task_facts in here for uuid, at in (task_facts.gpu_numbers or {}).items()
    }
    seen: dict[str, int] = {}
    for each in here:
        for device in each.devices or (Device(),):
            number = gpu_number(device, numbers)
            if device.uuid is None or number is None:
                return ""
            seen[device.uuid] = number
    if len(here) < len(tasks):
        return ""
    used = {rank.uuid for rank in ranks}
    left = sorted(index for uuid, index in seen.items() if uuid not in used)
    if not left:
        return ""
    names = in_series([str(index) for index in left[:_MOST_GPUS]])
    if len(left) > _MOST_GPUS:
        names = say("{names} and {count} more", names=names, count=len(left) - _MOST_GPUS)
    return say_many(
        len(left),
        "{count} of its {all} GPUs has no rank and got no test (GPU {names}), since {tasks} saw "
        "them all and each took one",
        "{count} of its {all} GPUs have no rank and got no test (GPU {names}), since {tasks} saw "
        "them all and each took one",
        all=len(seen),
        names=names,
        tasks=say_many(len(tasks), "{count} task", "{count} tasks"),
    )


def culprits(roster: Roster, facts: Facts, *, collective_failed: bool) -> list[Culprit]:
    """Return the culprits that the facts of the nodes show.

    A link that is down is an error only where a collective failed as well.
    """
    grave = Severity.ERROR if collective_failed else Severity.WARNING
    return [
        *shared_gpus(roster),
        *nvlinks_down(roster, facts, grave),
        *locked_memory(roster, facts),
        *shared_memory(roster, facts),
    ]


def shared_gpus(roster: Roster) -> list[Culprit]:
    """Return the GPUs that several ranks use, which NCCL refuses."""
    found = []
    for ranks in roster.sharing():
        first = roster.ranks[ranks[0]]
        found.append(
            blamed(
                NCCL_DUPLICATE_GPU.slug,
                roster,
                ranks,
                evidence=say(
                    "ranks {ranks} use one GPU, {uuid} ({model})",
                    ranks=words_of(ranks),
                    uuid=first.uuid,
                    model=first.model or say("of an unknown model"),
                ),
                data=SharedGpu(uuid=first.uuid),
            )
        )
    return found


def nvlinks_down(roster: Roster, facts: Facts, severity: Severity) -> list[Culprit]:
    """Return the GPUs with fewer NVLinks up than most of their model in the job."""
    by_model: dict[str, dict[int, int]] = {}
    for member in roster.ranks:
        links = _links(facts, member)
        if links is not None and member.model:
            by_model.setdefault(member.model, {})[member.rank] = links
    return [
        blamed(
            NVLINK_DOWN.slug,
            roster,
            [rank],
            severity=severity,
            evidence=say_many(
                lost.links,
                "{count} NVLink up, {usual} on {others} others of its model ({model})",
                "{count} NVLinks up, {usual} on {others} others of its model ({model})",
                usual=lost.usual,
                others=lost.votes,
                model=model,
            ),
            data=LinksDown(links=lost.links, usual=lost.usual),
        )
        for model, active in by_model.items()
        for rank, lost in lost_links(active, switched=None).items()
    ]


def _links(facts: Facts, rank: Rank) -> int | None:
    task = facts.get(rank.task)
    return None if task is None or rank.uuid is None else (task.nvlinks or {}).get(rank.uuid)


def locked_memory(roster: Roster, facts: Facts) -> list[Culprit]:
    """Return the hosts whose limit is too low for InfiniBand, in jobs of several nodes only."""
    if len({rank.node for rank in roster.ranks}) < 2:  # noqa: PLR2004  # nodes
        return []
    low = {
        task: task_facts.memlock_bytes
        for task, task_facts in facts.items()
        if task_facts.memlock_bytes is not None
        and locks_too_little(task_facts.memlock_bytes)
        and any(port.upper().endswith(_ACTIVE) for port in task_facts.infiniband or ())
    }
    if not low:
        return []
    evidence = say(
        "only {size} of memory may be locked on {hosts}, too little for NCCL over InfiniBand",
        size=in_words(min(low.values())), hosts=words_of(_hosts(facts, low)),
    )  # fmt: skip
    return [_warned(MEMLOCK_TOO_LOW.slug, roster, facts, low, Confidence.LIKELY, evidence)]


def shared_memory(roster: Roster, facts: Facts) -> list[Culprit]:
    """Return the hosts with little shared memory on which NCCL joins several ranks by it.

    One rank in each container, with the usual 64 MiB, is fine.
    """
    on_host = Counter(
        rank.host
        for rank in roster.ranks
        if rank.device.startswith("cuda") and rank.rank not in roster.absent
    )
    low = {
        task: task_facts.shm_bytes
        for task, task_facts in facts.items()
        if task_facts.shm_bytes is not None
        and shares_too_little(task_facts.shm_bytes)
        and on_host[task_facts.host] > 1
        and nccl_uses_shared_memory(task_facts.variables)
    }
    if not low:
        return []
    evidence = say(
        "shared memory (/dev/shm) of {size} on {hosts}, where NCCL joins several ranks through it",
        size=in_words(min(low.values())), hosts=words_of(_hosts(facts, low)),
    )  # fmt: skip
    return [_warned(SHM_TOO_SMALL.slug, roster, facts, low, Confidence.POSSIBLE, evidence)]


def _warned(
    slug: str, roster: Roster, facts: Facts, tasks: Collection[int], confidence: Confidence,
    evidence: str,
) -> Culprit:  # fmt: skip
    """Return the hosts of these tasks as one cause."""
    return blamed(
        slug, roster, [rank.rank for rank in roster.ranks if rank.task in tasks],
        hosts=[facts[task].host for task in tasks],
        severity=Severity.WARNING, confidence=confidence, evidence=evidence,
    )  # fmt: skip


def _hosts(facts: Facts, tasks: Iterable[int]) -> list[str]:
    return list(dict.fromkeys(facts[task].host for task in tasks))
