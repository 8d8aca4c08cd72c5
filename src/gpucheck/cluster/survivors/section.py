"""The result of a run that lost task 0, from what the survivors know."""

from gpucheck.cluster.spans import unpack
from gpucheck.cluster.survivors.conclusion import Conclusion, Loss
from gpucheck.facts.preflight import Culprit, Preflight, RankOutcome
from gpucheck.findings import rank_missing
from gpucheck.language import say


def section(loss: Loss, found: Conclusion) -> Preflight:
    """Return what is known; launcher, time limits and the like are for the caller to add."""
    ranks = unpack(loss.roll.ranks)
    culprits = []
    if found.confidence is not None:
        culprits.append(
            Culprit(
                slug=rank_missing.RULE.slug,
                confidence=found.confidence,
                rank=ranks[0] if ranks else None,
                ranks=ranks,
                host=loss.host,
                hosts=(loss.host,),
                evidence=found.sentence,
            )
        )
    outcomes = [
        *(RankOutcome(rank=rank, task=0, host=loss.host, status="lost") for rank in ranks),
        *(
            RankOutcome(rank=rank, task=task, host=one.host, device=device, status="stopped")
            for task, one in loss.met.items()
            for rank, device in one.ranks.items()
        ),
    ]
    return Preflight(
        world_size=loss.roll.world_size or None,
        nodes=loss.roll.hosts,
        culprits=culprits,
        ranks=sorted(outcomes, key=lambda one: one.rank),
        steps=[],
        finished=False,
        stopped_because=say("task 0 was lost before it had judged the job"),
        sources={"*": say("gpucheck preflight")},
    )
