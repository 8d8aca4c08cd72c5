"""GPUs that the tasks of a node see and none of them uses: they were not tested."""

from gpucheck.preflight.diagnose.naming import counted, words_of
from gpucheck.preflight.model import Device, Facts, Rank, Roster, gpu_number

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
    said, hosts = [], []
    for node, ranks in by_node.items():
        if words := _on(ranks, facts):
            hosts.append(ranks[0].host or f"node {node}")
            said.append(f"{hosts[-1]}: {words}")
    if len(said) <= _MOST_HOSTS:
        return said
    more = counted(len(said) - _MOST_HOSTS, "more host")
    return [
        *said[:_MOST_HOSTS],
        f"{more} with GPUs that have no rank: {words_of(hosts[_MOST_HOSTS:])}",
    ]


def _on(ranks: list[Rank], facts: Facts) -> str:
    """Return which GPUs of a node are left over, in words; "" when none is, or nobody knows."""
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
    left = sorted(index for uuid, index in seen.items() if uuid not in {one.uuid for one in ranks})
    if not left:
        return ""
    names = ", ".join(map(str, left[:_MOST_GPUS]))
    names += f" and {len(left) - _MOST_GPUS} more" if len(left) > _MOST_GPUS else ""
    have = "has" if len(left) == 1 else "have"
    return (
        f"{len(left)} of its {len(seen)} GPUs {have} no rank and got no test (GPU {names}), since "
        f"{counted(len(tasks), 'task')} saw them all and each took one"
    )
