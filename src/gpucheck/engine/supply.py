"""Supplies what a check asks for by type: a section, a table, derived facts."""

import functools
import inspect
from collections.abc import Mapping
from typing import Any

from gpucheck.derived import Derived, Gpus
from gpucheck.facts import Section
from gpucheck.facts.preflight import Preflight
from gpucheck.facts.request import Request
from gpucheck.facts.snapshot import ProbeRuns, Snapshot
from gpucheck.findings.form import Rule
from gpucheck.tables import Table, Tables

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
