"""Judges a machine that the user describes: with the same rules, but only for the given facts.

A rule whose facts were not given is not applicable. The verdict is "unknown" only if a given value
is missing from the tables and there is no error or warning.
"""

import msgspec

from gpucheck.describe.described import Described, describe
from gpucheck.describe.keys import Given
from gpucheck.engine import Diagnosis, OpenQuestion, Report, diagnose, make_report
from gpucheck.facts.claims import Severity
from gpucheck.facts.drafts import NOT_GIVEN
from gpucheck.facts.snapshot import ProbeRuns, Snapshot
from gpucheck.findings import all_rules
from gpucheck.findings.form import Check, Outcome
from gpucheck.language import Sentence, say
from gpucheck.tables import Tables


class WhatIf(msgspec.Struct, frozen=True):
    """The report of a described machine, and the keys that this version does not judge."""

    report: Report
    not_judged: dict[str, str]
    """Key to the reason."""


def judge_described(given: Given, tables: Tables) -> WhatIf:
    """Describe the machine and evaluate every rule.

    Raises:
        GivenError: values contradict each other.
    """
    described = describe(given, tables)
    snapshot = Snapshot(described.sections, ProbeRuns(), tables=tables.version, origin="described")
    asked = diagnose(snapshot, tables)
    checks = tuple(_settled(check, snapshot) for check in asked.checks)
    questions = (*_missing(described), *_open(checks), *_unexplained(given))
    report = make_report(Diagnosis(asked.findings, checks), snapshot, questions)
    return WhatIf(report, described.unread)


def _settled(check: Check, snapshot: Snapshot) -> Check:
    """Make a rule not applicable if it lacks a fact that was not given."""
    if check.outcome is not Outcome.UNKNOWN:
        return check
    fact, why = _fact_and_reason(check)
    try:
        owner, field, value = snapshot.look_up(fact)
    except (LookupError, ValueError):
        return check
    if value is not None and why == NOT_GIVEN:
        return msgspec.structs.replace(
            check,
            reason=say("{fact}: what was given is not enough, or not in the tables", fact=fact),
        )
    if value is not None or owner.problem(field) != NOT_GIVEN:
        return check
    return msgspec.structs.replace(
        check, outcome=Outcome.NOT_APPLICABLE, reason=say("not given: {fact}", fact=fact)
    )


def _fact_and_reason(check: Check) -> tuple[str, str]:
    """Return the fact that an unknown check lacks, and why it is unknown."""
    fact, _, why = check.reason.partition(": ")
    reason = check.reason.params.get("why") if isinstance(check.reason, Sentence) else None
    return fact, reason if isinstance(reason, str) else why


def _missing(described: Described) -> tuple[OpenQuestion, ...]:
    return tuple(
        OpenQuestion(
            question=say("What do the tables say about it?"),
            fact=missing.fact,
            reason=missing.reason,
        )
        for missing in described.missing
    )


def _open(checks: tuple[Check, ...]) -> tuple[OpenQuestion, ...]:
    """Return the rules that could not be answered although their facts were given.

    A finding that is only information could not change the verdict, and neither can its absence.
    """
    rules = all_rules()
    found = []
    for check in checks:
        rule = rules[check.slug]
        if check.outcome is Outcome.UNKNOWN and rule.severity is not Severity.INFO:
            fact, reason = _fact_and_reason(check)
            question = say("Does the machine have this problem: {title}?", title=rule.title)
            found.append(OpenQuestion(question=question, fact=fact, reason=reason))
    return tuple(found)


def _unexplained(given: Given) -> tuple[OpenQuestion, ...]:
    """Return the errors that were given: if no finding explains them, nothing is healthy."""
    return tuple(
        OpenQuestion(
            question=say("What causes the error?"),
            fact=fact,
            reason=say("no cause was found for {key}={given}", key=key, given=given[key][0]),
        )
        for key, fact in (("cuda_error", "cuda_driver.init_code"), ("nvml_error", "nvml.init_code"))
        if given.get(key) and given[key] != ["0"]
    )
