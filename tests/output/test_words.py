import time

from each import each

from gpucheck.language import Sentence, say, speaking, spoken
from gpucheck.language.visible import is_visible
from gpucheck.output.words import clean, counted, printable, product_named, shown, size


@each(
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


@each(
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
    assert counted(["NVIDIA H100", "NVIDIA T4"]) == "NVIDIA H100 and NVIDIA T4"
    assert counted([]) == ""
    assert counted(["A", "B", "A"]) == "2 x A, 1 x B"
    assert size(0) == "0 bytes"


def test_products_that_share_a_device_id_are_one_gpu() -> None:
    assert product_named("NVIDIA A2") == "NVIDIA A2"
    assert product_named("NVIDIA A16 / NVIDIA A2") == "NVIDIA A16 or NVIDIA A2"
    assert shown([{"product": "NVIDIA A16 / NVIDIA A2", "address": "0000:01:00.0"}]) == (
        "NVIDIA A16 or NVIDIA A2"
    )


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


_DEFAULT_IGNORABLE = (
    "00ad 034f 061c 115f-1160 17b4-17b5 180b-180f 200b-200f 202a-202e 2060-206f 3164 fe00-fe0f "
    "feff ffa0 fff0-fff8 1bca0-1bca3 1d173-1d17a e0000-e0fff"
)
"""Unicode's list (DerivedCoreProperties, 15.1)."""


def test_no_character_that_shows_nothing_is_visible() -> None:
    for part in _DEFAULT_IGNORABLE.split():
        first, _, last = part.partition("-")
        for point in range(int(first, 16), int(last or first, 16) + 1):
            assert not is_visible(chr(point)), hex(point)
            assert printable(f"a{chr(point)}b").isascii()
    for char in "\u2800\u3000\u00a0\u2028\ud800\ue000\x00\x1b\x9b\r\n":
        assert not is_visible(char)
    for text in ("GPU 3", "中文，有标点。", "naïve – café “x” → ✓", "こんにちは", "😀"):  # noqa: RUF001
        assert is_visible(text)
        assert printable(text) == text


def test_a_sentence_is_cleaned_as_a_whole() -> None:
    own = say("{name}: {text}", name="a\nb", text="c\x1bd")
    assert isinstance(clean(own), Sentence)
    assert clean(own) == "a b: c\\x1bd"
    for template in ("a\n\nb", "a\x1b[2Jb", "a\ufe0fb"):
        assert clean(Sentence(template)).isprintable()
        assert "\n" not in clean(Sentence(template))
        assert "\ufe0f" not in clean(Sentence(template))
