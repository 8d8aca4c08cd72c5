"""Do the nodes of a job meet what their site requires (``interface/requirements.py``)?"""

from collections import Counter
from collections.abc import Callable, Sequence

from gpucheck.cluster.diagnose.naming import blamed, words_of
from gpucheck.cluster.figures.bandwidth import Timed
from gpucheck.cluster.figures.drift import fabrics
from gpucheck.cluster.figures.slow import RateReading
from gpucheck.cluster.model import Facts, Roster, TaskFacts
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Culprit, NotAsRequired, RateTooLow
from gpucheck.findings.gpu_presence import NO_NVIDIA_GPU
from gpucheck.findings.gpu_speed import GPU_SLOW
from gpucheck.findings.links import LINK_SLOW
from gpucheck.findings.ranks import RANK_MISSING, REQUIREMENT_NOT_MET
from gpucheck.interface.requirements import Requirements, key_of
from gpucheck.language import say, say_many
from gpucheck.tables.gpus import plain_product
from gpucheck.tables.versions import at_least, parse, released

_SEVERAL = ", "
"""Between the NVLink domains of one host (``task/node_settings.py``)."""


def violations(
    wanted: Requirements,
    roster: Roster,
    facts: Facts,
    *,
    timed: Sequence[Timed] = (),
    readings: Sequence[RateReading] = (),
) -> list[Culprit]:
    """Return an entry for each requirement and each value that violates it.

    An unknown value violates nothing; ``unknown`` lists those.

    Args:
        wanted: the demands.
        roster: the ranks.
        facts: of each task.
        timed: the bandwidths that were measured.
        readings: the rates that were measured, with what each is compared with.
    """
    return [
        *_counts(wanted, roster, facts),
        *_models(wanted, roster),
        *_versions(wanted, roster, facts),
        *_fabrics(wanted, roster, facts),
        *_bandwidths(wanted, roster, timed),
        *_rates(wanted, roster, readings),
    ]


def unknown(
    wanted: Requirements,
    facts: Facts,
    *,
    ranks: int = 0,
    timed: Sequence[Timed] = (),
    readings: Sequence[RateReading] = (),
) -> list[str]:
    """Return a sentence for each requirement that some unknown value leaves open.

    ``ranks`` is how many the job has.
    """
    found: list[str] = []
    for key, value in _FACTS.items():
        who = [
            task_facts.host
            for _task, task_facts in sorted(facts.items())
            if value(task_facts) is None
        ]
        if getattr(wanted, key) is not None and who:
            hosts = words_of(list(dict.fromkeys(who)))
            found.append(say("{key} cannot be judged on {hosts}", key=key_of(key), hosts=hosts))
    if wanted.gpus_per_node is not None and any(
        task_facts.devices is None for task_facts in facts.values()
    ):
        found.append(
            say("gpus-per-node cannot be judged on every node: torch did not report its GPUs")
        )
    if wanted.min_busbw is not None and not any(
        len(measurement.group) == ranks for measurement in timed
    ):
        found.append(say("min-busbw cannot be judged: no all-reduce of the whole job was measured"))
    if wanted.one_fabric and (who := _without_fabric(facts)):
        found.append(
            say(
                "one-fabric cannot be judged on {hosts}: NVML names no NVLink domain",
                hosts=words_of(who),
            )
        )
    compared = {reading.is_of_baseline for reading in readings}
    for key, is_of_baseline in (("within_peers", False), ("within_baseline", True)):
        if getattr(wanted, key) is not None and is_of_baseline not in compared:
            found.append(
                say("{key} cannot be judged: there is nothing to compare with", key=key_of(key))
            )
    return found


def _counts(wanted: Requirements, roster: Roster, facts: Facts) -> list[Culprit]:
    """Return the nodes with another number of GPUs: fewer means missing ranks, none no GPU."""
    if wanted.gpus_per_node is None:
        return []
    found = []
    for host, number in _gpus_by_host(facts).items():
        if number != wanted.gpus_per_node:
            found.append(
                blamed(
                    _of_count(number, wanted.gpus_per_node),
                    roster,
                    [rank.rank for rank in roster.ranks if rank.host == host],
                    hosts=[host],
                    evidence=_of_gpus(host, number, wanted.gpus_per_node),
                    data=NotAsRequired(required=wanted.gpus_per_node, found=number),
                )
            )
    return found


