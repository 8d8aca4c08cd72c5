"""Slurm's short forms of lists."""

import time

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from gpucheck.cluster.launcher_variables import counts, hosts


@each(
    ("text", "names"),
    [
        ("node01", ["node01"]),
        ("node[01-03,7],gpu-a", ["node01", "node02", "node03", "node7", "gpu-a"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("n[9-11]x", ["n9x", "n10x", "n11x"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("[1-2]", ["1", "2"]),
        ("a.b-c_d", ["a.b-c_d"]),
        ("n[5-5]", ["n5"]),
    ],
)
def test_lists_of_nodes(text: str, names: list[str]) -> None:
    assert hosts(text) == names


@each(
    "text",
    ["", ",", "a,", "n[", "n]", "n[]", "n[1", "n[1-]", "n[3-1]", "n[a-b]", "n[[1]]", "n[1]]", "a b",
     "n[1-999999999]", "n[1-1000]" + "[1-1000]" * 9, "$(id)", "x" * 300, "\x1b[31m",
     "n[1-60000],m[1-60000]", "a" * (2 * 1024 * 1024)],
)  # fmt: skip
def test_what_is_no_list_of_nodes(text: str) -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match=r"node|no name|no range|bracket"):
        hosts(text)
    assert time.process_time() - start < 2


def test_counts() -> None:
    assert counts("2") == [2]
    assert counts("2(x3),1") == [2, 2, 2, 1]
    for bad in ("", "a", "2(x)", "2(x3", "-1", "1,", "1(x999999)", "9999999"):
        with pytest.raises(ValueError, match=r"count|nodes"):
            counts(bad)


@pytest.mark.exhaustive
@given(st.text(alphabet="n0129[]-,x", max_size=30))
def test_any_text_is_a_list_or_none(text: str) -> None:
    try:
        names = hosts(text)
    except ValueError:
        return
    assert names
    assert all(names)
    assert len(names) <= 100_000
