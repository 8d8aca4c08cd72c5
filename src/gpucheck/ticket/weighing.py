"""How much each finding of a text weighs, and which of them are echoes of the weightiest."""

from collections.abc import Mapping, Sequence

from gpucheck.findings import Confidence, Finding, Severity
from gpucheck.probes.pasted import Pasted
from gpucheck.rules import all_rules
from gpucheck.ticket.search import Match

_OF_FACTS = {Confidence.CERTAIN: 84.0, Confidence.LIKELY: 74.0, Confidence.POSSIBLE: 56.0}
_BOTH = 8.0
"""What facts add to a text that names the same cause; a mere symptom adds nothing to facts."""
_NAMES_IT = 70
_FURTHER = 0.5
"""What each further signature of one slug adds."""
_MOST_FURTHER = 3
_ECHO = 12.0
"""A finding that weighs less than the weightiest by more than this is taken for its echo."""
_MOST = 3


def weigh(findings: Sequence[Finding], matches: Sequence[Match]) -> dict[str, float]:
    """Return the weight of each finding: of its signs, of its facts, or of both."""
    weights: dict[str, float] = {}
    for finding in findings:
        own = {m.signature.name: m.signature.weight for m in matches if m.slug == finding.slug}
        said = 0.0
        if own:
            said = max(own.values()) + _FURTHER * min(len(own) - 1, _MOST_FURTHER)
        by_facts = _rests_on_facts(finding)
        seen = _OF_FACTS[finding.confidence] if by_facts else 0.0
        agree = _BOTH if seen and said >= _NAMES_IT else 0.0
        weights[finding.slug] = max(said, seen) + agree
    return weights


def _rests_on_facts(finding: Finding) -> bool:
    return any(not one.fact.startswith(f"{Pasted.name}.signs") for one in finding.evidence)


def echoes(findings: Sequence[Finding], weights: Mapping[str, float]) -> dict[str, str]:
    """Return by which finding another is silenced: its cause, or one that weighs far more."""
    standing = [one for one in findings if one.severity is Severity.ERROR]
    silenced: dict[str, str] = {}
    by_slug = {one.slug: one for one in standing}
    for finding in findings:
        for cause in all_rules()[finding.slug].yields_to:
            if cause in by_slug and weights[cause] >= weights[finding.slug]:
                silenced[finding.slug] = cause
                break
    left = [one.slug for one in standing if one.slug not in silenced]
    left.sort(key=lambda slug: (-weights[slug], slug))
    for at, slug in enumerate(left):
        if at and (at >= _MOST or weights[slug] < weights[left[0]] - _ECHO):
            silenced[slug] = left[0]
    return silenced
