"""The tables of a pre-flight that all formats share: the ranks that did not pass, the GPUs."""

from collections.abc import Sequence
from typing import NamedTuple

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import words
from gpucheck.cluster.pages.words import by_status, counted_status, host, population
from gpucheck.engine import GpuVerdict, worst
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Culprit, RankOutcome
from gpucheck.findings import all_rules
from gpucheck.findings.form import GpuWord, OnGpu
from gpucheck.language import in_series, say
from gpucheck.output import gpu_table
from gpucheck.output.words import bracketed, clean, headed, in_line, term

# The ranks of a pre-flight that did not pass, as all formats with a table show them.

_RANK_ROWS, _LONGEST = 100, 300
"""Rows, and characters of a cell. Chosen: the JSON has every rank in full."""


class RankRow(NamedTuple):
    """A row; ``status`` is a word of the report, "" in the row that counts what was left out."""

    rank: str
    host: str = ""
    gpu: str = ""
    status: str = ""
    phase: str = ""
    detail: str = ""


def counted_ranks(result: Result) -> str:
    """Return how many ranks there are, and how many of each state; "" if none is known."""
    groups = by_status(result.preflight.ranks or ())
    if not groups:
        return ""
    counts = [counted_status(len(outcomes), status) for status, outcomes in groups]
    return headed(population(result), in_series(counts))


def rank_heads() -> list[str]:
    """Return what the columns of a row are called."""
    return [say("Rank"), say("Host"), "GPU", say("State"), say("Phase"), say("Detail")]


def rank_rows(result: Result) -> list[RankRow]:
    """Return the ranks that did not pass, the worst first, and how many were left out."""
    groups = by_status(result.preflight.ranks or ())
    others = [outcome for status, outcomes in groups if status != "passed" for outcome in outcomes]
    found = [
        RankRow(
            rank=str(outcome.rank),
            host=host(outcome.host or ""),
            gpu="" if outcome.gpu is None else str(outcome.gpu),
            status=outcome.status,
            phase=outcome.phase,
            detail=clean(outcome.detail, _LONGEST),
        )
        for outcome in others[:_RANK_ROWS]
    ]
    if len(others) > _RANK_ROWS:
        found.append(RankRow(say("{count:,} more", count=len(others) - _RANK_ROWS)))
    return found


# What to do with each GPU of a pre-flight: what its culprits mean for the GPUs that they name.

_GPU_ROWS = 100  # chosen: the JSON has all
_AT_MOST_WATCHED = OnGpu("watch", say("it may be at fault, which is not certain"))


def verdicts_of_gpus(result: Result) -> list[GpuVerdict]:
    """Return a verdict of each GPU that took part, by its first rank; [] of a drill.

    A GPU is kept if its ranks passed every step and no culprit names them.
    """
    if words.drill_words(result):
        return []
    of_gpu: dict[tuple[str | None, str | int], list[RankOutcome]] = {}
    for outcome in result.preflight.ranks or ():
        gpu = outcome.uuid or outcome.gpu
        if gpu is not None:
            of_gpu.setdefault((outcome.host, gpu), []).append(outcome)
    named: dict[int, list[Culprit]] = {}
    for culprit in result.preflight.culprits or ():
        for rank in culprit.ranks or (culprit.rank,):
            if rank is not None:
                named.setdefault(rank, []).append(culprit)
    alike = {culprit.slug for culprit in result.preflight.culprits or ()}
    for ranks in of_gpu.values():
        alike &= {culprit.slug for outcome in ranks for culprit in named.get(outcome.rank, ())}
    is_whole = bool(result.preflight.finished)
    return [_verdict(ranks, named, alike, is_whole=is_whole) for ranks in of_gpu.values()]


def _verdict(
    ranks: Sequence[RankOutcome],
    named: dict[int, list[Culprit]],
    alike: set[str],
    *,
    is_whole: bool,
) -> GpuVerdict:
    """Return what to do with the GPU of these ranks.

    Args:
        ranks: those on the GPU.
        named: the culprits by the ranks that they name.
        alike: the slugs of faults that all GPUs have.
        is_whole: whether every step was done.
    """
    first = ranks[0]
    culprits = [culprit for outcome in ranks for culprit in named.get(outcome.rank, ())]
    found = [on for culprit in culprits if (on := _on_gpu(culprit, first, alike)) is not None]
    missed = next((outcome for outcome in ranks if outcome.status != "passed"), None)
    word: GpuWord | None = None
    if found:
        word, reason = worst(found).word, worst(found).reason
    elif culprits:
        reason = say("a rank or a link is to blame, which need not be the GPU")
    elif missed is not None:
        reason = say("rank {rank}: {status}", rank=missed.rank, status=term(missed.status))
    elif not is_whole:
        reason = say("not every step was done")
    else:
        word, reason = "keep", say("nothing was found")
    return GpuVerdict(
        index=first.gpu, pci_address=first.pci, device_name=first.model, host=first.host,
        verdict=word, reason=reason,
        findings=tuple(dict.fromkeys(culprit.slug for culprit in culprits)),
    )  # fmt: skip


def _on_gpu(culprit: Culprit, rank: RankOutcome, alike: set[str]) -> OnGpu | None:
    """Return what a culprit means for the GPU of a rank; None if it does not blame that GPU.

    An error takes the node out of work where its finding says so: then it takes the GPU, too.
    """
    rule = all_rules().get(culprit.slug)
    if rule is None or rule.on_gpu is None or culprit.gpu is None or culprit.is_link:
        return None
    if (culprit.host, culprit.gpu) != (rank.host, rank.gpu):
        return None
    if rule.on_gpu.is_by_peers and culprit.slug in alike:
        return None
    if culprit.confidence is Confidence.POSSIBLE:
        return _AT_MOST_WATCHED
    if culprit.severity is Severity.ERROR and rule.drains_node:
        return worst((rule.on_gpu, OnGpu("drain", rule.on_gpu.reason)))
    return rule.on_gpu


def counted_gpus(result: Result) -> str:
    """Return how many GPUs have each word; "" where no GPU took part."""
    found = verdicts_of_gpus(result)
    return gpu_table.counts(found, is_node=True) if found else ""


def not_kept(result: Result) -> list[GpuVerdict]:
    """Return the GPUs that are not kept, the worst first, without those that nobody can judge."""
    found = [gpu for gpu in verdicts_of_gpus(result) if gpu.verdict not in ("keep", None)]
    return sorted(found, key=lambda gpu: gpu_table.WORST_FIRST.index(gpu.verdict or "keep"))


def gpu_lines(result: Result) -> list[str]:
    """Return a line for each GPU that is not kept, the worst first."""
    return [_line(gpu) for gpu in not_kept(result)[:_GPU_ROWS]]


def _line(gpu: GpuVerdict) -> str:
    place = in_line([words.host(gpu.host or ""), f"GPU {gpu.index}"])
    why = bracketed(gpu.reason, in_series(gpu.findings))
    word = gpu_table.word(gpu.verdict, is_node=True)
    return say("{gpu}: {word}: {why}", gpu=clean(place), word=word, why=why)