def _of_gpus(host: str, number: int, required: int) -> str:
    if not number:
        return say("{host} has no GPU, and {required} are required", host=host, required=required)
    return say_many(
        number,
        "{host} has {count} GPU, and {required} are required",
        "{host} has {count} GPUs, and {required} are required",
        host=host,
        required=required,
    )


def _of_count(number: int, required: int) -> str:
    """Return what another number of GPUs than required is."""
    if number == 0:
        return NO_NVIDIA_GPU.slug
    return RANK_MISSING.slug if number < required else REQUIREMENT_NOT_MET.slug


def _gpus_by_host(facts: Facts) -> dict[str, int]:
    """Count the GPUs that the tasks of each host see together; unknown hosts are left out."""
    seen: dict[str, set[str] | None] = {}
    for task, task_facts in facts.items():
        if task_facts.devices is None or seen.get(task_facts.host, set()) is None:
            seen[task_facts.host] = None
            continue
        names = {
            device.uuid or device.pci or str((task, at))
            for at, device in enumerate(task_facts.devices)
        }
        seen[task_facts.host] = (seen.get(task_facts.host) or set()) | names
    return {host: len(names) for host, names in seen.items() if names is not None}


def _models(wanted: Requirements, roster: Roster) -> list[Culprit]:
    if wanted.gpu_model is None:
        return []
    words = plain_product(wanted.gpu_model).split()
    others: dict[str, list[int]] = {}
    for rank in roster.ranks:
        if rank.model and not _has_words(plain_product(rank.model).split(), words):
            others.setdefault(rank.model, []).append(rank.rank)
    return [
        blamed(
            REQUIREMENT_NOT_MET.slug,
            roster,
            ranks,
            evidence=say(
                "the GPU is {model}, and {required} is required",
                model=model,
                required=wanted.gpu_model,
            ),
            data=NotAsRequired(required=wanted.gpu_model, found=model),
        )
        for model, ranks in others.items()
    ]


