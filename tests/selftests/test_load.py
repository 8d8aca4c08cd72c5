"""What NVML says under load."""

from gpucheck.facts.driver import NvmlGpu
from gpucheck.selftests.observed import strain


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
