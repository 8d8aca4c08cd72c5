"""Claims of several witnesses combined: what is disproved, suppressed, and in which order."""

from rules_support import TABLES, snapshot

from gpucheck.engine import CheckResult, Diagnosis, combine
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.request import Pasted
from gpucheck.facts.selftests import SelfTest, SelfTests
from gpucheck.findings.form import Check, Claim, Hit, Outcome, Rule, Weight

NAMES, POINTS, FITS = Weight(4), Weight(3), Weight(2)
CUDA_WORKS = Pasted(cuda_available=True)
PASSED = SelfTests(
    devices=["cuda:0"], results=[SelfTest(name="sum", device="cuda:0", status="passed")]
)


def rule(slug: str, **header: object) -> Rule:
    fields = {"title": slug, "severity": Severity.ERROR, "family": "torch", **header}
    return Rule(slug, **fields)  # type: ignore[arg-type]  # of its fields


def claim(slug: str, weight: Weight | None = None, **more: object) -> Claim:
    rated = {name: more.pop(name) for name in ("severity", "confidence") if name in more}
    hit = Hit(headline=f"{slug} it is", evidence=(), fixes=(Fix(text="mend it"),), **rated)  # type: ignore[arg-type]
    return Claim(slug=slug, hit=hit, weight=weight, **more)  # type: ignore[arg-type]


def outcome(slug: str, what: Outcome) -> Check:
    return Check(slug=slug, outcome=what, reason="as the check says")


def judged(
    rules: list[Rule], results: list[CheckResult], claims: tuple[Claim, ...] = (), **seen: object
) -> Diagnosis:
    here = snapshot(*seen.values())  # type: ignore[arg-type]  # sections
    by_slug = {result.slug: result for result in results}
    return combine({own_rule.slug: own_rule for own_rule in rules}, by_slug, claims, here, TABLES)


def texts(weights: dict[str, Weight], **header: object) -> Diagnosis:
    """Return what comes of a text whose messages weigh so much."""
    rules = [rule(slug, **header) for slug in weights]
    results: list[CheckResult] = [outcome(slug, Outcome.NOT_APPLICABLE) for slug in weights]
    return judged(rules, results, tuple(claim(*arguments) for arguments in weights.items()))


def standing(found: Diagnosis) -> list[str]:
    return [finding.slug for finding in found.standing]


def test_a_symptom_stands_unless_the_check_has_looked_and_is_fine() -> None:
    for what, expected in (
        (Outcome.FINE, []), (Outcome.NOT_APPLICABLE, ["a"]), (Outcome.UNKNOWN, ["a"]),
        (Outcome.CRASHED, ["a"]),
    ):  # fmt: skip
        found = judged([rule("a")], [outcome("a", what)], (claim("a", FITS, stands=False),))
        assert standing(found) == expected
    assert standing(judged([rule("a")], [outcome("a", Outcome.FINE)], (claim("a", NAMES),))) == [
        "a"
    ]


def test_the_check_speaks_first_and_the_gravest_severity_counts() -> None:
    mild = claim("a", severity=Severity.WARNING, confidence=Confidence.LIKELY)
    (found,) = judged([rule("a")], [mild], (claim("a", severity=Severity.ERROR),)).findings
    assert (found.severity, found.confidence) == (Severity.ERROR, Confidence.LIKELY)


def test_a_place_speaks_before_the_check() -> None:
    seen = Claim(slug="a", hit=Hit(headline="there", evidence=(), fixes=()), place="rank 5")
    for here in (claim("a"), outcome("a", Outcome.FINE), outcome("a", Outcome.CRASHED)):
        found = judged([rule("a", refuted_by=("sum",))], [here], (seen,), tests=PASSED)
        assert [finding.headline for finding in found.findings] == ["there"]


def test_a_claim_about_a_rule_that_was_not_asked_is_left_out() -> None:
    assert judged([rule("a")], [outcome("a", Outcome.FINE)], (claim("b"),)).findings == ()


def test_a_cuda_that_started_disproves_what_facts_say_and_no_message_names() -> None:
    always, symptom = rule("a", refuted_by_cuda="always"), rule("b", refuted_by_cuda="symptom")
    rules, both = [always, symptom, rule("c")], [claim(slug, POINTS) for slug in "abc"]
    found = judged(rules, [*both], pasted=CUDA_WORKS)
    assert standing(found) == ["b", "c"]
    assert found.checks[0].outcome is Outcome.FINE
    assert standing(judged(rules, [*both])) == ["a", "b", "c"]
    assert standing(judged(rules, [*both], (claim("a", NAMES),), pasted=CUDA_WORKS))[0] == "a"


def test_what_is_weaker_than_the_first_is_suppressed() -> None:
    found = texts({"a": POINTS._replace(agreed=True), "b": NAMES, "c": NAMES})
    assert standing(found) == ["b", "c"]
    assert [finding.silenced_by for finding in found.findings] == [None, None, "b"]
    assert {check.slug: check.outcome for check in found.checks}["a"] is Outcome.SILENCED


def test_findings_of_the_same_strength_stand_in_the_order_of_their_weight() -> None:
    weights = {"a": FITS, "b": FITS._replace(tie_break=1), "c": FITS._replace(agreed=True)}
    assert standing(texts(weights)) == ["c", "b", "a"]


def test_no_more_than_three_errors_of_a_text_stand() -> None:
    assert standing(texts(dict.fromkeys("dcba", FITS))) == ["a", "b", "c"]
    four = dict.fromkeys("dcba", FITS)
    assert len(texts(four, severity=Severity.WARNING).standing) == 4


def test_what_was_seen_on_a_machine_is_never_outweighed() -> None:
    results: list[CheckResult] = [claim(slug) for slug in "dcba"]
    assert standing(judged([rule(slug) for slug in "dcba"], results)) == ["a", "b", "c", "d"]


def test_what_explains_must_weigh_as_much() -> None:
    rules = [rule("cause"), rule("other", suppressed_by=("cause",))]
    more = FITS._replace(tie_break=1)
    for weight, left in ((more, ["cause"]), (FITS, ["other", "cause"])):
        results: list[CheckResult] = [claim("cause", weight), claim("other", more)]
        assert standing(judged(rules, results)) == left
