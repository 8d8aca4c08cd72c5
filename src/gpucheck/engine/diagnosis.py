"""Judges a snapshot: asks every check and combines the claims of all witnesses."""

from collections.abc import Sequence

from gpucheck.engine.ask import ask_each
from gpucheck.engine.combine import Diagnosis, combine
from gpucheck.engine.supply import supply
from gpucheck.facts.snapshot import Snapshot
from gpucheck.findings import all_rules
from gpucheck.findings.form import Claim
from gpucheck.findings.witnesses.preflight_says import PreflightSays
from gpucheck.findings.witnesses.selftest_says import SelfTestWords
from gpucheck.tables import Tables


def diagnose(
    snapshot: Snapshot, tables: Tables, *, only: Sequence[str] = (), skip: Sequence[str] = ()
) -> Diagnosis:
    """Judge a snapshot; ``only`` and ``skip`` name slugs."""
    rules = {
        slug: rule
        for slug, rule in all_rules().items()
        if (not only or slug in only) and slug not in skip
    }
    results = ask_each(rules, snapshot, tables)
    return combine(rules, results, _claims_in(snapshot, tables), snapshot, tables)


def _claims_in(snapshot: Snapshot, tables: Tables) -> tuple[Claim, ...]:
    """Return every claim in a snapshot that does not come from a check."""
    preflight: PreflightSays = supply(PreflightSays, snapshot, tables)
    words: SelfTestWords = supply(SelfTestWords, snapshot, tables)
    return (*preflight.claims(), *words.claims())
