"""The localiser held to its promises on clusters of any shape, and on results of any kind.

A group fails exactly when it holds a bad rank or both ends of a bad link. What is assumed of bad
links: a node is at the end of one at most, and a bad rank is at the end of none.
"""

from collections.abc import Sequence
from typing import Any, get_args

import pytest
from fabric_support import Fabric, bad_links, bad_ranks, check_step, roster, sure

from gpucheck.cluster.diagnose.localise import Conclusion, culprits, next_step
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.model import RankResult, Roster, Status, StepResult
from gpucheck.facts.claims import Confidence
from gpucheck.facts.preflight import Phase

pytestmark = pytest.mark.exhaustive

hypothesis = pytest.importorskip("hypothesis")
strategies = pytest.importorskip("hypothesis.strategies")

Link = tuple[int, int]
_CERTAIN = Confidence.CERTAIN
_ROUNDS = 14
"""Steps for single ranks on any number of nodes, a step being one time-out at most."""


def _held(examples: int) -> Any:  # noqa: ANN401  # a decorator of hypothesis
    return hypothesis.settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )


@strategies.composite  # type: ignore[untyped-decorator]
def _some_of(draw: Any, most: int, share: float) -> tuple[int, list[int]]:  # noqa: ANN401
    """Draw a number of nodes, and the bad ones among them."""
    count = draw(strategies.one_of(strategies.integers(4, 40), strategies.integers(4, most)))
    number = draw(strategies.integers(0, int(count * share)))
    chance = draw(strategies.randoms(use_true_random=False))
    return count, sorted(chance.sample(range(count), number))


def _names(conclusion: Conclusion) -> list[int]:
    return sorted(rank for one in conclusion.culprits for rank in one.ranks)


@_held(20)  # type: ignore[untyped-decorator]
@hypothesis.given(_some_of(1024, 0.25))  # type: ignore[untyped-decorator]
def test_up_to_a_quarter_of_bad_nodes_are_named_exactly(drawn: tuple[int, list[int]]) -> None:
    count, bad = drawn
    fabric = Fabric(roster(*[1] * count), bad_ranks(*bad))
    conclusion = fabric.run(most=_ROUNDS)
    assert _names(conclusion) == bad
    assert all(one.confidence is _CERTAIN and not one.is_link for one in conclusion.culprits)
    assert conclusion.inconclusive == ""


@_held(15)  # type: ignore[untyped-decorator]
@hypothesis.given(_some_of(1024, 0.25), strategies.integers(1, 8))  # type: ignore[untyped-decorator]
def test_pairs_first_names_the_same(drawn: tuple[int, list[int]], largest: int) -> None:
    count, bad = drawn
    fabric = Fabric(roster(*[1] * count), bad_ranks(*bad))
    conclusion = fabric.run(JobPlan(largest_world=largest), most=_ROUNDS)
    assert _names(conclusion) == bad


