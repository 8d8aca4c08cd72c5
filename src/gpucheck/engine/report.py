"""The report: verdict, root causes, findings and everything they rest on."""

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from gpucheck._about import VERSION
from gpucheck.engine.diagnosis import Diagnosis, diagnose
from gpucheck.engine.gpu_words import GpuVerdict, gpu_verdicts
from gpucheck.engine.verdict import OpenQuestion, open_questions
from gpucheck.facts import builtins
from gpucheck.facts.claims import Severity
from gpucheck.facts.pasted import Pasted
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.facts.snapshot import REPORT_SCHEMA, Snapshot
from gpucheck.findings.form import Check, Finding, Outcome
from gpucheck.findings.form import Owner as OfFinding
from gpucheck.tables import Tables

Verdict = Literal["healthy", "warning", "broken", "unknown"]
About = Literal["machine", "self-tests"]
Owner = OfFinding | Literal["library", "user-code", "none", "unknown"]
"""Who has to act on a ticket. ``library`` and ``user-code``: an exception, by the place that raised
it; ``none``: nothing is broken; ``unknown``: no cause was found."""
_OF_CODE = ("code", "library", "user-code")
FailOn = Literal["error", "warning", "never"]

_EXIT_HEALTHY, _EXIT_FINDING, _EXIT_UNKNOWN = 0, 1, 3  # docs/architecture.md, 1.2


def counts(severity: Severity, fail_on: FailOn) -> bool:
    """Whether a finding of this severity counts for the exit status."""
    if fail_on == "never":
        return False
    return severity is Severity.ERROR or (fail_on == "warning" and severity is Severity.WARNING)


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What every output format shows; ``about``: the whole machine, or its self-tests only."""

    verdict: Verdict
    root_causes: tuple[str, ...]
    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]
    open_questions: tuple[OpenQuestion, ...]
    snapshot: Snapshot
    about: About = "machine"
    owner: Owner | None = None
    """Who has to act; None for a machine, whose findings say it themselves."""
    gpus: tuple[GpuVerdict, ...] = ()
    """What to do with each GPU of a machine; first those of ``nvml.gpus``, in their order."""
    ruled_out: tuple[str, ...] = ()
    """What checks found and self-tests, or a text, disprove; the reasons of these checks."""

    @property
    def standing(self) -> tuple[Finding, ...]:
        """The findings that no other finding suppresses."""
        return tuple(finding for finding in self.findings if finding.silenced_by is None)

    @property
    def unknown_checks(self) -> tuple[Check, ...]:
        """The checks that lacked a fact."""
        return tuple(check for check in self.checks if check.outcome is Outcome.UNKNOWN)

    def exit_status(self, fail_on: FailOn) -> int:
        """Return the exit status of the contract (architecture 1.3)."""
        if any(counts(finding.severity, fail_on) for finding in self.standing):
            return _EXIT_FINDING
        is_open = self.verdict == "unknown" and fail_on != "never"
        return _EXIT_UNKNOWN if is_open else _EXIT_HEALTHY

    @property
    def causes(self) -> tuple[Finding, ...]:
        """The findings that are root causes, the first one first."""
        return tuple(finding for finding in self.standing if finding.slug in self.root_causes)

    @property
    def first(self) -> Finding | None:
        """The finding of the first root cause; None if there is no root cause."""
        return next(iter(self.causes), None)

    def as_line(self, name: object) -> dict[str, Any]:
        """Return the report as a line of a batch; ``name`` is the id of its item."""
        return {
            "id": name,
            "verdict": self.verdict,
            "root_causes": list(self.root_causes),
            "confidence": self.first.confidence.value if self.first is not None else None,
            **self._of_a_ticket(),
        }

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON-like data (schema ``gpucheck.report/1``)."""
        return {
            "schema": REPORT_SCHEMA,
            "gpucheck": {"version": VERSION, "tables": self.snapshot.versions.tables},
            "verdict": self.verdict,
            "root_causes": list(self.root_causes),
            **self._of_a_ticket(),
            "gpus": builtins(self.gpus),
            "findings": builtins(self.findings),
            "checks": builtins(self.checks),
            "open_questions": builtins(self.open_questions),
            "selftests": [
                _selftest(result) for result in self.snapshot.get(SelfTests).results or ()
            ],
            "snapshot": self.snapshot.as_json(),
            "probes": builtins(self.snapshot.runs.runs),
        }

    def _of_a_ticket(self) -> dict[str, Any]:
        """Return who has to act on a ticket, and what failed where if it is a program's bug."""
        if self.owner is None:
            return {}
        pasted = self.snapshot.get(Pasted)
        failure = pasted.failure
        leads = [{"cause": lead.cause, "share": lead.share} for lead in pasted.leads or ()]
        whose = {"owner": self.owner, **({"leads": leads} if leads else {})}
        if failure is None or self.owner not in _OF_CODE:
            return whose
        return {
            **whose,
            "exception": failure.exception,
            "frame": failure.frame,
            "package": failure.package,
        }


def _selftest(result: SelfTest) -> dict[str, Any]:
    """Return a result without its sources and problems: it has its own status and detail."""
    plain: dict[str, Any] = builtins(result)
    return {key: value for key, value in plain.items() if key not in ("sources", "problems")}


def judge_machine(
    snapshot: Snapshot, tables: Tables, *, only: Sequence[str] = (), skip: Sequence[str] = ()
) -> "Report":
    """Judge what was read from a machine; ``only`` and ``skip`` name slugs."""
    diagnosis = diagnose(snapshot, tables, only=only, skip=skip)
    return make_report(diagnosis, snapshot, open_questions(snapshot, tables))


def make_report(
    diagnosis: Diagnosis,
    snapshot: Snapshot,
    questions: tuple[OpenQuestion, ...],
    about: About = "machine",
) -> Report:
    """Make the report; errors, warnings and open decisive questions give the verdict."""
    standing = diagnosis.standing
    errors = tuple(f.slug for f in standing if f.severity is Severity.ERROR)
    warnings = tuple(f.slug for f in standing if f.severity is Severity.WARNING)
    verdict: Verdict
    if errors:
        verdict = "broken"
    elif warnings:
        verdict = "warning"
    else:
        verdict = "unknown" if questions else "healthy"
    return Report(
        verdict=verdict,
        root_causes=errors or warnings,
        findings=diagnosis.findings,
        checks=diagnosis.checks,
        open_questions=questions,
        snapshot=snapshot,
        about=about,
        gpus=gpu_verdicts(diagnosis.findings, diagnosis.blamed, diagnosis.checks, snapshot),
        ruled_out=diagnosis.ruled_out,
    )
