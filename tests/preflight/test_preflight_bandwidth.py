"""Bus bandwidth by nccl-tests' definitions; slow links against their like, table and baseline."""

from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec
import pytest
from each import each
from preflight_facts import cpus, facts, gpus, measured, uuid

from gpucheck.cluster.figures.bandwidth import algbw, busbw, of_table, timed
from gpucheck.cluster.figures.baseline import Baseline, SavedGroup
from gpucheck.cluster.figures.slow_links import (
    Known,
    culprits,
    pair_bandwidths,
    report,
    suspects,
)
from gpucheck.cluster.model import Backend, Kind, Pace, Roster, StepResult, TaskFacts
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.tables import Tables
from gpucheck.tables.nccl import BusBandwidths

MIB = 1 << 20
SIZE = 128 * MIB
TABLE = Tables().get(BusBandwidths)


def seconds(rate: float, ranks: int, size: int = SIZE) -> float:
    """Return how long an all-reduce with this bus bandwidth takes."""
    return size / (rate * 1e9) * 2 * (ranks - 1) / ranks


Rates = Mapping[tuple[int, ...], float]


def step(kind: Kind, rates: Rates, size: int = SIZE, **more: bool) -> StepResult:
    """Return a step in which each group reached this bus bandwidth."""
    values = {
        rank: {f"all-reduce {size} B s": seconds(rate, len(group), size)}
        for group, rate in rates.items()
        for rank in group
    }
    return measured(kind, list(rates), values, **more)


def rounds(rates: Rates, size: int = SIZE) -> list[StepResult]:
    """Return a step for each pair: the groups of one step are disjoint."""
    return [step("gpu-pairs", {both: rate}, size) for both, rate in rates.items()]


def known(
    roster: Roster,
    said: dict[int, TaskFacts] | None = None,
    backend: Backend = "nccl",
    baseline: Baseline | None = None,
) -> Known:
    return Known(
        roster=roster, facts=said or facts(roster), table=TABLE, backend=backend, baseline=baseline
    )


def linked(roster: Roster, links: int = 18, **more: object) -> dict[int, TaskFacts]:
    return facts(roster, nvlinks={uuid(one.rank): links for one in roster.ranks}, **more)


def test_the_definitions_of_nccl_tests() -> None:
    """134,217,728 B among 8 in 1,327.6 us: 101.10 and 176.92 GB/s, as all_reduce_perf prints."""
    assert algbw(134_217_728, 1327.6e-6) == pytest.approx(101.10, abs=0.01)
    assert busbw("all-reduce", 8, 134_217_728, 1327.6e-6) == pytest.approx(176.92, abs=0.01)
    for name in ("all-gather", "reduce-scatter", "all-to-all"):
        assert busbw(name, 4, 10**9, 1.0) == pytest.approx(0.75)
    for name in ("broadcast", "reduce", "send-recv"):
        assert busbw(name, 4, 10**9, 1.0) == pytest.approx(1.0)
    assert busbw("all-reduce", 2, 10**9, 1.0) == pytest.approx(1.0)
    assert busbw("all-reduce", 1, 10**9, 1.0) is None


@each(("name", "time"), [("all-reduce", 0.0), ("gossip", 1.0)])
def test_what_has_no_bandwidth(name: str, time: float) -> None:
    with pytest.raises(ValueError, match=r"no bandwidth|no such collective"):
        busbw(name, 4, 1, time)


def test_the_slowest_rank_and_the_largest_size_count() -> None:
    values = {
        0: {"all-reduce 4 B s": 1e-5, f"all-reduce {SIZE} B s": 0.001},
        1: {"all-reduce 4 B s": 1e-5, f"all-reduce {SIZE} B s": 0.002},
    }
    (found,) = timed(gpus(1, 2), [measured("together", [[0, 1]], values)])
    assert (found.size, found.seconds, found.nodes) == (SIZE, 0.002, 1)


def test_groups_that_failed_or_measured_nothing_have_no_bandwidth() -> None:
    whole = step("together", {(0, 1): 300.0})
    broken = msgspec.structs.replace(whole.results[1], status="failed")
    failed = StepResult(step=whole.step, results={0: whole.results[0], 1: broken})
    nothing = measured("together", [[0, 1]], {0: {f"all-reduce {SIZE} B s": float("nan")}})
    assert timed(gpus(1, 2), [failed, nothing, step("arms", {(0, 1): 300.0})]) == []


PAIRS: list[tuple[int, ...]] = list(combinations(range(4), 2))


