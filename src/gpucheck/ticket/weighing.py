"""How much a text speaks for a cause: by its messages, by its facts, by both together."""

from collections.abc import Sequence

from gpucheck.findings import Confidence
from gpucheck.signatures.base import Signature
from gpucheck.ticket.search import Match

_OF_FACTS = {Confidence.CERTAIN: 84.0, Confidence.LIKELY: 74.0, Confidence.POSSIBLE: 56.0}
_BOTH = 8.0
"""What facts add to a text that names the same cause; a mere symptom adds nothing to facts."""
_NAMES_IT = 70
_STANDS = 84
"""From this weight on a message names its cause whatever facts of other lines look like."""
_FURTHER = 0.5
"""What each further message of one slug adds."""
_MOST_FURTHER = 3


def names_cause(signature: Signature) -> bool:
    """Whether a message names its cause, and is no mere symptom of it."""
    return signature.weight >= _STANDS


def of_messages(matches: Sequence[Match]) -> float:
    """Return the weight of all messages of one slug."""
    own = {match.signature.name: match.signature.weight for match in matches}
    return max(own.values()) + _FURTHER * min(len(own) - 1, _MOST_FURTHER)


def of_facts(confidence: Confidence, said: float | None) -> float:
    """Return the weight of what facts show, beside that of messages (None without any)."""
    seen = _OF_FACTS[confidence]
    if said is None:
        return seen
    return max(seen, said) + (_BOTH if said >= _NAMES_IT else 0.0)
