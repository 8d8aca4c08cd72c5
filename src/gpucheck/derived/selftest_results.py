"""What follows from the results of self-tests: rates beside others, and NCCL's control runs."""

import re
from collections.abc import Iterable

import msgspec

from gpucheck.facts.base import Derived
from gpucheck.facts.selftests import LONG_ENOUGH, SelfTest, SelfTests
from gpucheck.tables.gpus import GpuRates, RateRow

# The rates of GPUs in the self-tests, beside others of their model and beside published ones.

_LOAD = ("sustained", ("sustained rate",))
_PRODUCTS = ("cublas-matmul", ("fp64 rate", "fp32 rate", "tf32 rate", "fp16 rate", "bf16 rate"))

_TEST, _RATE = "cublas-matmul", "bf16 rate"


class Speed(msgspec.Struct, frozen=True):
    """A GPU compared with the median of the others of its model, in its best measurement."""

    path: str
    device: str
    model: str
    share: float
    rate: str
    value: float
    peers: float
    others: int


class SameModel(Derived):
    """The rates of GPUs of the same model."""

    def __init__(self, tests: SelfTests) -> None:
        self._tests = tests

    def speeds(self) -> list[Speed]:
        """Return every GPU that has a peer, by what was measured longest; [] if there is none."""
        if self._tests.level not in LONG_ENOUGH:
            return []
        for test, names in (_LOAD, _PRODUCTS):
            passed = [
                numbered_result
                for numbered_result in self._tests.of(test)
                if numbered_result[1].status == "passed"
            ]
            if found := list(self._compared(passed, names)):
                return found
        return []

    def _compared(
        self, results: list[tuple[str, SelfTest]], names: tuple[str, ...]
    ) -> Iterable[Speed]:
        import statistics  # noqa: PLC0415  # slow to import, and only needed for tested GPUs

        models = self._tests.device_names()
        for path, result in results:
            model = models.get(result.device)
            peers = [
                other for _path, other in results
                if model and other.device != result.device and models.get(other.device) == model
            ]  # fmt: skip
            own, others = _rates(result), [_rates(peer) for peer in peers]
            shares = [
                Speed(path, result.device, model or "", own[name] / middle, name, own[name],
                      middle, len(peers))
                for name in names
                if name in own and others and all(name in rates for rates in others)
                and (middle := statistics.median(rates[name] for rates in others)) > 0
            ]  # fmt: skip
            if shares:
                yield max(shares, key=lambda speed: speed.share)


def _rates(result: SelfTest) -> dict[str, float]:
    return {
        measurement.name: measurement.value
        for measurement in result.measurements
        if measurement.value is not None
    }


class Published(msgspec.Struct, frozen=True):
    """The rate of a GPU (TFLOP/s in bf16) and the highest rate published for its board."""

    path: str
    device: str
    model: str
    value: float
    best: float
    row: RateRow

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
            if result.status == "passed" and row is not None and best and value is not None:
                found.append(Published(path, result.device, model, value, best, row))
        return found


# The results of the NCCL control runs: the transports without which a collective passes.

_DUPLICATE = (
    r"Duplicate GPU detected ?: rank (\d{1,6}) and rank (\d{1,6}) both on CUDA device (\w{1,20})"
)


_CONTROLS = {
    "NCCL_P2P_DISABLE": "1",
    "NCCL_SHM_DISABLE": "1",
    "NCCL_NVLS_ENABLE": "0",
    "NCCL_CUMEM_ENABLE": "0",
    "NCCL_CUMEM_HOST_ENABLE": "0",
    "NCCL_IB_DISABLE": "1",
    "NCCL_PROTO": "Simple",
}
"""All that control runs set, here and in a pre-flight. Commands are made of these alone: a saved
report could name any variable, such as LD_PRELOAD."""


class PassedWithout(msgspec.Struct, frozen=True):
    """A self-test that failed, and passed with other variables.

    ``again`` is whether it failed once more without them; None if there was no time to run it.
    """

    path: str
    result: SelfTest
    variables: dict[str, str]
    again: bool | None


class NcclControl(Derived):
    """The collectives that failed over NCCL."""

    def __init__(self, tests: SelfTests) -> None:
        self._tests = tests

    def passed_without(self) -> list[PassedWithout]:
        """Return the tests that a variable makes pass, except those that also pass unchanged."""
        found = []
        for path, result in self._tests.wrong():
            control = result.data.get("control")
            if not isinstance(control, dict):
                continue
            again, variables = control.get("goes_wrong_again"), control_run(control.get("cured_by"))
            if variables and again is not False:
                found.append(PassedWithout(path, result, variables, again))
        return found

    def duplicate(self) -> tuple[str, tuple[str, str], str] | None:
        """Return where NCCL found two ranks on one GPU: the path, the ranks, the device."""
        for path, result in self._tests.wrong():
            for text in result.words():
                if found := re.search(_DUPLICATE, text):
                    return path, (found.group(1), found.group(2)), found.group(3)
        return None


def control_run(reported: object) -> dict[str, str]:
    """Return the variables of a control run as a report says them; {} if no run sets them so."""
    if not isinstance(reported, dict):
        return {}
    known = {name: value for name, value in _CONTROLS.items() if reported.get(name) == value}
    return known if known.keys() == reported.keys() else {}


def settings(variables: dict[str, str]) -> str:
    """Return the variables in shell notation."""
    return " ".join(f"{name}={value}" for name, value in variables.items())
