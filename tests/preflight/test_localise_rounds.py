"""Rounds of pairs: everybody meets everybody, nobody is in two pairs."""

from each import each

from gpucheck.cluster.diagnose import rounds


@each("count", range(18))
def test_in_a_round_robin_each_meets_each_once(count: int) -> None:
    units = [3 * unit + 1 for unit in range(count)]
    all_rounds = list(rounds.round_robin(units))
    pairs = [both for one in all_rounds for both in one]
    assert len(pairs) == len(set(pairs)) == count * (count - 1) // 2
    assert len(all_rounds) == (count - 1 + count % 2 if count > 1 else count)
    for one in all_rounds:
        assert len({unit for both in one for unit in both}) == 2 * len(one)
    if count > 1:
        assert all_rounds[0] == rounds.adjacent(units)


def test_partners_are_good_free_and_new() -> None:
    met = {(0, 4), (1, 5)}
    found = rounds.partners([0, 1, 2, 3], [4, 5, 6], lambda both: both not in met)
    assert len(found) == 3
    assert len({good for _, good in found}) == 3
    assert met.isdisjoint(found)


def test_two_nodes_of_different_sizes_meet_fully() -> None:
    left, right = [0, 1, 2], [10, 11]
    pairs = [both for by in range(3) for both in rounds.shifted(left, right, by)]
    assert sorted(pairs) == [(one, other) for one in left for other in right]
    for by in range(3):
        ends = [unit for both in rounds.shifted(left, right, by) for unit in both]
        assert len(ends) == len(set(ends))


def test_blocks_leave_nobody_out_or_alone() -> None:
    assert rounds.blocks(range(9), 4) == [(0, 1, 2, 3), (4, 5, 6, 7, 8)]
    assert rounds.blocks(range(10), 4) == [(0, 1, 2, 3), (4, 5, 6, 7), (8, 9)]
    assert rounds.blocks(range(3), 4) == [(0, 1, 2)]


def test_groups_that_share_a_rank_wait() -> None:
    assert rounds.disjoint([(0, 1), (1, 2), (2, 3)]) == [(0, 1), (2, 3)]
