"""A rank that one step shows to have failed."""

import msgspec

from gpucheck.cluster.model import RankResult
from gpucheck.facts.claims import Confidence, Fix


class DirectEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """A rank that one step shows to have failed, and how certain that is."""

    rank: int
    slug: str
    evidence: str
    confidence: Confidence = Confidence.CERTAIN
    result: RankResult
    is_seen: bool = False
    """Whether it was seen, not inferred: that it passes later takes nothing of it back."""
    is_shared: bool = False
    """Whether all ranks of which the same is said have it from one cause."""
    fixes: tuple[Fix, ...] = ()
    """What to do, if not what the finding says."""
