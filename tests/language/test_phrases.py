"""Phrases that sentences are made of: at the beginning, with how many more, and in Chinese."""

from each import each
from rules_support import ask
from selftest_facts import ran, result

from gpucheck.facts.preflight import Culprit, Preflight, RankOutcome
from gpucheck.findings import all_rules
from gpucheck.findings.form import Hit
from gpucheck.findings.witnesses.preflight_says import PreflightSays
from gpucheck.language import Sentence, and_more, say, speaking, spoken


def test_a_phrase_at_the_beginning_has_a_capital_and_keeps_its_key() -> None:
    phrase = say("a {thing} is stuck", thing="rank").at_start()
    assert phrase == "A rank is stuck"
    assert phrase.key == "a {thing} is stuck"
    assert phrase.mapped(str.upper) == "A RANK is stuck"


def test_how_many_more_there_are_is_said_only_if_there_are_some() -> None:
    sentence = say("a rank died")
    assert and_more(sentence, 0) is sentence
    more = and_more(sentence, 2)
    assert more == "a rank died (and 2 more)"
    with speaking("zh"):
        assert spoken(more).endswith("（另有 2 处）")


@each("count", [1, 3])
def test_a_culprit_is_named_in_chinese(count: int) -> None:
    hosts = tuple(f"node{at}" for at in range(count))
    culprits = [Culprit(slug="rank-hangs", hosts=hosts, evidence="no answer")] * 2
    preflight = Preflight(ranks=[RankOutcome(rank=0, task=0)], culprits=culprits)
    (claim,) = PreflightSays(preflight).claims()
    assert claim.hit.headline == (
        "A rank is stuck: "
        + ("host node0" if count == 1 else "hosts node0, node1, node2")
        + ": no answer (and 1 more)"
    )
    with speaking("zh"):
        words = spoken(claim.hit.headline)
    assert "主机 node0" in words
    assert "A rank" not in words
    assert words.endswith("（另有 1 处）")


@each(
    ("slug", "kind", "status"),
    [("selftest-failed", "error", "failed"), ("wrong-result", "wrong-value", "failed")],
)
def test_a_self_test_that_failed_is_told_in_chinese(slug: str, kind: str, status: str) -> None:
    found = ask(slug, ran(result("cublas-matmul", status, kind=kind, detail="fp32: 3.1")))
    assert isinstance(found, Hit)
    with speaking("zh"):
        assert spoken(found.headline).startswith("自检 cublas-matmul ")
        assert all(spoken(fix.text) != fix.text for fix in found.fixes)


def test_the_title_of_every_finding_is_a_sentence() -> None:
    assert all(isinstance(rule.title, Sentence) for rule in all_rules().values())
