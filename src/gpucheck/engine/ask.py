"""Asks the check of each finding; no exception of a check escapes."""

import functools
import inspect
from collections.abc import Mapping
from typing import Any

from gpucheck.derived import Derived, Gpus
from gpucheck.derived.gpus import NoGpu
from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.preflight import Preflight
from gpucheck.facts.request import Request
from gpucheck.facts.snapshot import ProbeRuns, Snapshot
from gpucheck.findings.form import Check, Claim, Fine, Hit, Judgement, NotApplicable, Outcome, Rule
from gpucheck.findings.witnesses.preflight_says import PreflightSays
from gpucheck.language import say
from gpucheck.tables import Table, Tables, TablesError

# Supplies what a check asks for by type: a section, a table, derived facts.

_OF_FIXES = "gpucheck.advice."
_NEEDS_OF_DERIVED: dict[type[Any], dict[str, type[Any]]] = {}


def supply(kind: type[Any], snapshot: Snapshot, tables: Tables) -> Any:  # noqa: ANN401  # of that type
    """Return what a parameter of this type stands for: a section, a table, derived facts."""
    made = snapshot.derived.setdefault(tables, {})
    if kind not in made:
        made[kind] = _made(kind, snapshot, tables)
    return made[kind]


def supply_each(
    needs: Mapping[str, type[Any]], snapshot: Snapshot, tables: Tables
) -> dict[str, Any]:
    """Return what each of these parameters stands for."""
    made = snapshot.derived.setdefault(tables, {})
    for kind in needs.values():
        if kind not in made:
            made[kind] = _made(kind, snapshot, tables)
    return {name: made[kind] for name, kind in needs.items()}


def _made(kind: type[Any], snapshot: Snapshot, tables: Tables) -> Any:  # noqa: ANN401  # of that type
    if issubclass(kind, Section):
        return snapshot.get(kind)
    if issubclass(kind, Derived):
        return kind(**supply_each(_needs_of_derived(kind), snapshot, tables))
    if issubclass(kind, ProbeRuns):
        return snapshot.runs
    if issubclass(kind, Tables):
        return tables
    if issubclass(kind, Table):
        return tables.get(kind)
    raise TypeError(f"a rule cannot ask for {kind.__name__}")


def _needs_of_derived(kind: type[Any]) -> dict[str, type[Any]]:
    """Return what derived facts are made of; it is read once in a process."""
    if kind not in _NEEDS_OF_DERIVED:
        needs = inspect.get_annotations(kind.__init__)
        _NEEDS_OF_DERIVED[kind] = {name: need for name, need in needs.items() if name != "return"}
    return _NEEDS_OF_DERIVED[kind]


@functools.cache
def sections_behind(rule: Rule) -> frozenset[type[Section]]:
    """Return the sections on which the answer of a check can rest, also through derived facts.

    The pre-flight and the request are always among them.
    """
    needs = {Preflight, Request, *rule.needs.values()}
    if rule.needs_gpu:
        needs.add(Gpus)
    return frozenset(section for need in needs for section in _sections_of(need))


@functools.cache
def tables_behind(rule: Rule) -> frozenset[type[Table]]:
    """Return the tables by which a check judges, also through derived facts.

    Those that only choose the words of a fix are not among them.
    """
    return frozenset(table for need in rule.needs.values() for table in _tables_of(need))


def _tables_of(kind: type[Any]) -> frozenset[type[Table]]:
    if issubclass(kind, Derived) and not kind.__module__.startswith(_OF_FIXES):
        needs = _needs_of_derived(kind).values()
        return frozenset(table for need in needs for table in _tables_of(need))
    return frozenset([kind]) if issubclass(kind, Table) else frozenset()


def _sections_of(kind: type[Any]) -> frozenset[type[Section]]:
    if issubclass(kind, Derived):
        needs = _needs_of_derived(kind).values()
        return frozenset(section for need in needs for section in _sections_of(need))
    return frozenset([kind]) if issubclass(kind, Section) else frozenset()


CheckResult = Claim | Check
"""The result of asking a check: a claim if it found its cause, else the outcome."""

_ELSEWHERE = say("visible only in a program's output: pass that output to gpucheck triage")


def ask_each(
    rules: Mapping[str, Rule],
    snapshot: Snapshot,
    tables: Tables,
    known: Mapping[str, Check] | None = None,
) -> dict[str, CheckResult]:
    """Ask the check of every rule.

    Args:
        rules: the rules by slug.
        snapshot: what is known of the machine.
        tables: the compatibility tables.
        known: outcomes that are known beforehand; their checks are not asked.
    """
    before = known or {}
    return {
        slug: before[slug] if slug in before else _ask(rule, snapshot, tables)
        for slug, rule in rules.items()
    }


def judge(rule: Rule, snapshot: Snapshot, tables: Tables) -> Judgement:
    """Ask the check of one rule.

    Raises:
        UnknownFactError: a fact that the check needs is unknown.
    """
    if rule.judge is None and not rule.seen_in:
        raise TypeError("the rule has no function marked @RULE.check, and is seen nowhere else")
    if rule.is_about_gpus and snapshot.get(Request).gpus == 0:
        return Fine(say("you said that this host uses no GPU"))
    if rule.needs_gpu and supply(NoGpu, snapshot, tables).surely:
        return NotApplicable(say("there is no NVIDIA GPU"))
    answer = None
    if rule.judge is not None:
        answer = rule.judge(**supply_each(rule.needs, snapshot, tables))
    return _seen_elsewhere(rule, snapshot, tables) if answer is None else answer


def _seen_elsewhere(rule: Rule, snapshot: Snapshot, tables: Tables) -> Judgement:
    """Return the judgement of a cause that no fact of this machine shows."""
    if "pre-flight" in rule.seen_in:
        says: PreflightSays = supply(PreflightSays, snapshot, tables)
        if (nothing := says.nothing()) is not None:
            return nothing
    return NotApplicable(_ELSEWHERE)


def _ask(rule: Rule, snapshot: Snapshot, tables: Tables) -> CheckResult:
    slug = rule.slug
    try:
        answer = judge(rule, snapshot, tables)
        if isinstance(answer, Hit):
            for fact in answer.evidence:
                snapshot.look_up(fact)  # a path without a fact is a fault of the check
            return Claim(slug=slug, hit=answer)
    except UnknownFactError as unknown:
        reason = unknown.reason or snapshot.problem(unknown.fact) or say("no information was given")
        return Check(
            slug=slug,
            outcome=Outcome.UNKNOWN,
            reason=say("{fact}: {why}", fact=unknown.fact, why=reason),
        )
    except TablesError:
        raise  # not the rule's fault: the tables cannot be read, and the user must know
    except Exception as error:  # noqa: BLE001  # a crash of a check is an outcome
        reason = f"{type(error).__name__}: {error}"
        return Check(slug=slug, outcome=Outcome.CRASHED, reason=reason)
    outcome = Outcome.NOT_APPLICABLE if isinstance(answer, NotApplicable) else Outcome.FINE
    return Check(slug=slug, outcome=outcome, reason=answer.reason)
