"""Ranks as short text."""

import pytest
from each import each
from hypothesis import given
from hypothesis import strategies as st

from gpucheck.cluster.model import pack, unpack


@pytest.mark.exhaustive
@given(st.lists(st.integers(0, 10_000), unique=True, max_size=300))
def test_ranks_come_back_in_their_order(ranks: list[int]) -> None:
    assert list(unpack(pack(ranks))) == ranks


def test_ten_thousand_ranks_are_a_few_characters() -> None:
    assert pack(range(10_000)) == "0-9999"
    assert pack([0, 1, 2, 8]) == "0-2,8"


@each("text", ["a", "3-1", "-1", "0-99999999", "0-600000,0-600000", "1--2"])
def test_what_is_no_list_of_ranks_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"list of ranks|invalid literal"):
        unpack(text)
