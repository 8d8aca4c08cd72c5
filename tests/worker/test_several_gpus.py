"""Tests of several GPUs, where there is none: what judges is shipped, the devices are faked."""

import types
from collections.abc import Callable
from typing import Any

import pytest
from worker_support import bench, flip, torch

from gpucheck.worker import networks
from gpucheck.worker.bench import Failed, Skipped
from gpucheck.worker.selftests import data_parallel, model_parallel, peer_copy

pytestmark = pytest.mark.process

Tensor = Any
TESTS = (peer_copy, data_parallel, model_parallel)


@pytest.mark.parametrize("test", TESTS)
def test_on_the_cpu_they_are_skipped(test: types.ModuleType) -> None:
    with pytest.raises(Skipped, match="under test"):
        test.run(bench())


@pytest.mark.parametrize("test", TESTS)
def test_with_one_gpu_they_are_skipped(test: types.ModuleType) -> None:
    workbench = bench()
    workbench.device, workbench.devices = torch.device("cuda:0"), [torch.device("cuda:0")]
    with pytest.raises(Skipped, match="one GPU only"):
        test.run(workbench)


@pytest.mark.parametrize(
    ("count", "devices", "parts"),
    [
        (30, 2, [15, 15]), (10, 8, [2, 2, 2, 2, 2]), (1, 4, [1]), (7, 3, [3, 3, 1]),
    ],
)  # fmt: skip
def test_the_documented_split(count: int, devices: int, parts: list[int]) -> None:
    assert data_parallel.expected_split(count, devices) == parts
    assert [len(part) for part in torch.arange(count).chunk(devices)] == parts


class OnGpus:
    """A module on fake GPUs: it splits as torch does, and computes each part on the CPU."""

    def __init__(self, model: Any, device_ids: Any) -> None:  # noqa: ANN401
        self.model = model
        self.devices = device_ids

    def parts(self, data: Tensor) -> list[Tensor]:
        return list(data.chunk(len(self.devices)))

    def __call__(self, data: Tensor) -> Tensor:
        return torch.cat([self.model(part) for part in self.parts(data)])


class Uneven(OnGpus):
    def parts(self, data: Tensor) -> list[Tensor]:
        return [data[:1], data[1:]] if len(data) > 1 else [data]


class Swapped(OnGpus):
    def __call__(self, data: Tensor) -> Tensor:
        return torch.cat([self.model(part) for part in self.parts(data)][::-1])


class Flipped(OnGpus):
    def __call__(self, data: Tensor) -> Tensor:
        result = super().__call__(data)
        return result + (flip(result, 12) - result).detach()


def split_over(monkeypatch: pytest.MonkeyPatch, wrapper: type[OnGpus], devices: int = 2) -> None:
    monkeypatch.setattr(torch.nn, "DataParallel", wrapper)
    data_parallel.check_batch(bench(devices=["cpu"] * devices), 30)


def test_a_batch_that_is_split_as_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    for devices in (2, 8):
        split_over(monkeypatch, OnGpus, devices)


@pytest.mark.parametrize(
    ("wrapper", "kind"),
    [(Uneven, "wrong-split"), (Swapped, "wrong-value"), (Flipped, "wrong-value")],
)
def test_a_batch_that_is_not(
    monkeypatch: pytest.MonkeyPatch, wrapper: type[OnGpus], kind: str
) -> None:
    with pytest.raises(Failed) as caught:
        split_over(monkeypatch, wrapper)
    assert caught.value.kind == kind
    if kind == "wrong-split":
        assert "split 30 samples into 1 on cpu, 29 on cpu instead of" in caught.value.detail


def test_layers_on_two_devices() -> None:
    model_parallel.check_halves(bench(), ("cpu", "cpu"))


def test_layers_whose_transfer_loses_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    right = torch.Tensor.to
    hidden = (model_parallel._COUNT, networks.HIDDEN)  # noqa: SLF001

    def to(tensor: Tensor, *where: Any) -> Tensor:  # noqa: ANN401
        moved = right(tensor, *where)
        if tuple(tensor.shape) == hidden and moved.requires_grad:
            return moved + (flip(moved, 20) - moved).detach()
        return moved

    monkeypatch.setattr(torch.Tensor, "to", to)
    with pytest.raises(Failed) as caught:
        model_parallel.check_halves(bench(), ("cpu", "cpu"))
    assert caught.value.kind == "wrong-value"


def copies(monkeypatch: pytest.MonkeyPatch, way: Callable[[Tensor], Tensor]) -> None:
    monkeypatch.setattr(torch, "full", lambda *given, **_more: Buffer(torch.ones(given[0]), way))
    peer_copy.check_pair(bench(), torch.device("cpu"), torch.device("cpu"), 7, direct=True)


class Buffer:
    """A buffer on the second device, into which copies go by a way of the test's."""

    def __init__(self, values: Tensor, way: Callable[[Tensor], Tensor]) -> None:
        self._values = values
        self._way = way

    def copy_(self, other: Tensor) -> None:
        self._values = self._way(other.clone())

    def cpu(self) -> Tensor:
        return self._values


def test_copies_that_arrive_right(monkeypatch: pytest.MonkeyPatch) -> None:
    copies(monkeypatch, lambda tensor: tensor)


class Late:
    """Delivers what was sent the time before."""

    def __init__(self) -> None:
        self.kept: Tensor = None

    def __call__(self, tensor: Tensor) -> Tensor:
        late = tensor if self.kept is None else self.kept
        self.kept = tensor
        return late


@pytest.mark.parametrize(
    "way", [lambda tensor: flip(tensor, 40), lambda tensor: tensor.zero_(), Late()]
)
def test_copies_that_do_not(
    monkeypatch: pytest.MonkeyPatch, way: Callable[[Tensor], Tensor]
) -> None:
    with pytest.raises(Failed) as caught:
        copies(monkeypatch, way)
    assert caught.value.kind == "wrong-value"
    assert caught.value.data["staged_is_right"] is True
    assert caught.value.data["direct"] is True
    assert "by way of the CPU the same arrives right" in caught.value.detail
