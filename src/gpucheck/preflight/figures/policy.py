"""What a site requires of the nodes of a job: ``--require FILE`` or ``--require KEY=VALUE``.

A file is a JSON object, or a line ``KEY=VALUE`` for each requirement, with ``#`` before a comment.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Culprit
from gpucheck.findings import gpu_slow, link_slow, no_nvidia_gpu, rank_missing, requirement_not_met
from gpucheck.preflight.diagnose.naming import blamed, words_of
from gpucheck.preflight.figures.bandwidth import Timed
from gpucheck.preflight.figures.slow import Reading
from gpucheck.preflight.model import Facts, Roster, TaskFacts
from gpucheck.tables.gpu_products import plain_product
from gpucheck.tables.nearest import did_you_mean
from gpucheck.tables.versions import at_least, parse, released

FILE_LIMIT = 64 * 1024


class PolicyError(ValueError):
    """A requirement cannot be understood; the message is one sentence for the user."""


class Requirements(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """Requirements; None is none.

    ``gpus_per_node`` is exact. ``gpu_model`` is the name that the driver reports, or words of it.
    ``min_busbw`` is in GB/s, for the all-reduce over all GPUs of a node. ``within_peers`` and
    ``within_baseline`` say by how many per cent a rate may lie below that of similar GPUs, or below
    this GPU's own baseline.
    """

    gpus_per_node: int | None = None
    gpu_model: str | None = None
    min_driver: str | None = None
    min_torch: str | None = None
    min_cuda: str | None = None
    min_nccl: str | None = None
    min_busbw: float | None = None
    within_peers: float | None = None
    within_baseline: float | None = None

    def __bool__(self) -> bool:
        """Whether there is any requirement."""
        return any(getattr(self, field) is not None for field in self.__struct_fields__)


KEYS = tuple(field.replace("_", "-") for field in Requirements.__struct_fields__)


def parse_file(text: str, name: str = "the file") -> Requirements:
    """Read the requirements in a file.

    Raises:
        PolicyError: it is too long, not understood, or demands something unknown.
    """
    if len(text) > FILE_LIMIT:
        raise PolicyError(f"{name} is longer than {FILE_LIMIT >> 10} KiB: no list of requirements")
    if text.lstrip().startswith("{"):
        try:
            said = msgspec.json.decode(text, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError) as error:
            raise PolicyError(f"{name} is no JSON object: {error}") from error
        return _checked(said, name)
    return parse_lines(text.splitlines(), name)


def parse_lines(lines: Iterable[str], name: str = "--require") -> Requirements:
    """Read ``KEY=VALUE`` lines; text behind ``#`` is a comment.

    Raises:
        PolicyError: a line is something else, or demands something unknown, or a key comes twice.
    """
    said: dict[str, Any] = {}
    for line in lines:
        words = line.partition("#")[0].strip()
        if not words:
            continue
        key, equals, value = (part.strip() for part in words.partition("="))
        if not equals or not value:
            raise PolicyError(f"{name}: {words[:60]!r} is not KEY=VALUE")
        if _plain(key) in map(_plain, said):
            raise PolicyError(f"{name}: {key[:40]} is given twice")
        said[key] = value
    return _checked(said, name)


def joined(parts: Sequence[Requirements]) -> Requirements:
    """Return all requirements together; of several values for a key the last one counts."""
    values: dict[str, Any] = {}
    for one in parts:
        values |= {
            field: value
            for field in one.__struct_fields__
            if (value := getattr(one, field)) is not None
        }
    return Requirements(**values)


def _plain(key: str) -> str:
    return key.lower().replace("_", "-")


def _checked(said: Mapping[str, Any], name: str) -> Requirements:
    plain = {_plain(key): value for key, value in said.items()}
    unknown = next((key for key in plain if key not in KEYS), None)
    if unknown is not None:
        near = did_you_mean(unknown, KEYS)
        raise PolicyError(f"{name}: {unknown[:40]!r} is none of {', '.join(KEYS)}.{near}")
    try:
        found = msgspec.convert(plain, Requirements, strict=False)
    except msgspec.ValidationError as error:
        raise PolicyError(f"{name}: {error}") from error
    for key in _FACTS:
        version = getattr(found, key)
        if version is not None and parse(version) is None:
            raise PolicyError(f"{name}: {_words(key)}={version[:40]} is no version number")
    for key in ("within_peers", "within_baseline"):
        percent = getattr(found, key)
        if percent is not None and not 0 < percent < 100:  # noqa: PLR2004  # per cent
            raise PolicyError(f"{name}: {_words(key)} is a number of per cent between 0 and 100")
    if found.gpus_per_node is not None and found.gpus_per_node < 1:
        raise PolicyError(f"{name}: gpus-per-node is a number of GPUs, 1 or more")
    if found.min_busbw is not None and not 0 < found.min_busbw < float("inf"):
        raise PolicyError(f"{name}: min-busbw is a number of GB/s above 0")
    return found


def violations(
    wanted: Requirements,
    roster: Roster,
    facts: Facts,
    *,
    timed: Sequence[Timed] = (),
    readings: Sequence[Reading] = (),
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
        *_bandwidths(wanted, roster, timed),
        *_rates(wanted, roster, readings),
    ]


def unknown(
    wanted: Requirements,
    facts: Facts,
    *,
    timed: Sequence[Timed] = (),
    readings: Sequence[Reading] = (),
) -> list[str]:
    """Return a sentence for each requirement that some unknown value leaves open."""
    found = []
    for key, value in _FACTS.items():
        who = [one.host for _task, one in sorted(facts.items()) if value(one) is None]
        if getattr(wanted, key) is not None and who:
            found.append(f"{_words(key)} cannot be judged on {words_of(list(dict.fromkeys(who)))}")
    if wanted.gpus_per_node is not None and any(one.devices is None for one in facts.values()):
        found.append("gpus-per-node cannot be judged on every node: torch did not say")
    if wanted.min_busbw is not None and not any(one.nodes == 1 for one in timed):
        found.append("min-busbw cannot be judged: no all-reduce within a node was measured")
    compared = {one.is_of_baseline for one in readings}
    for key, is_of_baseline in (("within_peers", False), ("within_baseline", True)):
        if getattr(wanted, key) is not None and is_of_baseline not in compared:
            found.append(f"{_words(key)} cannot be judged: there is nothing to compare with")
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
                    [one.rank for one in roster.ranks if one.host == host],
                    hosts=[host],
                    evidence=f"{host} has {number or 'no'} GPU{'s' * (number > 1)}, and "
                    f"{wanted.gpus_per_node} are required",
                    data={"required": wanted.gpus_per_node, "found": number},
                )
            )
    return found


def _of_count(number: int, required: int) -> str:
    """Return what another number of GPUs than required is."""
    if number == 0:
        return no_nvidia_gpu.RULE.slug
    return rank_missing.RULE.slug if number < required else requirement_not_met.RULE.slug


def _gpus_by_host(facts: Facts) -> dict[str, int]:
    """Count the GPUs that the tasks of each host see together; unknown hosts are left out."""
    seen: dict[str, set[str] | None] = {}
    for task, one in facts.items():
        if one.devices is None or seen.get(one.host, set()) is None:
            seen[one.host] = None
            continue
        names = {
            device.uuid or device.pci or str((task, at)) for at, device in enumerate(one.devices)
        }
        seen[one.host] = (seen.get(one.host) or set()) | names
    return {host: len(names) for host, names in seen.items() if names is not None}


def _models(wanted: Requirements, roster: Roster) -> list[Culprit]:
    if wanted.gpu_model is None:
        return []
    words = plain_product(wanted.gpu_model).split()
    others: dict[str, list[int]] = {}
    for one in roster.ranks:
        if one.model and not _has_words(plain_product(one.model).split(), words):
            others.setdefault(one.model, []).append(one.rank)
    return [
        blamed(
            requirement_not_met.RULE.slug,
            roster,
            ranks,
            evidence=f"the GPU is {model}, and {wanted.gpu_model} is required",
            data={"required": wanted.gpu_model, "found": model},
        )
        for model, ranks in others.items()
    ]


def _has_words(name: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the name contains the words, in this order and next to each other."""
    return any(list(words) == list(name[at : at + len(words)]) for at in range(len(name)))


