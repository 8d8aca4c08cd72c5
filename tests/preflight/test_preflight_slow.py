"""Slow GPUs: against their like, measured twice; CPU processes only when far behind."""

import msgspec
import pytest
from each import each
from hypothesis import given, settings
from hypothesis import strategies as st
from preflight_facts import H200, alone, cpus, gpus, measured, uuid

from gpucheck.cluster.figures.baseline import Baseline, SavedGpu
from gpucheck.cluster.figures.slow import culprits, readings, spread, suspects, to_repeat
from gpucheck.cluster.model import Roster, StepResult
from gpucheck.facts.claims import Severity

EIGHT = gpus(1, 8)


def rates(slow: dict[int, float], count: int = 8, usual: float = 800.0) -> dict[int, float]:
    return {rank: slow.get(rank, usual) for rank in range(count)}


def test_equal_gpus_raise_no_suspicion() -> None:
    step = alone({rank: 800.0 + 4 * rank for rank in range(8)})
    assert suspects(EIGHT, [step]) == ()
    assert to_repeat(EIGHT, [step]) == ()
    assert culprits(EIGHT, [step, step]) == []
    assert "8 ranks at 98% or more" in spread(EIGHT, [step])


@each(("rate", "severity"), [(300.0, Severity.ERROR), (600.0, Severity.WARNING), (650.0, None)])
def test_the_line_is_drawn_at_half_and_at_four_fifths(
    rate: float, severity: Severity | None
) -> None:
    step = alone(rates({5: rate}))
    found = culprits(EIGHT, [step, step])
    assert [one.severity for one in found] == ([severity] if severity else [])


def test_two_ranks_on_one_gpu_are_not_slow() -> None:
    twin = msgspec.structs.replace(EIGHT.ranks[5], uuid=uuid(4))
    shared = Roster(ranks=(*EIGHT.ranks[:5], twin, *EIGHT.ranks[6:]))
    step = alone(rates({4: 300.0, 5: 300.0}))
    assert culprits(EIGHT, [step, step])
    assert (culprits(shared, [step, step]), suspects(shared, [step])) == ([], ())


def test_one_measurement_makes_a_suspect_and_a_second_one_a_culprit() -> None:
    first = alone(rates({5: 300.0}))
    assert suspects(EIGHT, [first]) == (5,)
    assert culprits(EIGHT, [first]) == []
    again = alone(rates({5: 310.0}), repeats=True)
    (found,) = culprits(EIGHT, [first, again])
    assert (found.slug, found.rank, found.gpu, found.uuid) == ("gpu-slow", 5, 5, uuid(5))
    assert "300 and 310 TFLOP/s in 2 measurements" in found.evidence
    assert "39% of 800 TFLOP/s, the median of 7 others of its model (NVIDIA H200)" in found.evidence
    assert suspects(EIGHT, [first, again]) == ()


def test_who_was_slow_only_once_is_cleared() -> None:
    history = [alone(rates({5: 300.0})), alone(rates({}), repeats=True)]
    assert culprits(EIGHT, history) == []
    assert suspects(EIGHT, history) == ()


def test_the_better_of_two_measurements_decides_how_bad_it_is() -> None:
    (found,) = culprits(EIGHT, [alone(rates({5: 300.0})), alone(rates({5: 600.0}))])
    assert found.severity is Severity.WARNING


def test_a_suspect_that_fails_when_asked_again_is_not_asked_for_ever() -> None:
    first = alone(rates({5: 300.0}))
    again = alone(rates({}), repeats=True)
    failed = StepResult(step=again.step, results={k: v for k, v in again.results.items() if k != 5})
    assert suspects(EIGHT, [first, failed]) == ()


def test_the_like_of_a_suspect_measure_again_with_it() -> None:
    assert to_repeat(EIGHT, [alone(rates({5: 300.0}))]) == tuple(range(8))
    large = gpus(100, 8)
    again = to_repeat(large, [alone(rates({405: 300.0}, 800))])
    assert len(again) == 64
    assert set(range(400, 408)) <= set(again)


def test_of_two_the_slower_one_is_named() -> None:
    two = gpus(1, 2)
    step = alone({0: 800.0, 1: 300.0})
    (found,) = culprits(two, [step, step])
    assert found.rank == 1
    assert "the other one (NVIDIA H200)" in found.evidence


def test_other_models_are_no_measure() -> None:
    mixed = gpus(1, 2)
    other = mixed.ranks[1].__class__(
        **{field: getattr(mixed.ranks[1], field) for field in mixed.ranks[1].__struct_fields__}
        | {"model": "NVIDIA GeForce RTX 3090"}
    )
    roster = mixed.__class__(ranks=(mixed.ranks[0], other))
    step = alone({0: 800.0, 1: 100.0})
    assert culprits(roster, [step, step]) == []
    assert readings(roster, [step]) == []


