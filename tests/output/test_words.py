import time

import pytest

from gpucheck.language import speaking, spoken
from gpucheck.output.words import clean, counted, shown, size


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("plain", "plain"),
        ("caf\u00e9 \u4e2d\u6587", "caf\u00e9 \u4e2d\u6587"),
        ("two\nlines\tand \u00a0 blanks ", "two lines and blanks"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x9b31m\x7f\x00", "\\x9b31m\\x7f\\x00"),
        ("a\u202eb\u2066c\u200bd\ufeff", "a\\u202eb\\u2066c\\u200bd\\ufeff"),
        ("lone \udc80", "lone \\udc80"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
    ],
)
def test_nothing_untrusted_acts_or_hides(text: str, safe: str) -> None:
    assert clean(text) == safe


def test_long_text_is_cut() -> None:
    assert clean("x" * 1000, 10) == "xxxxxxx..."


@pytest.mark.parametrize(
    ("value", "field", "words"),
    [
        (None, "", "unknown"),
        (True, "", "yes"),
        (False, "", "no"),
        (0, "", "0"),
        ("", "", "none"),
        ([], "", "none"),
        (["a", "b"], "", "a, b"),
        (67108864, "shm_total_bytes", "64 MiB"),
        (85899345920, "memory_total_bytes", "80 GiB"),
        (1610612736, "memory_total_bytes", "1.5 GiB"),
        (-1, "memlock_bytes", "unlimited"),
        (512, "memlock_bytes", "512 bytes"),
        ({"a": "1", "b": None}, "", "a=1"),
        (
            {"torch": "==2.5.1", "numpy": ">=1.26,<3"},
            "requirements",
            "torch==2.5.1, numpy>=1.26,<3",
        ),
        ({"searched": "PATH, Windows", "why": "no"}, "", 'searched="PATH, Windows", why=no'),
        ({"names": ["a", "b"], "one": ["c"]}, "", "names=[a, b], one=c"),
        ([{"device_name": "NVIDIA T4", "sources": {"*": "NVML"}}], "gpus", "NVIDIA T4"),
        (
            [{"pid": 42, "used_bytes": 1 << 30, "process_name": "python3"}],
            "",
            "python3 (pid 42): 1 GiB",
        ),
        ([{"pid": 1, "used_bytes": "?", "process_name": "a"}], "", "a (pid 1): ?"),
        ([{"pid": 42, "used_bytes": None, "process_name": ""}], "", "pid 42"),
        ({"a": ["x", "y"], "b": ["z"]}, "", "a=[x, y], b=z"),
        ({"tried": [{"env": "A=1", "verdict": "passed"}]}, "", "tried=[env=A=1, verdict=passed]"),
        ({"requirements": {"torch": "==2.5.1"}}, "", "requirements=[torch==2.5.1]"),
        ({"project": "nccl", "specifier": "==2.27.5"}, "", 'project=nccl, specifier="==2.27.5"'),
        ({"searched": "rpath, default", "fatal": True}, "", 'searched="rpath, default", fatal=yes'),
        ([{"project": "torch", "version": "2.6.0"}], "", "torch 2.6.0"),
        ([{"xid": None, "seconds_ago": 3.5}], "", "seconds_ago=3.5"),
        ([True] * 3 + [False], "nvlinks", "3 x yes, no"),
        (list(range(15)), "", "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 3 more"),
    ],
)
def test_values_as_a_person_reads_them(value: object, field: str, words: str) -> None:
    assert shown(value, field) == words


def test_counts_and_sizes() -> None:
    assert counted(["NVIDIA T4"]) == "NVIDIA T4"
    assert counted(["A", "B", "A"]) == "2 x A, 1 x B"
    assert size(0) == "0 bytes"


def test_phrases_of_gpucheck_among_the_facts_are_translated_and_words_of_others_are_not() -> None:
    with speaking("zh"):
        assert spoken(shown("not found", "why")) == "没有找到"
        assert spoken(shown("none", "NVIDIA_VISIBLE_DEVICES")) == "none"
        assert spoken(shown("file too short", "why")) == "file too short"


def test_of_many_kinds_a_few_are_counted() -> None:
    assert counted(["A", "B", "A"]) == "2 x A, 1 x B"
    names = ["A", "A", *(f"X{number}" for number in range(60_000))]
    begun = time.process_time()
    words = counted(names)
    assert time.process_time() - begun < 5
    assert words.startswith("2 x A, 1 x X0, ")
    assert words.endswith("1 x X10 and 59989 more")
