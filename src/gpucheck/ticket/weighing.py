"""The weight of a cause in a text: by its messages, by its facts, by both together.

1. A finding is as strong as the strongest claim that is made for it. A message claims with its own
   strength: it names the cause, points to it, fits it best, or is a symptom. Facts in a text claim
   with the strength that their confidence has, but at most "points": they may be of another machine
   or another day.
2. Among findings of the same strength, one on which facts and a message agree weighs most, then
   one with a higher tie-break. The engine sorts them, finally by name.
3. The engine suppresses a finding that is weaker than the first, and one that is explained by a
   finding of at least the same weight.
"""

from collections.abc import Sequence

from gpucheck.facts.claims import Confidence
from gpucheck.findings.form import Weight
from gpucheck.log_patterns.form import Strength
from gpucheck.log_patterns.matcher import Match

_OF_FACTS = {
    Confidence.CERTAIN: Strength.POINTS,
    Confidence.LIKELY: Strength.POINTS,
    Confidence.POSSIBLE: Strength.SYMPTOM,
}


def of_messages(matches: Sequence[Match]) -> Weight:
    """Return the weight of the messages of one finding, which is that of the strongest."""
    level, tie_break = max(match.message.rank for match in matches)
    return Weight(level, tie_break=tie_break)


def of_facts(confidence: Confidence, message_weight: Weight | None) -> Weight:
    """Return the weight of what facts show; ``message_weight`` is None without messages."""
    shown = Weight(_OF_FACTS[confidence].level)
    if message_weight is None:
        return shown
    agreed = message_weight.level >= Strength.POINTS.level
    return (message_weight if message_weight.level >= shown.level else shown)._replace(
        agreed=agreed
    )
