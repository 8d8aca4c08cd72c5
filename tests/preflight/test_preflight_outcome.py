"""The exit status: 1, 4, 3, 5 in this order, nothing below --fail-on, and no drill with 0."""

from typing import get_args

import msgspec
import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from gpucheck.cluster.session import Ending, ending
from gpucheck.engine import Diagnosis, FailOn, counts
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Culprit, Preflight
from gpucheck.findings import all_rules
from gpucheck.findings.form import Finding, PreflightClass

GOOD = Preflight(culprits=[], finished=True)
RANK_OF = {1: 0, 4: 1, 3: 2, 5: 3, 0: 4}
SLUGS = sorted(all_rules())


def finding(slug: str, severity: Severity = Severity.ERROR, by: str | None = None) -> Finding:
    return Finding(
        slug=slug, severity=severity, confidence=Confidence.CERTAIN, headline="", silenced_by=by
    )


def test_all_is_well() -> None:
    assert ending([], GOOD, "error") == Ending(0, "healthy")
    information = finding("newer-than-tables", Severity.INFO)
    assert ending([information], GOOD, "warning").status == 0


@each(
    ("slugs", "status", "word"),
    [
        (["rank-hangs"], 1, "culprit"),
        (["wrong-result", "ranks-heterogeneous"], 1, "culprit"),
        (["ranks-heterogeneous"], 4, "misconfiguration"),
        (["torch-missing", "gpu-slow"], 4, "misconfiguration"),
        (["nccl-timeout", "link-slow"], 3, "inconclusive"),
        (["gpu-slow"], 5, "slow"),
        (["gpu-slow", "nvlink-down"], 1, "culprit"),
    ],
)
def test_the_first_of_1_4_3_5(slugs: list[str], status: int, word: str) -> None:
    found = ending([finding(slug) for slug in slugs], GOOD, "error")
    assert (found.status, found.word) == (status, word)


@each(
    ("confidence", "ranks", "status"),
    [
        (Confidence.CERTAIN, (0, 3), 1),
        (Confidence.LIKELY, (0, 3), 1),
        (Confidence.POSSIBLE, (0, 3), 3),
        (Confidence.CERTAIN, (), 3),
    ],
)
def test_a_link_that_is_named_is_a_culprit(
    confidence: Confidence, ranks: tuple[int, ...], status: int
) -> None:
    link = Culprit(slug="nccl-timeout", ranks=ranks, is_link=True, confidence=confidence)
    found = msgspec.structs.replace(GOOD, culprits=[link])
    assert ending([finding("nccl-timeout")], found, "error").status == status


def test_a_warning_counts_where_it_is_asked_for() -> None:
    warning = [finding("memlock-too-low", Severity.WARNING)]
    assert ending(warning, GOOD, "error").status == 0
    assert ending(warning, GOOD, "warning").status == 4
    assert ending([finding("rank-hangs")], GOOD, "never").status == 0


def test_only_findings_that_stand_are_counted() -> None:
    both = (finding("nvlink-down"), finding("link-slow", by="nvlink-down"))
    assert ending(Diagnosis(both, ()).standing, GOOD, "error").status == 1
    assert ending(Diagnosis(both[1:], ()).standing, GOOD, "error").status == 0


@each(
    ("preflight", "why"),
    [
        (Preflight(culprits=[], finished=False, stopped_because="time is out"), "time is out"),
        (Preflight(culprits=[], finished=True, inconclusive="from 8 ranks on"), "from 8 ranks on"),
        (Preflight(problems={"*": "no store"}), "no store"),
        (Preflight(), "the pre-flight was not run"),
    ],
)
def test_what_is_open_is_inconclusive_unless_a_culprit_is_named(
    preflight: Preflight, why: str
) -> None:
    assert ending([], preflight, "error") == Ending(3, "inconclusive", why)
    assert ending([finding("gpu-slow")], preflight, "error").status == 3
    assert ending([finding("rank-crashed")], preflight, "error") == Ending(1, "culprit")
    assert ending([finding("shm-too-small")], preflight, "error").status == 4
    assert ending([], preflight, "never").status == 0


