"""What to do with each GPU of a pre-flight: what its culprits mean for the GPUs that they name."""

from collections.abc import Sequence

from gpucheck.cluster.judgement import Result
from gpucheck.cluster.pages import words
from gpucheck.engine import GpuVerdict, worst
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Culprit, RankOutcome
from gpucheck.findings import all_rules
from gpucheck.findings.form import GpuWord, OnGpu
from gpucheck.language import in_series, say
from gpucheck.output import gpu_table
from gpucheck.output.words import bracketed, clean, in_line, term

_ROWS = 100  # chosen: the JSON has all
_AT_MOST_WATCHED = OnGpu("watch", say("it may be at fault, which is not certain"))


def verdicts(result: Result) -> list[GpuVerdict]:
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


def counted(result: Result) -> str:
    """Return how many GPUs have each word; "" where no GPU took part."""
    found = verdicts(result)
    return gpu_table.counts(found, is_node=True) if found else ""


def not_kept(result: Result) -> list[GpuVerdict]:
    """Return the GPUs that are not kept, the worst first, without those that nobody can judge."""
    found = [gpu for gpu in verdicts(result) if gpu.verdict not in ("keep", None)]
    return sorted(found, key=lambda gpu: gpu_table.WORST_FIRST.index(gpu.verdict or "keep"))


def lines(result: Result) -> list[str]:
    """Return a line for each GPU that is not kept, the worst first."""
    return [_line(gpu) for gpu in not_kept(result)[:_ROWS]]


def _line(gpu: GpuVerdict) -> str:
    place = in_line([words.host(gpu.host or ""), f"GPU {gpu.index}"])
    why = bracketed(gpu.reason, in_series(gpu.findings))
    word = gpu_table.word(gpu.verdict, is_node=True)
    return say("{gpu}: {word}: {why}", gpu=clean(place), word=word, why=why)
