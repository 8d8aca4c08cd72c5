"""Asks every rule, lets root causes silence their echoes, and orders what is left."""

import functools
import inspect
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import msgspec

from gpucheck.facts import Section, UnknownFactError, builtins
from gpucheck.findings import (
    Check,
    Confidence,
    Evidence,
    Finding,
    Fine,
    Hit,
    Judgement,
    NotApplicable,
    Outcome,
    Severity,
    Suspect,
)
from gpucheck.probes.preflight import Preflight
from gpucheck.probes.request import Request
from gpucheck.rules import Family, Rule, all_rules
from gpucheck.rules.witnesses.preflight_says import PreflightSays
from gpucheck.rules.witnesses.selftest_says import Refutation
from gpucheck.rules.witnesses.selftest_words import SelfTestWords
from gpucheck.snapshot import ProbeRuns, Snapshot
from gpucheck.tables import Table, Tables, TablesError
from gpucheck.views import Gpus, View
from gpucheck.views.gpus import NoGpu

_FAMILIES = get_args(Family)
_SEVERITIES = tuple(Severity)
_CONFIDENCES = tuple(Confidence)
_NEEDS_OF_VIEWS: dict[type[Any], dict[str, type[Any]]] = {}


class Diagnosis(msgspec.Struct, frozen=True):
    """Findings, most probable cause first, and the outcome of every rule."""

    findings: tuple[Finding, ...]
    checks: tuple[Check, ...]

    @property
    def standing(self) -> tuple[Finding, ...]:
        """The findings that no other finding silenced."""
        return tuple(finding for finding in self.findings if finding.silenced_by is None)


def diagnose(
    snapshot: Snapshot,
    tables: Tables,
    *,
    only: Sequence[str] = (),
    skip: Sequence[str] = (),
    suspects: Mapping[str, Suspect] | None = None,
    settled: Mapping[str, Check] | None = None,
) -> Diagnosis:
    """Ask every rule about the snapshot; ``only`` and ``skip`` name slugs.

    ``suspects`` are what a pasted text says, by slug: each is weighed against its rule's answer, as
    is what NCCL said in a self-test that went wrong.
    ``settled`` are outcomes without a finding that are known beforehand: their rules are not asked.
    """
    rules = all_rules()
    if only or skip:
        rules = {
            slug: rule
            for slug, rule in rules.items()
            if (not only or slug in only) and slug not in skip
        }
    before = settled or {}
    asked = {
        slug: (before[slug], None) if slug in before else _ask(rule, snapshot, tables)
        for slug, rule in rules.items()
    }
    said: SelfTestWords = supply(SelfTestWords, snapshot, tables)
    for slug, suspect in {**said.suspects(), **(suspects or {})}.items():
        if slug in rules:
            asked[slug] = _suspected(rules[slug], asked[slug], suspect, snapshot)
    hits = {slug: finding for slug, (_, finding) in asked.items() if finding is not None}
    silenced = {slug: by for slug in hits if (by := _silencer(rules[slug], hits))}
    findings = [
        msgspec.structs.replace(finding, silenced_by=silenced.get(slug))
        for slug, finding in hits.items()
    ]
    checks = [
        Check(slug=slug, outcome=Outcome.SILENCED, reason=f"an echo of {silenced[slug]}")
        if slug in silenced
        else check
        for slug, (check, _) in asked.items()
    ]
    return Diagnosis(tuple(sorted(findings, key=_rank)), tuple(checks))


def judge(rule: Rule, snapshot: Snapshot, tables: Tables) -> Judgement:
    """Ask one rule; a culprit of a pre-flight with its slug answers in its place.

    Raises:
        UnknownFactError: it lacks a fact.
    """
    if rule.judge is None:
        raise TypeError("the rule module has no function marked @RULE.check")
    if snapshot.get(Preflight).culprits:
        says: PreflightSays = supply(PreflightSays, snapshot, tables)
        if (seen := says.hit(rule.slug, rule.title)) is not None:
            return seen  # seen to fail, on whichever node: it outweighs what is known of this one
    if rule.is_about_gpus and snapshot.get(Request).gpus == 0:
        return Fine("this host was said to use no GPU")
    if rule.needs_gpu and supply(NoGpu, snapshot, tables).surely:
        return NotApplicable("there is no NVIDIA GPU")
    return rule.judge(**_supplied(rule.needs, snapshot, tables))


def supply(kind: type[Any], snapshot: Snapshot, tables: Tables) -> Any:  # noqa: ANN401  # of that type
    """Return what a parameter of this type stands for: a section, a table, a view of both."""
    made = snapshot.views.setdefault(tables, {})
    if kind not in made:
        made[kind] = _made(kind, snapshot, tables)
    return made[kind]


def _supplied(needs: Mapping[str, type[Any]], snapshot: Snapshot, tables: Tables) -> dict[str, Any]:
    """Return what each of these parameters stands for."""
    made = snapshot.views.setdefault(tables, {})
    for kind in needs.values():
        if kind not in made:
            made[kind] = _made(kind, snapshot, tables)
    return {name: made[kind] for name, kind in needs.items()}


def _made(kind: type[Any], snapshot: Snapshot, tables: Tables) -> Any:  # noqa: ANN401  # of that type
    if issubclass(kind, Section):
        return snapshot.get(kind)
    if issubclass(kind, View):
        return kind(**_supplied(_needs_of_view(kind), snapshot, tables))
    if issubclass(kind, ProbeRuns):
        return snapshot.runs
    if issubclass(kind, Tables):
        return tables
    if issubclass(kind, Table):
        return tables.get(kind)
    raise TypeError(f"a rule cannot ask for {kind.__name__}")


