"""Checks about which a text says nothing: their outcomes are the same for every such text."""

import functools
from collections.abc import Mapping

from gpucheck.engine import CheckResult, sections_behind
from gpucheck.facts import Section
from gpucheck.facts.snapshot import Snapshot
from gpucheck.findings import all_rules
from gpucheck.findings.form import Check, Outcome
from gpucheck.tables import Tables
from gpucheck.ticket.readers.base import NOT_PASTED

_LASTING = (Outcome.FINE, Outcome.NOT_APPLICABLE, Outcome.UNKNOWN)


@functools.cache
def empty_section(kind: type[Section]) -> Section:
    """Return an empty section of this type; all texts share one object."""
    return kind(problems={"*": NOT_PASTED})


class Settled:
    """Outcomes of checks whose sections a text did not mention, kept for the next text."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def about(self, silent: frozenset[str]) -> dict[str, Check]:
        """Return the known outcomes of these rules, about which a text says nothing."""
        return {slug: self._checks[slug] for slug in silent & self._checks.keys()}

    def learn(self, silent: frozenset[str], results: Mapping[str, CheckResult]) -> None:
        """Keep the outcomes of the silent rules for the next text."""
        for slug in silent - self._checks.keys():
            result = results.get(slug)
            if isinstance(result, Check) and result.outcome in _LASTING:
                self._checks[slug] = result


def silent_rules(snapshot: Snapshot) -> frozenset[str]:
    """Return the slugs of the rules about whose sections a text says nothing."""
    sections = snapshot.sections.values()
    return _without(
        frozenset(
            type(section) for section in sections if section is not empty_section(type(section))
        )
    )


@functools.lru_cache(maxsize=1024)
def _without(mentioned: frozenset[type[Section]]) -> frozenset[str]:
    """Return the slugs of the rules that use none of these sections."""
    return frozenset(
        slug for slug, rule in all_rules().items() if not sections_behind(rule) & mentioned
    )


@functools.lru_cache(maxsize=4)
def settled_with(tables: Tables) -> Settled:
    """Return the outcomes that are known with these tables."""
    del tables  # the key alone
    return Settled()
