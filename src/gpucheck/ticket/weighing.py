"""Which finding of a text comes first, and which of them are echoes of it.

The rule of combination:

1. A finding is as strong as the strongest claim that is made for it. A message claims with its own
   strength (names, points, fits, symptom). Facts that a text shows claim with the strength that
   their confidence has: at most "points", since they may be of another machine or another day.
2. Among findings of the same strength the one weighs most for which facts and a message agree,
   then the one with the higher tie-break. What weighs most comes first, else the first by name.
3. A finding that is weaker than the strongest one is an echo of it; so is one whose rule yields to
   a finding that weighs at least as much. At most three findings stand.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gpucheck.findings import Confidence, Finding, Severity
from gpucheck.messages.form import Strength
from gpucheck.messages.matcher import Match
from gpucheck.probes.pasted import Pasted
from gpucheck.rules import all_rules

_OF_FACTS = {
    Confidence.CERTAIN: Strength.POINTS.level,
    Confidence.LIKELY: Strength.POINTS.level,
    Confidence.POSSIBLE: Strength.SYMPTOM.level,
}
_MOST = 3


class Weight(NamedTuple):
    """How a finding compares with others of the same text."""

    level: int
    """Of its strength."""
    agreed: bool
    """Whether facts show it, and a message at least points to it."""
    tie_break: int

    @property
    def place(self) -> tuple[int, bool, int]:
        """The key that sorts the weightiest first."""
        return -self.level, not self.agreed, -self.tie_break


def weigh(findings: Sequence[Finding], matches: Sequence[Match]) -> dict[str, Weight]:
    """Return the weight of each finding."""
    weights: dict[str, Weight] = {}
    for finding in findings:
        ranks = [match.message.rank for match in matches if match.slug == finding.slug]
        said, tie_break = max(ranks, default=(0, 0))
        by_facts = _OF_FACTS[finding.confidence] if _rests_on_facts(finding) else 0
        agreed = by_facts > 0 and said >= Strength.POINTS.level
        decides = tie_break if said >= by_facts else 0
        weights[finding.slug] = Weight(max(said, by_facts), agreed, decides)
    return weights


def _rests_on_facts(finding: Finding) -> bool:
    return any(not one.fact.startswith(f"{Pasted.name}.signs") for one in finding.evidence)


def echoes(findings: Sequence[Finding], weights: Mapping[str, Weight]) -> dict[str, str]:
    """Return by which finding another is silenced: its cause, or the strongest one."""
    standing = [one for one in findings if one.severity is Severity.ERROR]
    silenced: dict[str, str] = {}
    by_slug = {one.slug: one for one in standing}
    for finding in findings:
        for cause in all_rules()[finding.slug].yields_to:
            if cause in by_slug and weights[cause] >= weights[finding.slug]:
                silenced[finding.slug] = cause
                break
    left = [one.slug for one in standing if one.slug not in silenced]
    left.sort(key=lambda slug: (weights[slug].place, slug))
    for at, slug in enumerate(left):
        if at >= _MOST or weights[slug].level < weights[left[0]].level:
            silenced[slug] = left[0]
    return silenced