def test_cpu_processes_are_accused_when_they_take_two_and_a_half_times_as_long() -> None:
    eight = cpus(1, 8)
    noisy = alone(rates({3: 0.045}, usual=0.1))
    assert culprits(eight, [noisy, noisy]) == []
    assert suspects(eight, [noisy]) == ()
    slow = alone(rates({3: 0.033}, usual=0.1))
    (found,) = culprits(eight, [slow, slow])
    assert (found.rank, found.severity) == (3, Severity.ERROR)


def test_times_are_no_rates() -> None:
    step = measured("alone", [[0], [1]], {0: {"start s": 9.0}, 1: {"start s": 1.0}})
    assert readings(gpus(1, 2), [step]) == []


def test_pinned_copies_are_measured_by_the_same_slot_of_other_nodes() -> None:
    """The last four GPUs of each node hang on the far socket: that is no fault of theirs."""
    roster, name = gpus(3, 8), "pinned copy to the GPU GB/s"
    by_slot = {rank: 50.0 if rank % 8 < 4 else 27.0 for rank in range(24)}
    step = alone(by_slot, name)
    assert culprits(roster, [step, step]) == []
    lame = alone({**by_slot, 13: 14.0}, name)
    (found,) = culprits(roster, [lame, lame])
    assert found.rank == 13
    assert "27 GB/s, the median of 2 others in the same slot" in found.evidence


def test_pinned_copies_within_one_node_have_a_lower_line() -> None:
    name = "pinned copy to the GPU GB/s"
    far = alone(rates({6: 28.0}, usual=50.0), name)
    assert culprits(EIGHT, [far, far]) == []
    half_the_lanes = alone(rates({6: 24.0}, usual=50.0), name)
    assert culprits(EIGHT, [half_the_lanes, half_the_lanes])[0].severity is Severity.WARNING
    a_quarter = alone(rates({6: 12.0}, usual=50.0), name)
    assert culprits(EIGHT, [a_quarter, a_quarter])[0].severity is Severity.ERROR


def test_a_gpu_without_a_peer_is_compared_with_its_baseline() -> None:
    roster, name = gpus(1, 1), "fp16 TFLOP/s"
    saved = {uuid(0): SavedGpu(model=H200, rates={name: 800.0}, saved="2026-10-01")}
    step = alone({0: 390.0})
    assert culprits(roster, [step, step]) == []
    (found,) = culprits(roster, [step, step], Baseline(gpus=saved))
    assert found.severity is Severity.ERROR
    assert "the baseline of this GPU of 2026-10-01" in found.evidence
    other = {uuid(0): SavedGpu(model="NVIDIA A100", rates={name: 800.0})}
    assert culprits(roster, [step, step], Baseline(gpus=other)) == []
    for nonsense in (-1.0, 0.0, float("inf"), float("nan")):
        odd = {uuid(0): SavedGpu(model=H200, rates={name: nonsense})}
        assert culprits(roster, [step, step], Baseline(gpus=odd)) == []


def test_all_slower_than_their_baseline_is_seen_although_they_agree() -> None:
    saved = {uuid(r): SavedGpu(model=H200, rates={"fp16 TFLOP/s": 800.0}) for r in range(8)}
    step = alone(rates({}, usual=500.0))
    assert len(culprits(EIGHT, [step, step], Baseline(gpus=saved))) == 8


@pytest.mark.exhaustive
@settings(max_examples=30)
@given(
    st.lists(st.floats(0.85, 1.0), min_size=2, max_size=64),
    st.lists(st.floats(0.85, 1.0), min_size=64, max_size=64),
)
def test_noise_of_15_percent_accuses_nobody(first: list[float], second: list[float]) -> None:
    roster = gpus(1, len(first))
    history = [alone(dict(enumerate(first))), alone(dict(enumerate(second[: len(first)])))]
    assert culprits(roster, history) == []


@pytest.mark.exhaustive
@settings(max_examples=40)
@given(st.integers(3, 40), st.data())
def test_up_to_half_may_be_slow_and_exactly_they_are_named(count: int, data: st.DataObject) -> None:
    bad = data.draw(st.sets(st.integers(0, count - 1), max_size=(count - 1) // 2 - 1 or 1))
    bad = set(list(bad)[: max(0, (count - 1) // 2 - 1)])
    roster = gpus(1, count)
    step = alone(rates(dict.fromkeys(bad, 200.0), count))
    assert {one.rank for one in culprits(roster, [step, step])} == bad


def test_nonsense_is_not_measured() -> None:
    step = alone({0: float("nan"), 1: float("inf"), 2: -3.0, 3: 0.0, 4: 5.0})
    assert readings(gpus(1, 5), [step]) == []
