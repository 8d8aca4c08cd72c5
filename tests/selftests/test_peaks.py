"""The share of the vendor's peak: beside the rates of boards that the table knows, nowhere else."""

from typing import Any

import msgspec
from each import each
from rules_support import TABLES
from selftest_facts import ran, result

from gpucheck.facts.selftests import Measurement, SelfTest, SelfTests
from gpucheck.selftests.observed import with_shares
from gpucheck.tables.gpus import GpuRates

H100 = "NVIDIA H100 80GB HBM3"


def imported(*names: str) -> SelfTest:
    devices = [{"device": f"cuda:{at}", "name": name} for at, name in enumerate(names)]
    return result("import-torch", device="cpu", data={"devices": devices})


def rated(test: str, device: str = "cuda:0", **rates: float | None) -> SelfTest:
    measurements = [
        Measurement(name=f"{name} rate", value=value, unit="TFLOP/s")
        for name, value in rates.items()
    ]
    return result(test, device=device, measurements=measurements)


def shares(*results: SelfTest, model: str = H100, level: Any = "standard") -> dict[str, float]:  # noqa: ANN401
    tests = msgspec.structs.replace(ran(imported(model), *results), level=level)
    found = with_shares(tests, TABLES.get(GpuRates))
    return {
        f"{rank_result.name}: {each.name}": round(each.value or 0, 1)
        for rank_result in found.results or ()
        for each in rank_result.measurements
        if each.unit == "%"
    }


def test_each_rate_gets_the_share_of_its_own_peak() -> None:
    measured = rated("cublas-matmul", fp64=60.3, fp32=50.25, tf32=400.0, bf16=692.65, fp16=None)
    assert shares(measured, rated("sustained", sustained=593.7)) == {
        "cublas-matmul: fp64 share of the vendor's peak": 90.0,
        "cublas-matmul: fp32 share of the vendor's peak": 75.0,
        "cublas-matmul: tf32 share of the vendor's peak": 80.9,
        "cublas-matmul: bf16 share of the vendor's peak": 70.0,
        "sustained: sustained share of the vendor's peak": 60.0,
    }


def test_it_is_held_against_nothing_and_the_peak_is_told() -> None:
    tests = msgspec.structs.replace(ran(imported(H100), rated("sustained", sustained=500.0)))
    tests = msgspec.structs.replace(tests, level="stress")
    found = with_shares(tests, TABLES.get(GpuRates)).of("sustained")[0][1]
    assert found.data["vendor_peaks"] == {"sustained": 989.5}
    assert found.measurements[-1].bound is None
    assert found.status == "passed"


@each(
    "model",
    [
        f"{H100} MIG 1g.10gb",  # a part of the board
        "GRID A100-40C",  # a share of one
        "NVIDIA GeForce RTX 4090",  # the vendor's rates are not confirmed
        "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA X1",
        "",
    ],
)
def test_boards_of_which_the_rate_is_not_known(model: str) -> None:
    assert shares(rated("cublas-matmul", fp32=50.0, bf16=300.0), model=model) == {}


def test_a_column_that_is_open_stays_open() -> None:
    """Whether cuBLAS takes tensor cores for fp64 is not in the row of H200."""
    assert shares(rated("cublas-matmul", fp64=60.0), model="NVIDIA H200") == {}


def test_the_quick_level_is_too_short_to_say() -> None:
    assert shares(rated("cublas-matmul", bf16=700.0), level="quick") == {}


def test_the_cpu_and_a_run_without_results_have_none() -> None:
    assert shares(rated("cublas-matmul", device="cpu", fp32=0.1)) == {}
    nothing = SelfTests(level="standard")
    assert with_shares(nothing, TABLES.get(GpuRates)).results in (None, [])
