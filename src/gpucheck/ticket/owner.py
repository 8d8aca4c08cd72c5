"""Whose concern a ticket is, by its first root cause."""

from gpucheck.engine import Report
from gpucheck.engine.report import Owner
from gpucheck.facts.pasted import Pasted
from gpucheck.findings import all_rules


def owner_of(report: Report) -> Owner:
    """Return who has to act: the header of the first root cause says it, or who raised what."""
    rule = all_rules().get(report.root_causes[0]) if report.root_causes else None
    if rule is None:
        return "none" if report.verdict == "healthy" else "unknown"
    failure = report.snapshot.get(Pasted).failure
    if rule.owner != "code" or failure is None or failure.installed is None:
        return rule.owner
    return "library" if failure.installed else "user-code"
