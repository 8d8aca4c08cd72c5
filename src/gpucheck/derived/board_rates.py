"""The rate of each GPU in the self-tests, compared with the rate published for its board."""

import msgspec

from gpucheck.derived.base import Derived
from gpucheck.facts.selftests import LONG_ENOUGH, SelfTests
from gpucheck.tables.gpu_rates import GpuRates

_TEST, _RATE = "cublas-matmul", "bf16 rate"


class Published(msgspec.Struct, frozen=True):
    """The rate of a GPU (TFLOP/s in bf16) and the highest rate published for its board."""

    path: str
    device: str
    model: str
    value: float
    best: float

    @property
    def share(self) -> float:
        """The rate as a fraction of the published one."""
        return self.value / self.best


class BoardRates(Derived):
    """The rates of GPUs whose board has a published rate."""

    def __init__(self, tests: SelfTests, rates: GpuRates) -> None:
        self._tests = tests
        self._rates = rates

    def published(self) -> list[Published]:
        """Return each GPU that can be compared; [] at the quick level, which is too short."""
        if self._tests.level not in LONG_ENOUGH:
            return []
        models = self._tests.device_names()
        found = []
        for path, result in self._tests.of(_TEST):
            model = models.get(result.device, "")
            row = self._rates.rates(model)
            best = row.bf16_reached if row is not None and row.confirmed else None
            value = next(
                (
                    measurement.value
                    for measurement in result.measurements
                    if measurement.name == _RATE
                ),
                None,
            )
            if result.status == "passed" and best and value is not None:
                found.append(Published(path, result.device, model, value, best))
        return found