def test_a_slow_pair_inside_a_node_is_named_after_the_second_time() -> None:
    four = gpus(1, 4)
    first = rounds({both: 300.0 if both != (1, 3) else 100.0 for both in PAIRS})
    assert suspects(first, known(four)) == ((1, 3),)
    assert culprits(first, known(four)) == []
    again = step("gpu-pairs", {(1, 3): 110.0}, repeats=True)
    (found,) = culprits([*first, again], known(four))
    assert (found.slug, found.is_link, found.ranks) == ("link-slow", True, (1, 3))
    assert (found.severity, found.confidence) == (Severity.ERROR, Confidence.LIKELY)
    assert "100 and 110 GB/s in 2 measurements, 37% of 300 GB/s" in found.evidence
    assert suspects([*first, again], known(four)) == ()


def test_a_slow_pair_that_recovers_is_not_named() -> None:
    first = rounds({both: 300.0 if both != (1, 3) else 100.0 for both in PAIRS})
    again = step("gpu-pairs", {(1, 3): 290.0}, repeats=True)
    assert culprits([*first, again], known(gpus(1, 4))) == []


def test_a_gpu_that_is_slow_with_all_its_partners_is_named_alone() -> None:
    rates: Rates = {both: 100.0 if 2 in both else 300.0 for both in combinations(range(6), 2)}
    again = {both: 100.0 for both in rates if 2 in both}
    (found,) = culprits(rounds(rates) + rounds(again), known(gpus(1, 6)))
    assert (found.rank, found.ranks, found.is_link) == (2, (2,), False)
    assert "slow with 5 partners that are not slow with others" in found.evidence


def test_pairs_inside_and_across_nodes_are_not_compared() -> None:
    roster = gpus(4, 2)
    inside: Rates = {(2 * node, 2 * node + 1): 300.0 for node in range(4)}
    across: Rates = {(0, 2): 40.0, (4, 6): 40.0, (1, 3): 40.0, (5, 7): 40.0}
    history = [step("gpu-pairs", inside), step("pairs", across)] * 2
    assert culprits(history, known(roster)) == []
    lame = [step("pairs", {**across, (0, 2): 15.0})] * 2
    (found,) = culprits(lame, known(roster))
    assert found.hosts == ("node0", "node1")
    assert found.confidence is Confidence.POSSIBLE


def test_of_two_pairs_nobody_knows_which_is_the_odd_one() -> None:
    history = [step("pairs", {(0, 1): 40.0, (2, 3): 10.0})] * 2
    assert culprits(history, known(gpus(4, 1))) == []


def test_cpu_links_have_a_lower_line_and_small_messages_none() -> None:
    four = cpus(1, 4)
    slow = {both: 0.03 if both != (1, 3) else 0.015 for both in PAIRS}
    over_gloo = known(four, backend="gloo")
    assert culprits(rounds(slow, MIB) * 2, over_gloo) == []
    slower = {**slow, (1, 3): 0.01}
    assert len(culprits(rounds(slower, MIB) * 2, over_gloo)) == 1
    assert culprits(rounds(slower, 65536) * 2, over_gloo) == []


def test_some_milliseconds_accuse_no_link_of_cpu_ranks() -> None:
    """A third of 3 GB/s is 0.7 ms more for a MiB: a busy machine does that to anybody."""
    rates = {both: 3.0 if both != (1, 3) else 1.0 for both in PAIRS}
    over_gloo = known(cpus(1, 4), backend="gloo")
    assert culprits(rounds(rates, MIB) * 2, over_gloo) == []
    assert suspects(rounds(rates, MIB), over_gloo) == ()
    assert len(culprits(rounds(rates) * 2, over_gloo)) == 1


def test_a_rank_without_a_processor_accuses_no_link() -> None:
    rates = {both: 300.0 if both != (1, 3) else 100.0 for both in PAIRS}
    history = rounds(rates)
    busy = [busier(one, 3, 0.35) if (1, 3) in one.step.groups else one for one in history]
    assert suspects(history, known(gpus(1, 4))) == ((1, 3),)
    assert suspects(busy, known(gpus(1, 4))) == ()
    assert culprits(busy * 2, known(gpus(1, 4))) == []


def busier(done: StepResult, rank: int, share: float) -> StepResult:
    one = msgspec.structs.replace(done.results[rank], pace=Pace(busy=share))
    return msgspec.structs.replace(done, results={**done.results, rank: one})


def whole(rate: float, ranks: int = 8, size: int = SIZE) -> list[StepResult]:
    return [step("together", {tuple(range(ranks)): rate}, size)] * 2


A100 = "NVIDIA A100-SXM4-80GB"


@each(("rate", "severity"), [(170.0, None), (130.0, Severity.WARNING), (80.0, Severity.ERROR)])
def test_a_published_figure_is_the_last_measure(rate: float, severity: Severity | None) -> None:
    roster = gpus(1, 8, A100)
    found = culprits(whole(rate), known(roster, linked(roster, 12)))
    assert [one.severity for one in found] == ([severity] if severity else [])
    assert all("176.92 GB/s, published for 8 x NVIDIA A100-SXM4-80GB" in o.evidence for o in found)


