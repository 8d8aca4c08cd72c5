"""Of the findings of a text the strongest is the cause; numbers only break ties."""

import pytest

from gpucheck.findings import Confidence, Evidence, Finding, Severity
from gpucheck.messages.form import Message, Strength
from gpucheck.messages.matcher import Match
from gpucheck.messages.text import Line
from gpucheck.ticket.weighing import echoes, weigh

SAID = Evidence(fact="pasted.signs.0.text", value="a line", source="line 1")
FACT = Evidence(fact="driver.release", value="470.82", source="line 2")
FIRST, SECOND, THIRD, FOURTH = (
    "compiler-missing",
    "shm-too-small",
    "toolkit-missing",
    "torch-python-unsupported",
)
"""None of their rules yields to another."""


def finding(slug: str, *evidence: Evidence, confidence: Confidence = Confidence.LIKELY) -> Finding:
    return Finding(
        slug=slug,
        severity=Severity.ERROR,
        confidence=confidence,
        headline="",
        evidence=evidence or (SAID,),
    )


def match(slug: str, strength: Strength, tie_break: int = 0) -> Match:
    message = Message(
        name=f"{strength.value}{tie_break}",
        strength=strength,
        tie_break=tie_break,
        literal="a line",
        pattern="a line",
        says="",
        sample="",
        other="",
    )
    return Match(slug, message, Line(1, "a line"), {})


def order(findings: list[Finding], *matches: Match) -> tuple[list[str], dict[str, str]]:
    """Return the slugs, the weightiest first, and which of them are echoes of which."""
    weights = weigh(findings, matches)
    slugs = sorted(weights, key=lambda slug: (weights[slug].place, slug))
    return slugs, echoes(findings, weights)


@pytest.mark.parametrize(
    ("stronger", "weaker"),
    [
        (Strength.NAMES, Strength.POINTS),
        (Strength.POINTS, Strength.FITS),
        (Strength.FITS, Strength.SYMPTOM),
    ],
)
def test_a_weaker_finding_is_an_echo(stronger: Strength, weaker: Strength) -> None:
    findings = [finding(FIRST), finding(SECOND)]
    slugs, silenced = order(findings, match(FIRST, weaker, 9), match(SECOND, stronger))
    assert slugs == [SECOND, FIRST]
    assert silenced == {FIRST: SECOND}


def test_findings_of_the_same_strength_stand_in_the_order_of_their_tie_breaks() -> None:
    findings = [finding(FIRST), finding(SECOND), finding(THIRD)]
    matches = [match(slug, Strength.POINTS) for slug in (FIRST, SECOND)]
    slugs, silenced = order(findings, *matches, match(THIRD, Strength.POINTS, 1))
    assert slugs == [THIRD, FIRST, SECOND]
    assert silenced == {}


def test_the_strongest_message_of_a_finding_counts() -> None:
    findings = [finding(FIRST), finding(SECOND)]
    many = [match(FIRST, Strength.SYMPTOM), match(FIRST, Strength.FITS, 2)]
    slugs, silenced = order(findings, *many, match(SECOND, Strength.FITS, 1))
    assert (slugs, silenced) == ([FIRST, SECOND], {})


def test_where_facts_and_a_message_agree_it_comes_first() -> None:
    findings = [finding(FIRST), finding(SECOND, FACT, SAID)]
    slugs, silenced = order(findings, match(FIRST, Strength.POINTS), match(SECOND, Strength.POINTS))
    assert (slugs, silenced) == ([SECOND, FIRST], {})


def test_facts_alone_are_weaker_than_a_message_that_names_its_cause() -> None:
    findings = [finding(FIRST, FACT, confidence=Confidence.CERTAIN), finding(SECOND)]
    assert order(findings, match(SECOND, Strength.NAMES))[1] == {FIRST: SECOND}
    assert order(findings, match(SECOND, Strength.FITS))[1] == {SECOND: FIRST}


def test_at_most_three_stand() -> None:
    slugs = (FIRST, SECOND, THIRD, FOURTH)
    matches = [match(slug, Strength.FITS) for slug in slugs]
    assert order([finding(slug) for slug in slugs], *matches)[1] == {FOURTH: FIRST}


def test_a_finding_yields_to_one_that_weighs_as_much_and_to_no_lighter_one() -> None:
    findings = [finding("out-of-memory"), finding("gpu-memory-held")]
    held = match("gpu-memory-held", Strength.POINTS)
    equal = order(findings, match("out-of-memory", Strength.POINTS), held)
    assert equal[1] == {"out-of-memory": "gpu-memory-held"}
    heavier = order(findings, match("out-of-memory", Strength.POINTS, 1), held)
    assert heavier == (["out-of-memory", "gpu-memory-held"], {})
