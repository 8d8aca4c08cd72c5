"""Who has to act on a ticket, by its first root cause."""

import functools
from typing import Literal

from gpucheck.engine import Report
from gpucheck.engine.report import Owner
from gpucheck.facts.request import Pasted
from gpucheck.findings import all_rules

_NOT_OF_ENVIRONMENT = ("code", "other")


@functools.cache
def finding_of(concern: Literal["code", "other"]) -> str:
    """Return the slug of the finding for what is no fault of the environment."""
    return next(slug for slug, rule in all_rules().items() if rule.concern == concern)


def accuses(slug: str) -> bool:
    """Whether a cause is a fault of the environment; ``healthy`` is no finding at all."""
    rule = all_rules().get(slug)
    return rule is not None and rule.owner not in _NOT_OF_ENVIRONMENT


def owner_of(report: Report) -> Owner:
    """Return who has to act: the header of the first root cause says it, or who raised what."""
    rule = all_rules().get(report.root_causes[0]) if report.root_causes else None
    if rule is None:
        return "none" if report.verdict == "healthy" else "unknown"
    failure = report.snapshot.get(Pasted).failure
    if rule.owner != "code" or failure is None or failure.installed is None:
        return rule.owner
    return "library" if failure.installed else "user-code"
