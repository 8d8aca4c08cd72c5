"""Asks one rule about a few facts."""

from typing import Any

from gpucheck.engine.ask import judge
from gpucheck.facts import Section
from gpucheck.facts.snapshot import ProbeRuns, Snapshot
from gpucheck.findings import all_rules
from gpucheck.findings.form import Judgement
from gpucheck.tables import Tables

TABLES = Tables()


def snapshot(*sections: Section, runs: ProbeRuns | None = None) -> Snapshot:
    """Return a snapshot that knows these sections and nothing else."""
    return Snapshot(
        {section.name: section for section in sections},
        runs or ProbeRuns(),
        tables=TABLES.version,
        origin="recorded",
    )


def ask(slug: str, *sections: Section, **more: Any) -> Judgement:  # noqa: ANN401  # see snapshot()
    """Return what the rule says about these sections."""
    return judge(all_rules()[slug], snapshot(*sections, **more), TABLES)
