"""Claims of witnesses other than checks: messages in self-tests, culprits of a pre-flight."""

from gpucheck.engine.supply import supply
from gpucheck.facts.snapshot import Snapshot
from gpucheck.findings.form import Claim
from gpucheck.findings.witnesses.preflight_says import PreflightSays
from gpucheck.findings.witnesses.selftest_words import SelfTestWords
from gpucheck.tables import Tables


def claims_in(snapshot: Snapshot, tables: Tables) -> tuple[Claim, ...]:
    """Return every claim in a snapshot that does not come from a check."""
    preflight: PreflightSays = supply(PreflightSays, snapshot, tables)
    words: SelfTestWords = supply(SelfTestWords, snapshot, tables)
    return (*preflight.claims(), *words.claims())
