from each import each

from gpucheck.findings import all_rules
from gpucheck.tables.meant_products import did_you_mean, nearest, same_name


@each(
    ("typed", "meant"),
    [
        ("driver-to-old", "driver-too-old"),
        ("too-old-driver", "driver-too-old"),
        ("no-gpu", "container-no-gpu"),
        ("torch_misssing", "torch-missing"),
        ("nvlink", "nvlink-down"),
        ("mismatch driver library", "driver-library-mismatch"),
    ],
)
def test_a_mistyped_name_has_the_meant_one_among_the_nearest(typed: str, meant: str) -> None:
    assert meant in nearest(typed, all_rules())


@each("typed", ["", "xyzzy", "a", "lorem-ipsum-dolor-sit-amet"])
def test_a_name_like_no_other_gets_no_guess(typed: str) -> None:
    assert nearest(typed, all_rules()) == []
    assert did_you_mean(typed, all_rules()) == ""


def test_the_question_ends_a_refusal() -> None:
    assert did_you_mean("eror", ("error", "warning")) == "Did you mean error?"


def test_case_and_separators_make_no_other_name() -> None:
    assert same_name("Driver_Too_OLD", all_rules()) == "driver-too-old"
    assert same_name("driver-to-old", all_rules()) is None
