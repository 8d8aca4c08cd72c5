"""The median of the others, against the plain way to work it out."""

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpucheck.cluster.figures.bandwidth import Peers


@pytest.mark.exhaustive
@given(st.lists(st.floats(0.1, 100), min_size=1, max_size=20))
def test_it_is_the_median_of_all_but_one(values: list[float]) -> None:
    peers = Peers(("same", value) for value in values)
    for at, own in enumerate(values):
        rest = values[:at] + values[at + 1 :]
        usual, count = peers.others("same", own)
        assert count == len(rest)
        assert usual == pytest.approx(statistics.median(rest) if rest else 0.0)


def test_other_keys_are_no_peers() -> None:
    peers = Peers([("a", 1.0), ("b", 2.0), ("a", 3.0)])
    assert peers.others("a", 1.0) == (3.0, 1)
    assert peers.others("b", 2.0) == (0.0, 0)
    assert peers.others("c", 2.0) == (0.0, 0)
