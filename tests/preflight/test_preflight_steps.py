"""A step in one line."""

from gpucheck.cluster.diagnose.naming import in_words
from gpucheck.cluster.model import RankResult, Step, StepResult


def _done(*groups: tuple[int, ...], kind: str, results: dict[int, RankResult]) -> StepResult:
    step = Step(number=1, kind=kind, groups=groups, backend="nccl", seconds=30)  # type: ignore[arg-type]
    return StepResult(step=step, results=results)


def _passed(rank: int, **measured: float) -> RankResult:
    named = {name.replace("_", " "): value for name, value in measured.items()}
    return RankResult(rank=rank, status="passed", seconds=1.0 + rank, measurements=named)


def test_ranks_alone_have_their_rates_and_units() -> None:
    results = {at: _passed(at, fp32_TFLOPs=50.0 + at, copy_GBs=52.0) for at in range(3)}
    said = in_words(_done((0,), (1,), (2,), kind="alone", results=results))
    assert said == ("3 ranks without any other; 3 passed; fp32 50 to 52 TFLOPs; copy 52 GBs; 3.0 s")


def test_groups_that_failed_are_told_with_their_ends() -> None:
    results = {
        0: _passed(0), 1: _passed(1),
        2: RankResult(rank=2, status="timed-out", phase="enter", kind="timed-out", seconds=15.2),
        3: RankResult(rank=3, status="failed", phase="store", kind="store-unreachable"),
    }  # fmt: skip
    said = in_words(_done((0, 1), (2, 3), kind="pairs", results=results))
    assert said == (
        "2 groups of 2 ranks; 1 passed; 1 did not; timed-out in phase enter: rank 2; "
        "failed (store-unreachable) in phase store: rank 3; 15.2 s"
    )


def test_ten_thousand_ranks_are_one_line() -> None:
    results = {
        at: RankResult(rank=at, status="timed-out", phase="enter", kind="") for at in range(10_000)
    }
    said = in_words(_done(tuple(range(10_000)), kind="together", results=results))
    assert "ranks 0, 1, 2, 3 and 9996 more" in said
    assert len(said) < 200


def test_a_control_run_names_its_variables() -> None:
    done = StepResult(
        step=Step(
            number=3, kind="arms", groups=((0, 1),), backend="nccl", seconds=15,
            env={"NCCL_P2P_DISABLE": "1"},
        ),
        results={at: _passed(at) for at in range(2)},
    )  # fmt: skip
    assert "; with NCCL_P2P_DISABLE=1; " in in_words(done)