_FACTS: dict[str, Callable[[TaskFacts], str | None]] = {
    "min_driver": lambda one: one.driver,
    "min_torch": lambda one: one.torch,
    "min_cuda": lambda one: one.cuda,
    "min_nccl": lambda one: one.nccl,
}


def _versions(wanted: Requirements, roster: Roster, facts: Facts) -> list[Culprit]:
    found = []
    for key, value in _FACTS.items():
        least = getattr(wanted, key)
        older: dict[str, list[int]] = {}
        for task, one in sorted(facts.items()):
            said = value(one)
            if least is not None and said is not None and _is_older(said, least):
                older.setdefault(said, []).append(task)
        for said, tasks in older.items():
            hosts = list(dict.fromkeys(facts[task].host for task in tasks))
            these = set(tasks)
            found.append(
                blamed(
                    requirement_not_met.RULE.slug,
                    roster,
                    [one.rank for one in roster.ranks if one.task in these],
                    hosts=hosts,
                    evidence=f"{_words(key).removeprefix('min-')} {said} on {words_of(hosts)}, and "
                    f"{least} or newer is required",
                    data={"required": least, "found": said},
                )
            )
    return found


def _is_older(said: str, least: str) -> bool:
    """Whether a version is certainly older; a development build is not judged."""
    one, other = released(said), parse(least)
    return one is not None and other is not None and not at_least(one, other)


