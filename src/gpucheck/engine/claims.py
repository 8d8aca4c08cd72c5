"""What others than the findings' own checks claim: words in self-tests, a pre-flight's culprits."""

from gpucheck.engine.supply import supply
from gpucheck.facts.snapshot import Snapshot
from gpucheck.findings.form import Claim
from gpucheck.findings.witnesses.preflight_says import PreflightSays
from gpucheck.findings.witnesses.selftest_words import SelfTestWords
from gpucheck.tables import Tables


def claims_in(snapshot: Snapshot, tables: Tables) -> tuple[Claim, ...]:
    """Return every claim that a snapshot holds beside the facts that checks ask for."""
    preflight: PreflightSays = supply(PreflightSays, snapshot, tables)
    words: SelfTestWords = supply(SelfTestWords, snapshot, tables)
    return (*preflight.claims(), *words.claims())