@_held(25)  # type: ignore[untyped-decorator]
@hypothesis.given(  # type: ignore[untyped-decorator]
    strategies.lists(strategies.integers(1, 8), min_size=4, max_size=24),
    strategies.randoms(use_true_random=False),
)
def test_nodes_of_any_size_and_one_bad_gpu_in_a_quarter_of_them(
    sizes: list[int],
    chance: Any,  # noqa: ANN401
) -> None:
    of = roster(*sizes)
    nodes = chance.sample(range(len(sizes)), chance.randint(0, len(sizes) // 4))
    bad = sorted(chance.choice(of.nodes()[node]) for node in nodes)
    conclusion = Fabric(of, bad_ranks(*bad)).run()
    assert _names(conclusion) == bad
    assert all(one.confidence is _CERTAIN for one in conclusion.culprits)


@_held(25)  # type: ignore[untyped-decorator]
@hypothesis.given(_some_of(120, 1.0))  # type: ignore[untyped-decorator]
def test_more_than_a_quarter_are_never_blamed_for_sure(drawn: tuple[int, list[int]]) -> None:
    count, bad = drawn
    conclusion = Fabric(roster(*[1] * count), bad_ranks(*bad)).run()
    assert {rank for one in sure(conclusion) for rank in one.ranks} <= set(bad)
    if len(bad) > count // 4:
        assert sure(conclusion) == []
        assert conclusion.culprits or conclusion.inconclusive


def _tested(history: Sequence[StepResult], of: Roster, link: Link) -> bool:
    """Whether a step tested just this link: the two ranks, or the two nodes, or inside the node."""
    nodes = {of.ranks[rank].node for rank in link}
    for one in history:
        for group in one.step.groups:
            same = {of.ranks[rank].node for rank in group} == nodes
            if same and set(link) <= set(group) and one.step.kind != "alone":
                return True
    return False


@_held(50)  # type: ignore[untyped-decorator]
@hypothesis.given(  # type: ignore[untyped-decorator]
    strategies.lists(strategies.integers(1, 4), min_size=4, max_size=40),
    strategies.randoms(use_true_random=False),
)
def test_bad_links_never_accuse_a_good_node(sizes: list[int], chance: Any) -> None:  # noqa: ANN401
    of = roster(*sizes)
    nodes = list(range(len(sizes)))
    chance.shuffle(nodes)
    faulty = chance.randint(0, len(sizes) // 4)
    bad, links = [], []
    for _ in range(faulty):
        kind = chance.choice(["rank", "link", "inside"])
        node = nodes.pop()
        ranks = of.nodes()[node]
        if kind == "rank":
            bad.append(chance.choice(ranks))
        elif kind == "link" and nodes:
            other = of.nodes()[nodes.pop()]
            links.append(tuple(sorted((chance.choice(ranks), chance.choice(other)))))
        elif len(ranks) > 1:
            links.append(tuple(sorted(chance.sample(ranks, 2))))
    fabric = Fabric(of, bad_ranks(*bad), bad_links(*links))
    conclusion = fabric.run()
    for one in sure(conclusion):
        if one.is_link:
            assert one.ranks in links
        else:
            assert set(one.ranks) <= set(bad)
    assert set(bad) <= {rank for one in conclusion.culprits for rank in one.ranks}
    named = {one.ranks for one in sure(conclusion) if one.is_link}
    for link in links:
        within = len({of.ranks[rank].node for rank in link}) == 1
        assert link in named or not (within or _tested(fabric.history, of, link)), link
    assert named | {(rank,) for rank in bad} >= set(links) or conclusion.inconclusive


@_held(25)  # type: ignore[untyped-decorator]
@hypothesis.given(strategies.integers(3, 8), strategies.randoms(use_true_random=False))  # type: ignore[untyped-decorator]
def test_any_links_within_a_node_are_all_named(size: int, chance: Any) -> None:  # noqa: ANN401
    """As long as every rank passes with someone, no rank is blamed, however many links fail."""
    pairs = [(one, other) for one in range(size) for other in range(one + 1, size)]
    links = chance.sample(pairs, chance.randint(1, len(pairs)))
    works = {rank for both in pairs if both not in links for rank in both}
    hypothesis.assume(len(works) == size)
    conclusion = Fabric(roster(size), bad_links(*links)).run()
    if len(sure(conclusion)) == 0:
        assert "no pair" in conclusion.inconclusive  # in the first rounds: it was given up
    else:
        assert {one.ranks for one in conclusion.culprits} == set(links)


ROOT = {"slug": "torch-missing", "headline": "No torch", "confidence": "certain"}


@strategies.composite  # type: ignore[untyped-decorator]
def _result(draw: Any, rank: int) -> RankResult:  # noqa: ANN401
    return RankResult(
        rank=rank,
        status=draw(strategies.sampled_from(get_args(Status))),
        phase=draw(strategies.sampled_from(get_args(Phase))),
        collective=draw(strategies.integers(0, 3)),
        kind=draw(strategies.sampled_from(["", "peer-lost", "wrong-value", "signal", "nccl-error",
                                           "not-begun", "unkillable", "store-unreachable"])),
        order=draw(strategies.integers(0, 5)),
        data=draw(strategies.sampled_from([{}, {"rank": 0}, {"rank": 99},
                                           {"roots": [ROOT]}, {"in_phase": 3.0}])),
    )  # fmt: skip


@pytest.mark.parametrize("backend", ["nccl", "gloo"])
def test_it_comes_to_an_end_whatever_the_results_are(backend: Any) -> None:  # noqa: ANN401
    @_held(25)  # type: ignore[untyped-decorator]
    @hypothesis.given(strategies.data(), strategies.booleans(), strategies.floats(0, 1))  # type: ignore[untyped-decorator]
    def ask(data: Any, links: bool, share: float) -> None:  # noqa: ANN401, FBT001
        sizes = data.draw(strategies.lists(strategies.integers(1, 4), min_size=1, max_size=5))
        of = roster(*sizes)
        chance = data.draw(strategies.randoms(use_true_random=False))
        pool = [data.draw(_result(0)) for _ in range(6)]
        plan = JobPlan(cuda=backend == "nccl", links=links, largest_world=chance.choice([2, 4000]))
        history: list[StepResult] = []
        while (step := next_step(of, history, plan)) is not None:
            check_step(of, step, len(history))
            results = {}
            for rank in [rank for group in step.groups for rank in group]:
                one = chance.choice(pool) if chance.random() < share else None
                if one is not None or chance.random() < 0.98:
                    results[rank] = _as(one, rank)
            history.append(StepResult(step=step, results=results))
            assert len(history) < 130
            if chance.random() < 0.1:
                of = _with_dead(of, chance.randrange(len(of.ranks)))
        for end in range(len(history) + 1):
            conclusion = culprits(of, history[:end])
            assert all(one.evidence and one.slug for one in conclusion.culprits)

    ask()


def _as(one: RankResult | None, rank: int) -> RankResult:
    if one is None:
        return RankResult(rank=rank, status="passed")
    return RankResult(
        rank=rank, status=one.status, phase=one.phase, collective=one.collective, kind=one.kind,
        order=one.order, data=one.data,
    )  # fmt: skip


def _with_dead(of: Roster, rank: int) -> Roster:
    return Roster(ranks=of.ranks, absent=of.absent, dead=of.dead | {rank})