def _bandwidths(wanted: Requirements, roster: Roster, timed: Sequence[Timed]) -> list[Culprit]:
    """Return the best that all ranks of a node have reached together."""
    if wanted.min_busbw is None:
        return []
    on_node = Counter(one.node for one in roster.ranks)
    best: dict[int, Timed] = {}
    for one in timed:
        node = roster.ranks[one.group[0]].node
        is_whole = one.nodes == 1 and len(one.group) == on_node[node]
        if is_whole and (node not in best or one.busbw > best[node].busbw):
            best[node] = one
    return [
        blamed(
            link_slow.RULE.slug,
            roster,
            one.group,
            evidence=f"an all-reduce of {one.size} B over {len(one.group)} ranks reaches a bus "
            f"bandwidth of {one.busbw:.4g} GB/s, and {wanted.min_busbw:g} are required",
            data={
                "required": wanted.min_busbw, "found": one.busbw,
                "ratio": one.busbw / wanted.min_busbw,
            },
        )
        for one in best.values()
        if one.busbw < wanted.min_busbw
    ]  # fmt: skip


def _rates(wanted: Requirements, roster: Roster, readings: Sequence[Reading]) -> list[Culprit]:
    """Return the best measurement of each rate: a single slow one is no violation."""
    best: dict[tuple[int, str, bool], Reading] = {}
    for one in readings:
        key = (one.rank, one.rate, one.is_of_baseline)
        if key not in best or one.share > best[key].share:
            best[key] = one
    worst: dict[tuple[int, bool], Reading] = {}
    for (rank, _rate, of_baseline), one in best.items():
        percent = wanted.within_baseline if of_baseline else wanted.within_peers
        if percent is None or one.share >= 1 - percent / 100:
            continue
        before = worst.get((rank, of_baseline))
        if before is None or one.share < before.share:
            worst[rank, of_baseline] = one
    return [
        blamed(
            gpu_slow.RULE.slug,
            roster,
            [rank],
            severity=Severity.ERROR,
            confidence=Confidence.CERTAIN,
            evidence=f"{one.rate}: {one.value:.3g}, {one.share:.0%} of {one.usual:.3g}, "
            f"{one.against}; within "
            f"{wanted.within_baseline if of_baseline else wanted.within_peers:g} % is required",
            data={"rate": one.rate, "ratio": one.share, "usual": one.usual},
        )
        for (rank, of_baseline), one in sorted(worst.items())
    ]


def _words(key: str) -> str:
    return key.replace("_", "-")
