"""The share of the vendor's peak rate that each GPU reached, for information only.

No program reaches a peak, and how close a healthy GPU comes differs between boards; see
``docs/selftests/reference.md``.
"""

from collections.abc import Iterator

import msgspec

from gpucheck.facts.selftests import LONG_ENOUGH, Measurement, SelfTest, SelfTests
from gpucheck.language import say
from gpucheck.tables.gpus import GpuRates, RateRow

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
