"""process-limit-too-low: a rank whose own error says so, in a pre-flight and nowhere else."""

from rules_support import TABLES, ask, snapshot

from gpucheck.cluster import outcome
from gpucheck.cluster.exclude import exclusion
from gpucheck.engine import diagnose
from gpucheck.facts.preflight import Culprit, Preflight, RankOutcome
from gpucheck.findings.form import Fine, NotApplicable

SLUG = "process-limit-too-low"
FULL = Culprit(
    slug=SLUG, rank=3, ranks=(3,), host="n1", hosts=("n1",),
    evidence="its process could not open another file (Too many open files)",
)  # fmt: skip
RANKS = [RankOutcome(rank=at, task=at, host=f"n{at // 2}") for at in range(4)]


def test_a_rank_without_files_is_a_misconfiguration_and_leaves_no_host_out() -> None:
    preflight = Preflight(culprits=[FULL], ranks=RANKS, finished=True)
    diagnosis = diagnose(snapshot(preflight), TABLES)
    (found,) = diagnosis.findings
    assert found.slug == SLUG
    assert "Too many open files" in found.headline
    assert "limits" in found.fixes[0].text
    assert outcome.ending(diagnosis.standing, preflight, "error").status == 4
    assert exclusion(preflight).hosts == ()


def test_nothing_else_shows_it() -> None:
    assert isinstance(ask(SLUG), NotApplicable)
    assert isinstance(ask(SLUG, Preflight(culprits=[], finished=True)), Fine)
