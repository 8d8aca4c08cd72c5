"""Judges a machine that the user describes: with the same rules, but only for the given facts.

A rule whose facts were not given is not applicable. The verdict is "unknown" only if a given value
is missing from the tables and there is no error or warning.
"""

from typing import Any

import msgspec

from gpucheck.engine import Diagnosis, diagnose
from gpucheck.findings import Check, Outcome, Severity
from gpucheck.readers._drafts import NOT_GIVEN
from gpucheck.readers.compat_keys import KEYS, Given
from gpucheck.readers.described import Described, describe
from gpucheck.report import Report, make_report
from gpucheck.rules import all_rules
from gpucheck.snapshot import ProbeRuns, Snapshot
from gpucheck.tables import Tables
from gpucheck.verdict import OpenQuestion

_QUESTION = "Is this so: {title}?"
_DEFAULT_ACTIONS = ("run", "import")


class WhatIf(msgspec.Struct, frozen=True):
    """The report of a described machine, and the keys that this version does not judge."""

    report: Report
    not_judged: dict[str, str]
    """Key to the reason; "" if this version has no check for the key."""

    def as_line(self, name: object) -> dict[str, Any]:
        """Return the report as a line of a batch; ``name`` is the id of its item."""
        causes = self.report.root_causes
        first = next((f for f in self.report.standing if causes and f.slug == causes[0]), None)
        return {
            "id": name,
            "verdict": self.report.verdict,
            "root_causes": list(causes),
            "confidence": first.confidence.value if first else None,
        }


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
    return WhatIf(report, _not_judged(given, described))


def _settled(check: Check, snapshot: Snapshot) -> Check:
    """Make a rule not applicable if it lacks a fact that was not given."""
    if check.outcome is not Outcome.UNKNOWN:
        return check
    fact = check.reason.partition(": ")[0]
    try:
        owner, field, value = snapshot.look_up(fact)
    except (LookupError, ValueError):
        return check
    if value is not None and check.reason == f"{fact}: {NOT_GIVEN}":
        return msgspec.structs.replace(
            check, reason=f"{fact}: what was given is not enough, or not in the tables"
        )
    if value is not None or owner.problem(field) != NOT_GIVEN:
        return check
    return msgspec.structs.replace(
        check, outcome=Outcome.NOT_APPLICABLE, reason=f"{NOT_GIVEN}: {fact}"
    )


def _missing(described: Described) -> tuple[OpenQuestion, ...]:
    return tuple(
        OpenQuestion(question="What do the tables say of it?", fact=one.fact, reason=one.reason)
        for one in described.missing
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
            fact, _, reason = check.reason.partition(": ")
            question = _QUESTION.format(title=rule.title)
            found.append(OpenQuestion(question=question, fact=fact, reason=reason))
    return tuple(found)


def _unexplained(given: Given) -> tuple[OpenQuestion, ...]:
    """Return the errors that were given: if no finding explains them, nothing is healthy."""
    return tuple(
        OpenQuestion(
            question="What causes the error?",
            fact=fact,
            reason=f"no cause was found for {key}={given[key][0]}",
        )
        for key, fact in (("cuda_error", "cuda_driver.init_code"), ("nvml_error", "nvml.init_code"))
        if given.get(key) and given[key] != ["0"]
    )


def _not_judged(given: Given, described: Described) -> dict[str, str]:
    rules = all_rules()
    found = {
        name: ""
        for name in given
        if not any(slug in rules for slug in KEYS[name].judged_by)
        and not (name == "action" and given[name][:1] and given[name][0] in _DEFAULT_ACTIONS)
    }
    return {**found, **described.unread}
