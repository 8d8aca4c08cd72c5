"""How a pre-flight ends: its exit status and class, which are the same on every living rank."""

from collections.abc import Iterable

import msgspec

from gpucheck.cluster.model import ExitClass, ExitStatus
from gpucheck.engine import FailOn, counts
from gpucheck.facts.claims import Confidence
from gpucheck.facts.preflight import Culprit, Preflight
from gpucheck.findings import all_rules
from gpucheck.findings.form import Finding
from gpucheck.language import say

ORDER: tuple[ExitStatus, ...] = (1, 4, 3, 5)
"""The precedence of the classes: the first that occurs is the exit status."""
_WORDS: dict[ExitStatus, ExitClass] = {
    0: "healthy", 1: "culprit", 3: "inconclusive", 4: "misconfiguration", 5: "slow",
}  # fmt: skip


class Ending(msgspec.Struct, frozen=True):
    """The exit status, its class in one word, and why in a sentence ("" where findings say it)."""

    status: ExitStatus
    word: ExitClass
    why: str = ""


def ending(
    standing: Iterable[Finding], preflight: Preflight, fail_on: FailOn, *, store_lost: str = ""
) -> Ending:
    """Return how the pre-flight ends.

    Findings below ``fail_on`` do not count. If none counts, a run that could not be finished and a
    lost store are inconclusive. A drill never ends with 0, whatever ``fail_on`` says: an unnoticed
    one is inconclusive.

    Args:
        standing: the findings of the report that no other suppresses.
        preflight: what was found; a culprit whose slug is no finding's counts by itself.
        fail_on: the least severity that counts.
        store_lost: why the store cannot be reached; "" when it can.
    """
    classes: set[ExitStatus] = {
        all_rules()[one.slug].preflight_class for one in standing if counts(one.severity, fail_on)
    }
    named = (one for one in preflight.culprits or () if _is_named_all_the_same(one))
    if any(counts(one.severity, fail_on) for one in named):
        classes.add(1)
    why = store_lost or _open(preflight)
    if why and fail_on != "never":
        classes.add(3)
    status: ExitStatus = next((one for one in ORDER if one in classes), 0)
    if status == 0 and preflight.drill:
        return _made(3, _of_drill(preflight))
    return _made(status, why if status == 3 else "")  # noqa: PLR2004  # inconclusive


def _is_named_all_the_same(culprit: Culprit) -> bool:
    """Whether a culprit is named although its slug alone blames nobody.

    That is a slug that no rule knows, or a collective that timed out between known ranks.
    """
    rule = all_rules().get(culprit.slug)
    if rule is None:
        return True
    is_open = rule.preflight_class == 3  # noqa: PLR2004  # inconclusive
    return is_open and bool(culprit.ranks) and culprit.confidence is not Confidence.POSSIBLE


def _open(preflight: Preflight) -> str:
    """Return why the job cannot be called healthy, or "" if it can."""
    if preflight.inconclusive:
        return preflight.inconclusive
    if preflight.culprits is None:
        return preflight.problem("culprits") or say("the pre-flight was not run")
    if not preflight.finished:
        return preflight.stopped_because or say("not every step was done")
    return ""


def _of_drill(preflight: Preflight) -> str:
    if preflight.culprits:
        return say("this was a drill: what it found does not count")
    return say("this was a drill, and the fault was not noticed")


def _made(status: ExitStatus, why: str) -> Ending:
    return Ending(status, _WORDS[status], why)
