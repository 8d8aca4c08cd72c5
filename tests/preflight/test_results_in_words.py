"""The sentence of a result stays one on its way to task 0, so that it can be translated there."""

import msgspec
from each import each

from gpucheck.cluster.model import RankResult
from gpucheck.language import Sentence, plain, say, speaking, spoken

LATE = say("the process that forks the workers did not respond")


def _sent(result: RankResult) -> RankResult:
    return msgspec.json.decode(msgspec.json.encode(result, enc_hook=plain), type=RankResult)


def test_a_sentence_arrives_as_one() -> None:
    found = _sent(RankResult(rank=3, status="timed-out", detail=LATE)).detail
    assert isinstance(found, Sentence)
    with speaking("zh"):
        assert spoken(found) == spoken(LATE) != str(LATE)


def test_words_of_a_program_stay_as_they_are() -> None:
    result = RankResult(rank=3, status="failed", detail="RuntimeError: no")
    assert b"said" not in msgspec.json.encode(result)
    assert type(_sent(result).detail) is str


@each("said", [{}, {"detail": 3}, {"detail": {"key": "{a.__class__}"}}])
def test_what_another_task_forged_changes_nothing(said: object) -> None:
    data = {"rank": 0, "status": "failed", "detail": "text", "said": said}
    assert type(msgspec.convert(data, RankResult).detail) is str


def test_another_detail_takes_the_place_of_a_sentence() -> None:
    result = RankResult(rank=3, status="failed", detail=LATE)
    assert msgspec.structs.replace(result, detail="else").detail == "else"
