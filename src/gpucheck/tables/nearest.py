"""Finds the known names most similar to an unknown one, which the user may have mistyped."""

from collections.abc import Iterable
from difflib import SequenceMatcher

from gpucheck.language import any_of, say

MOST = 3
_ALIKE = 0.7
_BEHIND = 0.15
"""How much less similar than the best a name may be, to be named beside it."""
_TURNED = 0.9
_SHORTEST_PART = 3


def plain(name: str) -> str:
    """Return a name in the form used for comparison: in lower case, with hyphens as separators."""
    return "-".join(name.lower().replace("_", "-").replace(".", "-").split())


def same_name(wanted: str, known: Iterable[str]) -> str | None:
    """Return the known name that differs at most in case and separators."""
    return next((name for name in known if plain(name) == plain(wanted)), None)


def nearest(name: str, known: Iterable[str], most: int = MOST) -> list[str]:
    """Return the known names similar to this one, the most similar first; often none."""
    wanted = plain(name)[:100]
    scores = {name: _likeness(wanted, plain(name)) for name in known}
    best = max(scores.values(), default=0.0)
    least = max(_ALIKE, best - _BEHIND)
    alike = [name for name, score in scores.items() if score >= least]
    return sorted(alike, key=lambda name: -scores[name])[:most]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the question to append to a refusal; "" if no name is similar."""
    found = nearest(name, known)
    return say("Did you mean {names}?", names=any_of(found)) if found else ""


def _likeness(wanted: str, name: str) -> float:
    """Return how similar two names are, up to 1; a name that contains the other is similar."""
    if wanted == name:
        return 1.0
    matched = SequenceMatcher(None, wanted, name).ratio()
    if len(wanted) >= _SHORTEST_PART and wanted in name:
        return max(matched, _ALIKE)
    if sorted(wanted.split("-")) == sorted(name.split("-")):  # words in another order
        return max(matched, _ALIKE)
    if sorted(wanted) == sorted(name):  # letters in another order
        return max(matched, _TURNED)
    return matched
