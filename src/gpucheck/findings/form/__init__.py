"""What a finding is made of: its header, and what its check may answer."""

from gpucheck.findings.form.judgement import (
    Check,
    Claim,
    Evidence,
    Finding,
    Fine,
    Hit,
    Judgement,
    NotApplicable,
    Outcome,
    Weight,
)
from gpucheck.findings.form.rule import (
    ByCuda,
    Elsewhere,
    Family,
    GroupFailure,
    InPreflight,
    Library,
    Owner,
    PreflightClass,
    Rule,
)

__all__ = [
    "ByCuda",
    "Check",
    "Claim",
    "Elsewhere",
    "Evidence",
    "Family",
    "Finding",
    "Fine",
    "GroupFailure",
    "Hit",
    "InPreflight",
    "Judgement",
    "Library",
    "NotApplicable",
    "Outcome",
    "Owner",
    "PreflightClass",
    "Rule",
    "Weight",
]