def test_a_lost_store_says_so() -> None:
    assert ending([], GOOD, "error", store_lost="the store fell silent") == Ending(
        3, "inconclusive", "the store fell silent"
    )


def test_a_culprit_that_no_rule_knows_is_not_passed_by() -> None:
    strange = Preflight(culprits=[Culprit(slug="gremlins")], finished=True)
    assert ending([], strange, "error").status == 1
    known = Preflight(culprits=[Culprit(slug="rank-hangs")], finished=True)
    assert ending([], known, "error").status == 0  # --skip rank-hangs


@each("fail_on", get_args(FailOn))
def test_a_drill_that_was_not_noticed_is_inconclusive(fail_on: FailOn) -> None:
    drill = Preflight(culprits=[], finished=True, drill="hang:rank=3")
    found = ending([], drill, fail_on)
    assert found == Ending(3, "inconclusive", "this was a drill, and the fault was not noticed")
    seen = Preflight(culprits=[Culprit(slug="rank-hangs")], finished=True, drill="hang:rank=3")
    assert ending([finding("rank-hangs")], seen, "never").status == 3


FINDINGS = st.lists(
    st.builds(
        finding,
        st.sampled_from(SLUGS),
        st.sampled_from(Severity),
        st.sampled_from([None, "driver-missing"]),
    ),
    max_size=6,
)
PREFLIGHTS = st.builds(
    Preflight,
    culprits=st.sampled_from([None, []]),
    finished=st.sampled_from([None, False, True]),
    inconclusive=st.sampled_from(["", "nobody can be named"]),
    drill=st.sampled_from(["", "crash:rank=1"]),
)
FAIL_ON = st.sampled_from(get_args(FailOn))


@pytest.mark.exhaustive
@given(FINDINGS, PREFLIGHTS, FAIL_ON)
def test_the_status_is_one_of_the_five_and_a_drill_never_ends_well(
    findings: list[Finding], preflight: Preflight, fail_on: FailOn
) -> None:
    standing = Diagnosis(tuple(findings), ()).standing
    found = ending(standing, preflight, fail_on)
    assert found.status in RANK_OF
    if preflight.drill:
        assert found.status != 0
    counted = {
        all_rules()[one.slug].preflight_class for one in standing if counts(one.severity, fail_on)
    }
    assert all(RANK_OF[found.status] <= RANK_OF[one] for one in counted)
    assert found.status in counted | {0, 3}


@pytest.mark.exhaustive
@given(FINDINGS, st.sampled_from(SLUGS), PREFLIGHTS, FAIL_ON)
def test_one_finding_more_never_makes_it_better(
    findings: list[Finding], slug: str, preflight: Preflight, fail_on: FailOn
) -> None:
    """Of a drill that is not so: an unnoticed one is inconclusive, and a finding may notice it."""
    preflight = msgspec.structs.replace(preflight, drill="")
    before = ending(findings, preflight, fail_on)
    after = ending([*findings, finding(slug)], preflight, fail_on)
    assert RANK_OF[after.status] <= RANK_OF[before.status]


def test_every_rule_has_a_class() -> None:
    assert {rule.preflight_class for rule in all_rules().values()} == set(get_args(PreflightClass))
    of = {slug: rule.preflight_class for slug, rule in all_rules().items()}
    for slug in ("rank-missing", "rank-hangs", "rank-crashed", "wrong-result", "nvlink-down",
                 "nccl-p2p-broken", "nccl-transport-broken", "nccl-infiniband",
                 "gpu-fallen-off-bus"):  # fmt: skip
        assert of[slug] == 1, slug
    for slug in ("ranks-heterogeneous", "nccl-version-mismatch", "shm-too-small",
                 "memlock-too-low", "rendezvous-failed", "torch-missing", "driver-too-old",
                 "torch-import-broken", "requirement-not-met"):  # fmt: skip
        assert of[slug] == 4, slug
    assert of["gpu-slow"] == of["link-slow"] == 5
    assert of["nccl-timeout"] == 3
