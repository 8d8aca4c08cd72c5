"""What is seen beside the self-tests: libraries that were loaded, shares of peak rates, load."""

import contextlib
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from gpucheck.facts import builtins
from gpucheck.facts.driver import NvmlGpu
from gpucheck.facts.libraries import Loading
from gpucheck.facts.selftests import (
    LONG_ENOUGH,
    GpuUnderLoad,
    Measurement,
    Moment,
    SelfTest,
    SelfTests,
)
from gpucheck.facts.snapshot import Snapshot
from gpucheck.language import plain, say
from gpucheck.machine import Host, LiveHost
from gpucheck.machine.children import Children, Said, Tell
from gpucheck.probes import nvml
from gpucheck.probes.reading.versions import library_name, stem
from gpucheck.selftests.plan import IMPORT
from gpucheck.tables.gpus import GpuRates, RateRow

# Compares the libraries that ``import torch`` loaded with those predicted from the files.

_LIBRARIES = "libraries"
_MOST = 20  # chosen: one is enough to doubt the prediction


def compared(tests: SelfTests, snapshot: Snapshot) -> SelfTests:
    """Return the self-tests with the differences in place of the list of loaded files."""
    results = [
        _compared(result, snapshot.get(Loading)) if result.name == IMPORT else result
        for result in tests.results or ()
    ]
    return msgspec.structs.replace(tests, results=results)


def _compared(result: SelfTest, predicted: Loading) -> SelfTest:
    data = dict(result.data)
    loaded = data.pop(_LIBRARIES, None)
    if isinstance(loaded, list):
        found = compare(predicted, [path for path in loaded if isinstance(path, str)])
        if found:
            data["loaded_otherwise"] = builtins(found[:_MOST])
    return msgspec.structs.replace(result, data=data)


class LoadedDifference(msgspec.Struct, frozen=True):
    """A library whose file differs from the prediction; "" if only one side has it."""

    soname: str
    predicted: str
    loaded: str


def compare(predicted: Loading, maps: Iterable[str]) -> list[LoadedDifference]:
    """Return where the files of a live process (links resolved) differ from the prediction.

    Only libraries in the section are compared. A library that is opened on first use may be absent.
    There is no prediction for a library that torch does not bring, because another package may load
    it. An unknown prediction has no differences.
    """
    if predicted.libraries is None:
        return []
    files: dict[str, list[str]] = {}
    for path in sorted(set(maps)):
        files.setdefault(stem(path.rpartition("/")[2]), []).append(path)
    differences: list[LoadedDifference] = []
    expected: dict[str, set[str]] = {}
    certain = [(library, True) for library in predicted.libraries]
    for library, must in certain + [(library, False) for library in predicted.runtime_opened or []]:
        real = library.real_path or ""
        names = {stem(library.soname), stem(real.rpartition("/")[2])}
        there = [path for name in names for path in files.get(name, ())]
        for name in names:
            expected.setdefault(name, set()).add(real)
        if real not in there and (must or there):
            differences.append(LoadedDifference(library.soname, real, there[0] if there else ""))
    reported = {difference.loaded for difference in differences}
    for name, paths in files.items():
        for path in paths:
            known = expected.get(name)
            unexpected = known is None or path not in known
            if library_name(path.rpartition("/")[2]) and unexpected and path not in reported:
                differences.append(LoadedDifference(path.rpartition("/")[2], "", path))
    return differences


# The share of the vendor's peak rate that each GPU reached, for information only.
#
# No program reaches a peak, and how close a healthy GPU comes differs between boards; see
# ``docs/selftests/reference.md``.

_TESTS = ("cublas-matmul", "sustained")
_COLUMNS = {
    "fp64": "fp64_tensor",  # cuBLAS uses the tensor cores of a GPU with fp64 ones
    "fp32": "fp32",
    "tf32": "tf32",
    "fp16": "fp16",
    "bf16": "bf16",
    "sustained": "fp16",
}


def with_shares(tests: SelfTests, rates: GpuRates) -> SelfTests:
    """Return the self-tests with these shares, where the vendor's rate is known."""
    if tests.level not in LONG_ENOUGH:
        return tests
    models = tests.device_names()
    results = []
    for result in tests.results or ():
        row = rates.rates(models.get(result.device, "")) if result.name in _TESTS else None
        known = row is not None and row.confirmed
        results.append(_with_shares(result, row) if row is not None and known else result)
    return msgspec.structs.replace(tests, results=results)


