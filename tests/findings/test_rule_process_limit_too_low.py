"""process-limit-too-low: a rank whose own error says so, or an address space that is too small."""

import pytest
from rules_support import TABLES, ask, snapshot

from gpucheck.cluster import session
from gpucheck.cluster.files import exclusion
from gpucheck.engine import diagnose
from gpucheck.facts import UnknownFactError
from gpucheck.facts.preflight import Culprit, Preflight, RankOutcome
from gpucheck.facts.system import LimitsOfProcess
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable

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
    assert session.ending(diagnosis.standing, preflight, "error").status == 4
    assert exclusion(preflight).hosts == ()


def judge(limit: int, mapped: int | None = 600 << 20) -> Judgement:
    torch = TorchBuild(installed=True, mapped_bytes=mapped)
    return ask(SLUG, LimitsOfProcess(address_space_bytes=limit), torch)


def test_an_address_space_that_is_too_small_for_the_libraries_alone() -> None:
    found = judge(500 << 20)
    assert isinstance(found, Hit)
    assert "ulimit -v allows 500 MiB" in found.headline
    assert found.fixes[0].commands == ("ulimit -v unlimited",)


def test_an_address_space_into_which_they_fit() -> None:
    assert isinstance(judge(700 << 20), Fine)
    assert isinstance(judge(-1, None), Fine)


def test_a_limit_whose_libraries_are_unknown() -> None:
    with pytest.raises(UnknownFactError, match=r"torch\.mapped_bytes"):
        judge(500 << 20, None)


def test_without_torch() -> None:
    assert isinstance(ask(SLUG, TorchBuild(installed=False)), NotApplicable)
