"""Whose concern a ticket is, by its first root cause."""

from typing import Literal

from gpucheck.engine import Report
from gpucheck.findings import all_rules
from gpucheck.findings.form import Owner as OfFinding

Owner = OfFinding | Literal["none", "unknown"]
"""``none``: nothing is broken; ``unknown``: no cause was found."""


def owner_of(report: Report) -> Owner:
    """Return who has to act, which the header of the first root cause says."""
    rule = all_rules().get(report.root_causes[0]) if report.root_causes else None
    if rule is not None:
        return rule.owner
    return "none" if report.verdict == "healthy" else "unknown"
