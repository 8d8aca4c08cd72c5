"""rank-slow: a rank that makes the others wait, in a pre-flight and nowhere else."""

import msgspec
from each import each
from rules_support import TABLES, ask, snapshot

from gpucheck.cluster import session
from gpucheck.cluster.files import exclusion
from gpucheck.engine import diagnose
from gpucheck.facts import builtins
from gpucheck.facts.claims import Severity
from gpucheck.facts.preflight import Culprit, Preflight, RankOutcome, Throttled
from gpucheck.findings.form import Fine, NotApplicable
from gpucheck.findings.ranks import RAISE_THE_LIMIT

SLUG = "rank-slow"
LATE = Culprit(
    slug=SLUG, rank=3, ranks=(3,), host="n1", hosts=("n1",),
    evidence="made the others wait 3.0 s in each of 13 collectives of 13",
)  # fmt: skip
RANKS = [RankOutcome(rank=at, task=at, host=f"n{at // 2}") for at in range(4)]


@each(("severity", "status"), [(Severity.ERROR, 5), (Severity.WARNING, 0)])
def test_a_late_rank_is_slow_and_leaves_no_host_out(severity: Severity, status: int) -> None:
    late = Culprit(**{**builtins(LATE), "severity": severity})
    preflight = Preflight(culprits=[late], ranks=RANKS, finished=True)
    diagnosis = diagnose(snapshot(preflight), TABLES)
    (found,) = diagnosis.findings
    assert found.slug == SLUG
    assert "3.0 s in each of 13" in found.headline
    assert session.ending(diagnosis.standing, preflight, "error").status == status
    assert exclusion(preflight).hosts == ()


def test_a_limit_on_processor_time_is_to_be_raised() -> None:
    limit = Throttled(throttled=119, periods=124, fixes=[RAISE_THE_LIMIT])
    held = msgspec.structs.replace(LATE, data=limit)
    preflight = Preflight(culprits=[held], ranks=RANKS, finished=True)
    (found,) = diagnose(snapshot(preflight), TABLES).findings
    assert [fix.text for fix in found.fixes] == [RAISE_THE_LIMIT.text]


def test_nothing_else_shows_it() -> None:
    assert isinstance(ask(SLUG), NotApplicable)
    assert isinstance(ask(SLUG, Preflight(culprits=[], finished=True)), Fine)
