"""The one judge: claims of all witnesses become findings, and the findings a report.

``ask`` asks the check of each finding. ``diagnosis`` collects what self-tests and a pre-flight
claim as well, withdraws what is disproved, suppresses what another finding explains and sorts the
rest. A machine, a saved snapshot, a described machine, a pre-flight and a text differ only in the
claims that there are.
"""

from gpucheck.engine.ask import CheckResult, ask_each, sections_behind, supply
from gpucheck.engine.diagnosis import Diagnosis, combine, diagnose
from gpucheck.engine.gpu_words import GpuVerdict, worst
from gpucheck.engine.report import (
    DRIVER_SERVES,
    FailOn,
    OpenQuestion,
    Report,
    Verdict,
    counts,
    judge_machine,
    make_report,
    open_questions,
    questions_about_gpus,
    untested,
)

__all__ = [
    "DRIVER_SERVES",
    "CheckResult",
    "Diagnosis",
    "FailOn",
    "GpuVerdict",
    "OpenQuestion",
    "Report",
    "Verdict",
    "ask_each",
    "combine",
    "counts",
    "diagnose",
    "judge_machine",
    "make_report",
    "open_questions",
    "questions_about_gpus",
    "sections_behind",
    "supply",
    "untested",
    "worst",
]