def test_without_knowing_of_nvls_only_less_than_half_is_told_and_as_a_warning() -> None:
    roster = gpus(1, 8)
    assert culprits(whole(320.0), known(roster, linked(roster))) == []
    (found,) = culprits(whole(150.0), known(roster, linked(roster)))
    assert found.severity is Severity.WARNING
    off = linked(roster, variables={"NCCL_NVLS_ENABLE": "0"})
    assert culprits(whole(150.0), known(roster, off)) == []  # nobody published that


@each(
    "said",
    [
        {"nvlinks": None},
        {"nvlinks": {uuid(r): 9 for r in range(8)}},
        {"nvlinks": {uuid(r): 12 if r else 11 for r in range(8)}},
        {"nvlinks": {uuid(r): 12 for r in range(8)}, "variables": {"NCCL_P2P_DISABLE": "1"}},
        {"nvlinks": {uuid(r): 12 for r in range(8)}, "variables": {"NCCL_ALGO": "Tree"}},
    ],
)
def test_where_no_row_fits_nothing_is_said(said: Mapping[str, object]) -> None:
    roster = gpus(1, 8, A100)
    assert culprits(whole(20.0), known(roster, facts(roster, **said))) == []


def test_other_counts_sizes_nodes_and_backends_have_no_row() -> None:
    def has_row(
        roster: Roster, group: Sequence[int], size: int = SIZE, backend: str = "nccl"
    ) -> bool:
        (one,) = timed(roster, [step("together", {tuple(group): 100.0}, size)])
        return of_table(one, roster, linked(roster, 12), TABLE, backend=backend) is not None

    assert has_row(gpus(1, 8, A100), range(8))
    assert not has_row(gpus(1, 8, A100), range(7))
    assert not has_row(gpus(1, 8, A100), range(8), 32 * MIB)
    assert not has_row(gpus(1, 8, A100), range(8), backend="gloo")
    assert not has_row(gpus(2, 4, A100), range(8))
    assert not has_row(gpus(1, 8, "NVIDIA A100 80GB PCIe"), range(8))


def test_a_baseline_comes_before_the_table() -> None:
    roster = gpus(1, 8, A100)
    key = ",".join(sorted(uuid(r) for r in range(8)))
    saved = Baseline(groups={key: SavedGroup(size=SIZE, busbw=130.0, saved="2026-10-01")})
    assert culprits(whole(130.0), known(roster, linked(roster, 12), baseline=saved)) == []
    (found,) = culprits(whole(60.0), known(roster, linked(roster, 12), baseline=saved))
    assert "the baseline of these GPUs of 2026-10-01" in found.evidence


def test_the_report_has_the_slowest_and_the_fastest_of_each_kind() -> None:
    roster = gpus(8, 2)
    pairs: Rates = {(2 * n, 2 * n + 1): 300.0 + n for n in range(8)}
    history = [step("together", {tuple(range(16)): 90.0}), step("gpu-pairs", pairs)]
    rows = report(history, known(roster))
    assert [(one.ranks, one.nodes, round(one.busbw or 0)) for one in rows] == [
        (16, 8, 90), (2, 1, 300), (2, 1, 307),
    ]  # fmt: skip
    assert rows[0].compared_with == ""
    assert rows[1].share == pytest.approx(300 / 304)
    assert report([], known(roster)) == []


def test_every_pair_is_reported_once_with_its_last_measurement() -> None:
    roster = gpus(3, 2)
    history = [
        step("together", {tuple(range(6)): 300.0}),
        *rounds({(0, 1): 400.0, (2, 3): 50.0}),
        step("links", {(0, 1, 2, 3): 45.0}),
        step("links", {(2, 3, 4, 5): 11.0}),
        step("links", {(2, 3, 4, 5): 12.0}),
        step("grow", {(0, 1, 4): 1.0}),  # no whole nodes
    ]
    found = pair_bandwidths(timed(roster, history), roster)
    assert [(one.of, one.ends, round(one.busbw)) for one in found] == [
        ("nodes", (1, 2), 12), ("nodes", (0, 1), 45), ("ranks", (2, 3), 50), ("ranks", (0, 1), 400),
    ]  # fmt: skip


def test_of_very_many_pairs_the_slowest_are_reported() -> None:
    roster = gpus(70, 1)
    history = rounds({both: 1.0 + both[0] + both[1] for both in combinations(range(70), 2)})
    found = pair_bandwidths(timed(roster, history), roster)
    assert len(found) == 2016
    assert found[0].ends == (0, 1)
    assert (68, 69) not in {one.ends for one in found}


def test_a_collective_of_no_bytes_is_no_measurement() -> None:
    whole = step("together", {tuple(range(4)): 10.0})
    results = {
        rank: msgspec.structs.replace(one, measurements={"all-reduce 0 B s": 1.0})
        for rank, one in whole.results.items()
    }
    assert timed(gpus(2, 2), [msgspec.structs.replace(whole, results=results)]) == []
