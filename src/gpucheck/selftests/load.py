"""Sums up what NVML reported about a GPU under load: reduced clocks and memory errors."""

import statistics
from collections.abc import Sequence

import msgspec

from gpucheck.facts.nvml import NvmlGpu

_TROUBLES = (
    "hw-slowdown",
    "hw-thermal-slowdown",
    "hw-power-brake-slowdown",
    "sw-thermal-slowdown",
)
"""The reasons for low clocks that are not normal; see the page of thermal-or-power-throttle."""


class Strain(msgspec.Struct, frozen=True, kw_only=True):
    """What NVML reported about a GPU under load; None where it reported nothing.

    Clocks are in MHz, the temperature in °C, power in W. ``held_down`` has the share of the samples
    in which each abnormal reason for low clocks was active. The errors are those counted between
    the beginning and the end of the load.
    """

    clock_lowest: int | None = None
    clock_usual: float | None = None
    hottest: int | None = None
    power_most: float | None = None
    held_down: dict[str, float] | None = None
    errors_corrected: int | None = None
    errors_uncorrected: int | None = None


def strain(before: NvmlGpu, during: Sequence[NvmlGpu], after: NvmlGpu) -> Strain:
    """Sum up samples of one GPU, taken before, during and after a load."""
    clocks = [each.sm_clock_mhz for each in during if each.sm_clock_mhz is not None]
    return Strain(
        clock_lowest=min(clocks, default=None),
        clock_usual=statistics.median(clocks) if clocks else None,
        hottest=max((each.temperature_c for each in during if each.temperature_c), default=None),
        power_most=max((each.power_w for each in during if each.power_w), default=None),
        held_down=_held_down(during),
        errors_corrected=_counted(before.ecc_corrected, after.ecc_corrected),
        errors_uncorrected=_counted(before.ecc_uncorrected, after.ecc_uncorrected),
    )


def _held_down(during: Sequence[NvmlGpu]) -> dict[str, float] | None:
    """Return the share of samples in which each reason reduced the clocks; None without reasons."""
    throttles = [each.throttle for each in during if each.throttle is not None]
    if not throttles:
        return None
    shares = {name: sum(name in each for each in throttles) / len(throttles) for name in _TROUBLES}
    return {name: share for name, share in shares.items() if share}


def _counted(before: int | None, after: int | None) -> int | None:
    """Return by how much a counter grew; a counter that was reset counts from zero."""
    if before is None or after is None:
        return None
    return after - before if after >= before else after