def _with_shares(result: SelfTest, row: RateRow) -> SelfTest:
    known_shares = list(_shares(result, row))
    if not known_shares:
        return result
    shares = [
        Measurement(
            name=say("{name} share of the vendor's peak", name=name),
            value=round(100.0 * value / peak, 1),
            unit="%",
        )
        for name, value, peak in known_shares
    ]
    return msgspec.structs.replace(
        result,
        measurements=[*result.measurements, *shares],
        data={**result.data, "vendor_peaks": {name: peak for name, _value, peak in known_shares}},
    )


def _shares(result: SelfTest, row: RateRow) -> Iterator[tuple[str, float, float]]:
    """Yield each measured rate: its name, its value and the vendor's, in TFLOP/s."""
    for measurement in result.measurements:
        name = measurement.name.removesuffix(" rate")
        column = _COLUMNS.get(name) if name != measurement.name else None
        peak = getattr(row, column) if column else None
        if peak and measurement.value is not None:
            yield name, measurement.value, peak


# Queries NVML about each GPU while the self-tests put it under load.

_EVERY = 2.0
"""Seconds between two queries: each costs the driver something."""
_MOST_MOMENTS = 120  # docs/architecture.md, 1.3, promises it; a plot is 360 wide, and shows no more
_NAME = "nvml"
_SOURCE = say("NVML, during the self-tests")

_TROUBLES = (
    "hw-slowdown",
    "hw-thermal-slowdown",
    "hw-power-brake-slowdown",
    "sw-thermal-slowdown",
)
"""The reasons for low clocks that are not normal; see the page of thermal-or-power-throttle."""


class Watch:
    """Queries NVML repeatedly in a child process, whose hang does no harm.

    Args:
        host: this machine.
        seconds: for how long at most.
    """

    def __init__(self, host: LiveHost, seconds: float) -> None:
        self._host = host
        self._looks: list[list[NvmlGpu]] = []
        self._times: list[float] = []
        self._begun = time.monotonic()
        self._children = Children()
        self._children.start(_NAME, self._work, time.monotonic() + seconds)

    def look(self) -> None:
        """Process the samples taken since the last call."""
        for event in self._children.wait(time.monotonic()):
            if isinstance(event, Said):
                with contextlib.suppress(msgspec.MsgspecError, ValueError, RecursionError):
                    at, raw = msgspec.msgpack.decode(event.data, type=tuple[float, dict[str, Any]])
                    self._looks.append(nvml.decode(raw).gpus or [])
                    self._times.append(at)

    def stop(self) -> list[GpuUnderLoad] | None:
        """End the child and return all samples in summary; None if NVML reported nothing."""
        with contextlib.suppress(OSError):
            self.look()
        self._children.stop()
        return summary(self._looks, self._times) if any(self._looks) else None

    def _work(self, tell: Tell) -> None:
        host: Host = self._host
        while (answer := host.nvml()).value is not None:
            sample = (round(time.monotonic() - self._begun, 1), answer.value)
            tell.answer(msgspec.msgpack.encode(sample, enc_hook=plain))
            time.sleep(_EVERY)


def summary(looks: Sequence[Sequence[NvmlGpu]], times: Sequence[float] = ()) -> list[GpuUnderLoad]:
    """Return what all queries together say about each GPU, in NVML's order.

    Without ``times``, the seconds of the queries, nothing is said about the course of time.
    """
    count = max(map(len, looks), default=0)
    found = []
    for at in range(count):
        under_load = _summary([look[at] for look in looks if len(look) > at])
        timed = zip(times, looks, strict=False)
        course = [_moment(seconds, look[at]) for seconds, look in timed if len(look) > at]
        found.append(msgspec.structs.replace(under_load, course=_thinned(course)))
    return found


def _moment(seconds: float, gpu: NvmlGpu) -> Moment:
    return Moment(
        seconds=seconds,
        temperature_c=gpu.temperature_c,
        memory_used_bytes=gpu.memory_used_bytes,
    )


def _thinned(course: Sequence[Moment]) -> list[Moment]:
    """Return as many moments as a plot shows: of those in a row the hottest."""
    per = -(-len(course) // _MOST_MOMENTS) or 1
    return [
        max(course[at : at + per], key=lambda moment: moment.temperature_c or 0)
        for at in range(0, len(course), per)
    ]


def _summary(seen: Sequence[NvmlGpu]) -> GpuUnderLoad:
    first, last = seen[0], seen[-1]
    found = strain(first, seen, last)
    return GpuUnderLoad(
        index=first.index,
        device_name=first.device_name,
        uuid=first.uuid,
        temperature_max_c=found.hottest,
        power_max_w=found.power_most,
        sm_clock_min_mhz=found.clock_lowest,
        held_down=found.held_down,
        ecc_corrected_added=found.errors_corrected,
        ecc_uncorrected_added=found.errors_uncorrected,
        looks=len(seen),
        sources={"*": _SOURCE},
    )


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
