"""How much a text speaks for a cause: the strongest message, and what facts add to it."""

from each import each

from gpucheck.facts.claims import Confidence
from gpucheck.findings.form import Weight
from gpucheck.log_patterns.form import Message, Strength
from gpucheck.log_patterns.matcher import Match
from gpucheck.log_patterns.text import Line
from gpucheck.ticket.weighing import of_facts, of_messages

NAMES, POINTS, FITS, SYMPTOM = (Weight(strength.level) for strength in Strength)


def match(strength: Strength, tie_break: int = 0) -> Match:
    message = Message(
        name="a line",
        strength=strength,
        tie_break=tie_break,
        literal="a line",
        pattern="a line",
        says="",
        sample="",
        other="",
    )
    return Match("out-of-memory", message, Line(1, "a line"), {})


def test_the_strengths_are_in_order() -> None:
    assert NAMES > POINTS > FITS > SYMPTOM


def test_the_strongest_message_counts_whatever_the_tie_breaks() -> None:
    matches = [match(Strength.SYMPTOM, 9), match(Strength.FITS, -1), match(Strength.FITS, 2)]
    assert of_messages(matches) == FITS._replace(tie_break=2)
    assert of_messages([*matches, match(Strength.POINTS)]) == POINTS


@each(
    ("confidence", "message_weight", "weight"),
    [
        (Confidence.CERTAIN, None, POINTS),
        (Confidence.LIKELY, None, POINTS),
        (Confidence.POSSIBLE, None, SYMPTOM),
        (Confidence.CERTAIN, NAMES, NAMES._replace(agreed=True)),
        (Confidence.POSSIBLE, POINTS, POINTS._replace(agreed=True)),
        (Confidence.LIKELY, FITS._replace(tie_break=1), POINTS),
        (Confidence.POSSIBLE, FITS._replace(tie_break=1), FITS._replace(tie_break=1)),
    ],
)
def test_facts_agree_with_a_message_that_points_to_the_same(
    confidence: Confidence, message_weight: Weight | None, weight: Weight
) -> None:
    assert of_facts(confidence, message_weight) == weight
