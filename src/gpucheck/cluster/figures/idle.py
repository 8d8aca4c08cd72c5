"""GPUs that the tasks of a node see and none of them uses: they were not tested."""

from gpucheck.cluster.diagnose.naming import words_of
from gpucheck.cluster.model import Device, Facts, Rank, Roster, gpu_number
from gpucheck.language import in_series, say, say_many

_MOST_HOSTS = 4
_MOST_GPUS = 16


def notices(roster: Roster, facts: Facts) -> list[str]:
    """Return a sentence for each host with such GPUs; beyond a few hosts, one for the others.

    Several tasks that see the same GPUs take one each, so with fewer tasks some GPUs are left over.
    A GPU that no task of a node sees was kept from the job on purpose. Nothing is said of a node
    where some task does not know its GPUs.
    """
    by_node: dict[int, list[Rank]] = {}
    for one in roster.ranks:
        by_node.setdefault(one.node, []).append(one)
    said: list[str] = []
    hosts: list[str] = []
    for node, ranks in by_node.items():
        if words := _on(ranks, facts):
            hosts.append(ranks[0].host or say("node {node}", node=node))
            said.append(say("{host}: {words}", host=hosts[-1], words=words))
    if len(said) <= _MOST_HOSTS:
        return said
    more = say_many(
        len(said) - _MOST_HOSTS,
        "{count} more host with GPUs that have no rank: {hosts}",
        "{count} more hosts with GPUs that have no rank: {hosts}",
        hosts=words_of(hosts[_MOST_HOSTS:]),
    )
    return [*said[:_MOST_HOSTS], more]


def _on(ranks: list[Rank], facts: Facts) -> str:
    """Return in words which GPUs of a node are left over. "" if there are none, or nobody knows."""
    tasks = {one.task for one in ranks}
    here = [facts[task] for task in tasks if task in facts]
    numbers = {uuid: at for one in here for uuid, at in (one.gpu_numbers or {}).items()}
    seen: dict[str, int] = {}
    for each in here:
        for device in each.devices or (Device(),):
            number = gpu_number(device, numbers)
            if device.uuid is None or number is None:
                return ""
            seen[device.uuid] = number
    if len(here) < len(tasks):
        return ""
    used = {one.uuid for one in ranks}
    left = sorted(index for uuid, index in seen.items() if uuid not in used)
    if not left:
        return ""
    names = in_series([str(one) for one in left[:_MOST_GPUS]])
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