def _has_words(name: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the name contains the words, in this order and next to each other."""
    return any(list(words) == list(name[at : at + len(words)]) for at in range(len(name)))


def _without_fabric(facts: Facts) -> list[str]:
    known = {facts[task].host for task, domain in fabrics(facts).items() if domain is not None}
    return sorted({task_facts.host for task_facts in facts.values()} - known)


def _fabrics(wanted: Requirements, roster: Roster, facts: Facts) -> list[Culprit]:
    """Return the hosts that are in another NVLink domain than most, or in several."""
    if not wanted.one_fabric:
        return []
    domains = {
        facts[task].host: fabric for task, fabric in fabrics(facts).items() if fabric is not None
    }
    if len(set(domains.values())) <= 1 and not any(
        _SEVERAL in domain for domain in domains.values()
    ):
        return []
    usual = Counter(domains.values()).most_common(1)[0][0]
    return [
        blamed(
            REQUIREMENT_NOT_MET.slug,
            roster,
            [rank.rank for rank in roster.ranks if rank.host == host],
            hosts=[host],
            evidence=say(
                "{host} is in the NVLink domain {domain} and most hosts are in {usual}, but all "
                "must be in one",
                host=host,
                domain=domain,
                usual=usual,
            ),
            data=NotAsRequired(required="one-fabric", found=domain),
        )
        for host, domain in domains.items()
        if domain != usual or _SEVERAL in domain
    ]


_FACTS: dict[str, Callable[[TaskFacts], str | None]] = {
    "min_driver": lambda task_facts: task_facts.driver,
    "min_torch": lambda task_facts: task_facts.torch,
    "min_cuda": lambda task_facts: task_facts.cuda,
    "min_nccl": lambda task_facts: task_facts.nccl,
}


def _versions(wanted: Requirements, roster: Roster, facts: Facts) -> list[Culprit]:
    found = []
    for key, value in _FACTS.items():
        least = getattr(wanted, key)
        older: dict[str, list[int]] = {}
        for task, task_facts in sorted(facts.items()):
            own_version = value(task_facts)
            if least is not None and own_version is not None and _is_older(own_version, least):
                older.setdefault(own_version, []).append(task)
        for version, tasks in older.items():
            hosts = list(dict.fromkeys(facts[task].host for task in tasks))
            affected = set(tasks)
            found.append(
                blamed(
                    REQUIREMENT_NOT_MET.slug,
                    roster,
                    [rank.rank for rank in roster.ranks if rank.task in affected],
                    hosts=hosts,
                    evidence=say(
                        "{what} {version} on {hosts}, and {least} or newer is required",
                        what=key_of(key).removeprefix("min-"),
                        version=version,
                        hosts=words_of(hosts),
                        least=least,
                    ),
                    data=NotAsRequired(required=least, found=version),
                )
            )
    return found


def _is_older(version: str, least: str) -> bool:
    """Whether a version is certainly older; a development build is not judged."""
    release, other = released(version), parse(least)
    return release is not None and other is not None and not at_least(release, other)


def _bandwidths(wanted: Requirements, roster: Roster, timed: Sequence[Timed]) -> list[Culprit]:
    """Return the whole job, and each whole node, whose best all-reduce was slower than required."""
    if wanted.min_busbw is None:
        return []
    on_node = Counter(rank.node for rank in roster.ranks)
    best: dict[int | None, Timed] = {}
    for measurement in timed:
        node = roster.ranks[measurement.group[0]].node if measurement.nodes == 1 else None
        wholes = len(roster.ranks) if node is None else on_node[node]
        is_whole = len(measurement.group) == wholes
        if is_whole and (node not in best or measurement.busbw > best[node].busbw):
            best[node] = measurement
    return [
        blamed(
            LINK_SLOW.slug,
            roster,
            timed.group,
            evidence=say(
                "an all-reduce of {size} B over {ranks} ranks reaches a bus bandwidth of "
                "{rate:.4g} GB/s, and {required:g} are required",
                size=timed.size, ranks=len(timed.group), rate=timed.busbw,
                required=wanted.min_busbw,
            ),
            data=NotAsRequired(
                required=wanted.min_busbw, found=timed.busbw, ratio=timed.busbw / wanted.min_busbw
            ),
        )
        for timed in best.values()
        if timed.busbw < wanted.min_busbw
    ]  # fmt: skip


def _rates(wanted: Requirements, roster: Roster, readings: Sequence[RateReading]) -> list[Culprit]:
    """Return the best measurement of each rate: a single slow one is no violation."""
    best: dict[tuple[int, str, bool], RateReading] = {}
    for reading in readings:
        key = (reading.rank, reading.rate, reading.is_of_baseline)
        if key not in best or reading.share > best[key].share:
            best[key] = reading
    worst: dict[tuple[int, bool], RateReading] = {}
    for (rank, _rate, of_baseline), best_reading in best.items():
        percent = wanted.within_baseline if of_baseline else wanted.within_peers
        if percent is None or best_reading.share >= 1 - percent / 100:
            continue
        before = worst.get((rank, of_baseline))
        if before is None or best_reading.share < before.share:
            worst[rank, of_baseline] = best_reading
    return [
        blamed(
            GPU_SLOW.slug,
            roster,
            [rank],
            severity=Severity.ERROR,
            confidence=Confidence.CERTAIN,
            evidence=say(
                "{rate}: {value:.3g}, {share:.0%} of {usual:.3g}, {reference}; within "
                "{required:g} % is required",
                rate=reading.rate,
                value=reading.value,
                share=reading.share,
                usual=reading.usual,
                reference=reading.against,
                required=wanted.within_baseline if of_baseline else wanted.within_peers,
            ),
            data=RateTooLow(rate=reading.rate, ratio=reading.share, usual=reading.usual),
        )
        for (rank, of_baseline), reading in sorted(worst.items())
    ]