def _needs_of_view(kind: type[Any]) -> dict[str, type[Any]]:
    """Return what a view is made of; read once a process, for a batch builds it for every text."""
    if kind not in _NEEDS_OF_VIEWS:
        needs = inspect.get_annotations(kind.__init__)
        _NEEDS_OF_VIEWS[kind] = {name: need for name, need in needs.items() if name != "return"}
    return _NEEDS_OF_VIEWS[kind]


@functools.cache
def sections_behind(rule: Rule) -> frozenset[type[Section]]:
    """Return the sections on which the outcome of a rule can rest, those of its views included."""
    needs = {Preflight, Request, *rule.needs.values()}
    if rule.needs_gpu:
        needs.add(Gpus)
    if rule.refuted_by:
        needs.add(Refutation)
    return frozenset(section for need in needs for section in _sections_of(need))


def _sections_of(kind: type[Any]) -> frozenset[type[Section]]:
    if issubclass(kind, View):
        needs = _needs_of_view(kind).values()
        return frozenset(section for need in needs for section in _sections_of(need))
    return frozenset([kind]) if issubclass(kind, Section) else frozenset()


def _ask(rule: Rule, snapshot: Snapshot, tables: Tables) -> tuple[Check, Finding | None]:
    """Return the outcome of one rule and its finding; nothing that a rule does escapes."""
    slug = rule.slug
    try:
        answer = judge(rule, snapshot, tables)
        if isinstance(answer, Hit):
            if answer.refutable and (why := _refuted(rule, snapshot, tables)):
                reason = f"{why}; else: {answer.headline}"
                return Check(slug=slug, outcome=Outcome.FINE, reason=reason), None
            finding = _finding(rule, answer, snapshot)
            return Check(slug=slug, outcome=Outcome.FIRED, reason=answer.headline), finding
    except UnknownFactError as unknown:
        reason = unknown.reason or snapshot.problem(unknown.fact) or "nothing was said about it"
        return Check(slug=slug, outcome=Outcome.UNKNOWN, reason=f"{unknown.fact}: {reason}"), None
    except TablesError:
        raise  # nothing of a rule: the tables cannot be read, and the user is told so
    except Exception as error:  # noqa: BLE001  # a crash of a rule is an outcome
        reason = f"{type(error).__name__}: {error}"
        return Check(slug=slug, outcome=Outcome.CRASHED, reason=reason), None
    if isinstance(answer, NotApplicable):
        return Check(slug=slug, outcome=Outcome.NOT_APPLICABLE, reason=answer.reason), None
    return Check(slug=slug, outcome=Outcome.FINE, reason=_fine(answer)), None


def _refuted(rule: Rule, snapshot: Snapshot, tables: Tables) -> str:
    """Return which passed self-tests disprove a finding of this rule, "" when none do.

    What was seen outweighs what follows from versions and files.
    """
    if not rule.refuted_by:
        return ""
    refutation: Refutation = supply(Refutation, snapshot, tables)
    if not refutation.by(rule.refuted_by):
        return ""
    return f"refuted by a passed self-test ({' and '.join(rule.refuted_by)})"


def _suspected(
    rule: Rule, answer: tuple[Check, Finding | None], suspect: Suspect, snapshot: Snapshot
) -> tuple[Check, Finding | None]:
    """Weigh what a text says against the rule's answer: facts that look fine refute a symptom."""
    check, finding = answer
    seen = _finding(rule, suspect.hit, snapshot)
    if finding is not None:
        severity = min(finding.severity, seen.severity, key=_SEVERITIES.index)
        evidence = (*finding.evidence, *seen.evidence)
        return check, msgspec.structs.replace(finding, severity=severity, evidence=evidence)
    if check.outcome is Outcome.FINE and not suspect.stands:
        return answer
    return Check(slug=rule.slug, outcome=Outcome.FIRED, reason=seen.headline), seen


def _fine(answer: Fine) -> str:
    return answer.reason


def _finding(rule: Rule, hit: Hit, snapshot: Snapshot) -> Finding:
    return Finding(
        slug=rule.slug,
        severity=hit.severity or rule.severity,
        confidence=hit.confidence,
        headline=hit.headline,
        evidence=tuple(_evidence(fact, snapshot) for fact in hit.evidence),
        fixes=hit.fixes,
    )


def _evidence(fact: str, snapshot: Snapshot) -> Evidence:
    owner, field, value = snapshot.look_up(fact)
    return Evidence(fact=fact, value=builtins(value), source=owner.source(field))


def _silencer(rule: Rule, hits: Mapping[str, Finding]) -> str | None:
    """Return the finding that makes this rule's an echo: the end of the chain it yields to.

    Only a finding at least as severe can be the cause: a warning explains no error.
    """
    cause = None
    slug: str | None = rule.slug
    while slug is not None:
        weight = _SEVERITIES.index(hits[slug].severity)
        slug = next(
            (
                other
                for other in all_rules()[slug].yields_to
                if other in hits and _SEVERITIES.index(hits[other].severity) <= weight
            ),
            None,
        )
        cause = slug or cause
    return cause


def _rank(finding: Finding) -> tuple[bool, int, int, int, str]:
    """Sort standing findings first, then by severity, confidence, area (driver first) and slug."""
    return (
        finding.silenced_by is not None,
        _SEVERITIES.index(finding.severity),
        _CONFIDENCES.index(finding.confidence),
        _FAMILIES.index(all_rules()[finding.slug].family),
        finding.slug,
    )
