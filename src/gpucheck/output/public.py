"""The report for publication: names, paths, addresses and UUIDs are pseudonyms."""

import msgspec

from gpucheck.engine import Report
from gpucheck.facts import builtins
from gpucheck.facts.claims import Fix
from gpucheck.facts.snapshot import Snapshot
from gpucheck.findings.form import Evidence, Finding
from gpucheck.language import say
from gpucheck.output.redact import redact, redact_command, redact_text

_replace = msgspec.structs.replace


def public(report: Report) -> Report:
    """Return the report redacted: its snapshot, and every word of its findings and checks."""
    private = report.snapshot
    if private.redacted:
        return report
    redacted = redact(private)

    def words(text: str) -> str:
        return redact_text(text, private)

    return _replace(
        report,
        snapshot=redacted,
        findings=tuple(_finding(finding, private, redacted) for finding in report.findings),
        checks=tuple(_replace(check, reason=words(check.reason)) for check in report.checks),
        open_questions=tuple(
            _replace(question, reason=words(question.reason)) for question in report.open_questions
        ),
    )


def whose_names(snapshot: Snapshot) -> str:
    """Return a sentence about the names in a report of this snapshot."""
    if snapshot.redacted:
        return say("Names, paths, addresses and UUIDs are pseudonyms.")
    return say("Names, paths, addresses and UUIDs are real: keep this for yourself.")


def _finding(finding: Finding, private: Snapshot, redacted: Snapshot) -> Finding:
    return _replace(
        finding,
        headline=redact_text(finding.headline, private),
        evidence=tuple(_evidence(evidence, private, redacted) for evidence in finding.evidence),
        fixes=tuple(_fix(fix, private) for fix in finding.fixes),
    )


def _evidence(evidence: Evidence, private: Snapshot, redacted: Snapshot) -> Evidence:
    """Quote the redacted snapshot: a value is replaced according to its field."""
    _owner, _field, value = redacted.look_up(evidence.fact)
    return _replace(evidence, value=builtins(value), source=redact_text(evidence.source, private))


def _fix(fix: Fix, private: Snapshot) -> Fix:
    return _replace(
        fix,
        text=redact_text(fix.text, private),
        commands=tuple(redact_command(command, private) for command in fix.commands),
        verify=redact_command(fix.verify, private),
        cautions=tuple(redact_text(caution, private) for caution in fix.cautions),
    )
