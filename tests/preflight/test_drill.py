"""What may be asked for by --drill, and to whom it is told."""

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from gpucheck.cluster.job_plan import FORMS, Drill, DrillFault, parse_drill


def test_every_form_that_is_offered_is_understood() -> None:
    found = parse_drill(FORMS.split(", "))
    assert [(one.name, one.rank) for one in found.faults] == [
        ("hang", 3), ("wrong", 5), ("slow", 2), ("crash", 1), ("stop", 4), ("absent", 6),
        ("link", 0),
    ]  # fmt: skip
    assert found.faults[2].factor == 5.0
    assert found.faults[-1].other == 3
    assert found.text == FORMS.replace(", ", " ")


def test_only_the_worker_of_its_rank_is_told() -> None:
    drill = parse_drill(["hang:rank=3", "slow:rank=2,factor=2.5", "link:4-2", "absent:rank=6"])
    told = {rank: drill.for_worker(rank) for rank in range(8)}
    assert {rank for rank, order in told.items() if order} == {2, 3}
    assert told[3] == {"faults": [{"fault": "hang"}]}
    assert told[2] == {"faults": [{"fault": "slow", "factor": 2.5}, {"fault": "link", "other": 4}]}
    assert drill.absent == {6}


def test_no_drill() -> None:
    assert not parse_drill([])
    assert parse_drill(["hang:rank=0"])
    assert Drill().for_worker(0) is None
    assert Drill().problem(1) == ""


def test_slow_has_a_usual_factor() -> None:
    assert parse_drill(["slow:rank=1"]).faults == (DrillFault(name="slow", rank=1, factor=5.0),)


@each(
    ("text", "ranks", "said"),
    [
        ("hang:rank=7", 8, ""),
        ("hang:rank=8", 8, "--drill names rank 8, but the ranks are 0 to 7"),
        ("link:0-9", 8, "--drill names rank 9, but the ranks are 0 to 7"),
        ("absent:rank=1", 1, "--drill names rank 1, but the only rank is 0"),
    ],
)
def test_a_rank_that_is_not_there(text: str, ranks: int, said: str) -> None:
    assert parse_drill([text]).problem(ranks) == said


@each(
    ("text", "said"),
    [
        ("", "a drill is one of"),
        ("explode:rank=1", "a drill is one of"),
        ("hang", "say which rank, as in hang:rank=3"),
        ("hang:", "say which rank, as in hang:rank=3"),
        ("hang:3", "'3' is not understood"),
        ("hang:rank=", "say which rank"),
        ("hang:rank=-1", "say which rank"),
        ("hang:rank=1.5", "say which rank"),
        ("hang:rank=1234567", "say which rank"),
        ("hang:rank=\u0663", "say which rank"),
        ("hang:rank=1,rank=2", "'rank=2' is not understood"),
        ("hang:rank=1,factor=2", "hang does not take 'factor'"),
        ("slow:rank=1,factor=1", "from 1.1 to 1000"),
        ("hang:rank =1", "say which rank"),
        ("hang:rank=1\n2", "say which rank"),
        ("slow:rank=1,factor=nan", "from 1.1 to 1000"),
        ("slow:rank=1,factor=inf", "from 1.1 to 1000"),
        ("slow:rank=1,factor=fast", "from 1.1 to 1000"),
        ("link:3", "a link has two ranks, as in link:0-3"),
        ("link:3-3", "a link has two ranks, as in link:0-3"),
        ("link:rank=3", "a link has two ranks, as in link:0-3"),
        ("link:1-2-3", "a link has two ranks, as in link:0-3"),
    ],
)
def test_what_is_not_understood_has_one_clear_sentence(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=r"^--drill ") as caught:
        parse_drill([text])
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_long_or_ugly_text_is_shown_in_short_and_escaped() -> None:
    with pytest.raises(ValueError, match=r"^--drill ") as caught:
        parse_drill(["hang:rank=\x1b[31m\n" + "x" * 10_000])
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


@pytest.mark.exhaustive
@given(st.text(max_size=40))
def test_any_text_is_a_drill_or_a_sentence(text: str) -> None:
    for given_text in (text, "slow:" + text, "link:" + text, "hang:rank=" + text):
        try:
            drill = parse_drill([given_text])
        except ValueError as error:
            assert str(error).startswith("--drill ")  # noqa: PT017  # it need not be raised
        else:
            assert 0 <= drill.faults[0].rank < 1_000_000
            assert drill.text.isprintable()


def test_on_gpus_who_is_absent_is_a_task() -> None:
    assert parse_drill(["absent:rank=3", "hang:rank=31"]).lacks_task(4) == ""
    assert parse_drill(["hang:rank=31"]).lacks_task(4) == ""
    assert parse_drill(["absent:rank=4"]).lacks_task(4) == (
        "--drill absent:rank=4: on GPUs the whole task of that number stays away, and the last "
        "task is 3"
    )
