"""Rates against those of peers, and what NVML says under load."""

import pytest

from gpucheck.findings import Severity
from gpucheck.probes.nvml import NvmlGpu
from gpucheck.selftest.load import Rate, slower_than_peers, strain

H200, A100 = "NVIDIA H200", "NVIDIA A100"


def rates(*values: float, model: str = H200) -> list[Rate]:
    return [Rate(f"cuda:{at}", model, value) for at, value in enumerate(values)]


@pytest.mark.parametrize(
    ("values", "slow"),
    [
        ((700.0, 690.0, 710.0, 705.0), {}),
        ((700.0, 565.0, 710.0, 705.0), {}),
        ((700.0, 550.0, 710.0, 705.0), {"cuda:1": Severity.WARNING}),
        ((700.0, 340.0, 550.0, 705.0), {"cuda:1": Severity.ERROR, "cuda:2": Severity.WARNING}),
        ((700.0, 300.0), {"cuda:1": Severity.ERROR}),
        ((700.0,), {}),
        ((), {}),
        ((700.0, 0.0), {"cuda:1": Severity.ERROR}),
        ((0.0, 0.0), {}),
    ],
)
def test_slow_is_what_is_far_below_its_peers(
    values: tuple[float, ...], slow: dict[str, Severity]
) -> None:
    found = slower_than_peers(rates(*values))
    assert {each.place: each.severity for each in found} == slow
    assert [each.share for each in found] == sorted(each.share for each in found)


def test_another_model_is_no_peer() -> None:
    assert slower_than_peers([*rates(700.0), *rates(200.0, model=A100)]) == []


def test_what_is_compared_is_told() -> None:
    (slow,) = slower_than_peers(rates(400.0, 800.0, 900.0))
    assert (slow.usual, slow.share, slow.model) == (850.0, 400 / 850, H200)


def test_the_strain_of_a_load() -> None:
    during = [
        NvmlGpu(sm_clock_mhz=1900, temperature_c=60, power_w=500.0, throttle=["sw-power-cap"]),
        NvmlGpu(sm_clock_mhz=1980, temperature_c=88, power_w=690.0, throttle=[]),
        NvmlGpu(sm_clock_mhz=345, temperature_c=91, throttle=["hw-thermal-slowdown"]),
        NvmlGpu(),
    ]
    before = NvmlGpu(ecc_corrected=3, ecc_uncorrected=0)
    found = strain(before, during, NvmlGpu(ecc_corrected=10, ecc_uncorrected=1))
    assert (found.clock_lowest, found.clock_usual) == (345, 1900)
    assert (found.hottest, found.power_most) == (91, 690.0)
    assert found.held_down == {"hw-thermal-slowdown": 1 / 3}
    assert (found.errors_corrected, found.errors_uncorrected) == (7, 1)


def test_what_nvml_does_not_say_is_unknown() -> None:
    found = strain(NvmlGpu(), [NvmlGpu()], NvmlGpu(ecc_corrected=1))
    assert found.clock_lowest is found.clock_usual is found.hottest is found.power_most is None
    assert [found.held_down, found.errors_corrected, found.errors_uncorrected] == [None] * 3


def test_a_counter_that_was_reset() -> None:
    found = strain(NvmlGpu(ecc_corrected=10), [], NvmlGpu(ecc_corrected=2))
    assert found.errors_corrected == 2
