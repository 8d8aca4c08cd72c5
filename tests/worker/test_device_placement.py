"""Moving tensors and modules: what arrives changed, late or elsewhere."""
# ruff: noqa: SLF001  # the parts of a self-test are tried one by one

from collections.abc import Callable
from typing import Any

import pytest
from worker_support import bench, failure, torch

from gpucheck.worker.bench import Bench, Failed
from gpucheck.worker.selftests import device_placement

pytestmark = pytest.mark.process

Tensor = Any


def put(monkeypatch: pytest.MonkeyPatch, name: str, fault: Callable[[Tensor], Tensor]) -> None:
    """Let a method of tensors return something else."""
    right = getattr(torch.Tensor, name)
    monkeypatch.setattr(
        torch.Tensor, name, lambda self, *more, **named: fault(right(self, *more, **named))
    )


@pytest.mark.parametrize("seed", range(3))
def test_without_a_fault_it_is_green(seed: int) -> None:
    device_placement.run(bench(seed))


def one_bit(tensor: Tensor) -> Tensor:
    if tensor.dtype != torch.bfloat16 or tensor.numel() < 4000:
        return tensor
    copy = tensor.clone()
    copy.view(torch.int16)[4000] ^= 1
    return copy


@pytest.mark.parametrize("way", ["cpu", "to", "copy_"])
def test_one_flipped_bit(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    put(monkeypatch, way, one_bit)
    found = failure(device_placement)
    assert (found.kind, found.data["wrong"], found.data["index"]) == ("wrong-value", 1, [8000])


def test_what_comes_back_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    before: dict[Any, Tensor] = {}

    def stale(tensor: Tensor) -> Tensor:
        return before.setdefault((tensor.dtype, tensor.shape), tensor.clone())

    put(monkeypatch, "cpu", stale)
    found = failure(device_placement)
    assert (found.kind, "not blocking" in found.detail) == ("wrong-value", True)


def test_nan_bits_are_kept_or_it_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    def quiet(tensor: Tensor) -> Tensor:
        if not tensor.is_floating_point():
            return tensor
        return torch.where(torch.isnan(tensor), torch.full_like(tensor, float("nan")), tensor)

    put(monkeypatch, "cpu", quiet)
    assert "float16 moved" in failure(device_placement).detail


def test_another_type_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    put(monkeypatch, "cpu", lambda tensor: tensor.int() if tensor.dtype == torch.int64 else tensor)
    assert failure(device_placement).kind == "wrong-shape"


def test_a_transposed_tensor_arrives_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(tensor: Tensor) -> Tensor:
        if tensor.dim() == 3 and not tensor.is_contiguous():
            return tensor.permute(*reversed(range(3))).reshape(tensor.shape)
        return tensor

    put(monkeypatch, "to", plain)
    assert "of shape" in failure(device_placement).detail


def test_a_module_that_leaves_a_buffer_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def move(self: Any, _device: Any) -> Any:  # noqa: ANN401
        self[1].running_var = torch.ones(5, device="meta")
        return self

    monkeypatch.setattr(torch.nn.Module, "to", move)
    found = failure(device_placement)
    assert (found.kind, "1.running_var" in found.detail) == ("wrong-device", True)


def test_a_layer_that_computes_wrongly_after_the_move(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn.Linear, "forward", lambda self, data: data @ self.weight.t())
    assert "linear layer" in failure(device_placement).detail


class Mixing:
    """torch that creates tensors of which two devices get along, or do not."""

    def __init__(self, words: str) -> None:
        self.words = words

    def ones(self, *_sizes: int, device: Any) -> "Mixing":  # noqa: ANN401
        self.device = device
        return self

    def __add__(self, _other: object) -> "Mixing":
        if self.words:
            raise RuntimeError(self.words)
        return self


@pytest.mark.parametrize(
    "words", ["Expected all tensors to be on the same device, but found two", "", "illegal access"]
)
def test_adding_across_devices_must_be_refused(words: str) -> None:
    workbench = Bench(torch, "cpu", ("cpu", "cuda:1"))
    workbench.torch = Mixing(words)
    if words.startswith("Expected"):
        device_placement._no_mixing(workbench)
        return
    with pytest.raises(RuntimeError if words else Failed, match=words or "torch added a tensor"):
        device_placement._no_mixing(workbench)


def test_bandwidth_on_what_stands_for_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    workbench = bench(memory_limit=1 << 16)
    workbench.device = type("Gpu", (), {"type": "cuda"})()
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda count, **named: empty(count, dtype=named["dtype"]))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda _device: None)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self)
    device_placement._bandwidth(workbench)
    assert [each["name"] for each in workbench.measurements] == [
        "pageable memory to the GPU", "pageable memory from the GPU",
        "pinned memory to the GPU", "pinned memory from the GPU",
    ]  # fmt: skip
    assert all(each["unit"] == "GB/s" and each["value"] > 0 for each in workbench.measurements)
