"""The search for the largest batch: what fits is known, because the memory is a number here."""
# ruff: noqa: SLF001  # the parts of a self-test are tried one by one

import math
import time
import types
from typing import Any

import pytest
from worker_support import bench, torch

from gpucheck.worker.bench import Bench, Failed, Skipped
from gpucheck.worker.selftests import batch_size

pytestmark = pytest.mark.process

Tensor = Any
MOST = (2**31 - 1) // (16 * 112**2)


def room_for(monkeypatch: pytest.MonkeyPatch, most: int) -> list[int]:
    """Let a step run out of memory beyond so many images; return what was tried."""
    tried: list[int] = []

    def step(_bench: Bench, _model: Any, size: int) -> None:  # noqa: ANN401
        tried.append(size)
        if size > most:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(batch_size, "_step", step)
    # A step that is faked leaves no garbage, and to look for it in all of pytest takes 60 ms.
    monkeypatch.setattr("gc.collect", lambda: 0)
    return tried


@pytest.fixture(name="model")
def small_model() -> Any:  # noqa: ANN401  # a torch module
    return torch.nn.Linear(2, 2)


@pytest.mark.parametrize("most", [1, 2, 3, 12, 15, 16, 17, 500, 1000, 9999])
def test_the_largest_is_found(monkeypatch: pytest.MonkeyPatch, model: Any, most: int) -> None:  # noqa: ANN401
    tried = room_for(monkeypatch, most)
    found, stopped = batch_size._search(bench(), model)
    assert most - max(1, most // 16) < found <= most
    assert stopped == "memory"
    assert len(tried) <= 2 * math.log2(most) + 3
    assert max(tried) <= 2 * most


def test_no_tensor_gets_too_large(monkeypatch: pytest.MonkeyPatch, model: Any) -> None:  # noqa: ANN401
    tried = room_for(monkeypatch, 10**9)
    found, stopped = batch_size._search(bench(), model)
    assert found == max(tried)
    assert MOST * 15 / 16 <= found <= MOST
    assert stopped == "size"


def test_the_deadline_ends_the_search(monkeypatch: pytest.MonkeyPatch, model: Any) -> None:  # noqa: ANN401
    room_for(monkeypatch, 10**9)
    found, stopped = batch_size._search(bench(deadline=time.monotonic() + 5), model)
    assert (found, stopped) == (1, "time")


def test_not_even_one(monkeypatch: pytest.MonkeyPatch, model: Any) -> None:  # noqa: ANN401
    room_for(monkeypatch, 0)
    with pytest.raises(Failed) as caught:
        batch_size._search(bench(memory_limit=256 << 20), model)
    assert (caught.value.kind, "256 MiB" in caught.value.detail) == ("out-of-memory", True)


@pytest.mark.parametrize(
    "words",
    [
        "CUDA error: out of memory",
        "Unable to find a valid cuDNN algorithm to run convolution",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)",
    ],
)
def test_what_means_that_it_does_not_fit(
    monkeypatch: pytest.MonkeyPatch,
    model: Any,  # noqa: ANN401
    words: str,
) -> None:
    def step(*_all: Any) -> None:  # noqa: ANN401
        raise RuntimeError(words)

    monkeypatch.setattr(batch_size, "_step", step)
    assert not batch_size._fits(bench(), model, 2)


def test_another_error_is_no_lack_of_memory(monkeypatch: pytest.MonkeyPatch, model: Any) -> None:  # noqa: ANN401
    def step(*_all: Any) -> None:  # noqa: ANN401
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(batch_size, "_step", step)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        batch_size._fits(bench(), model, 2)


def test_a_real_step_and_its_gradients_are_dropped() -> None:
    workbench = bench()
    model = batch_size._network(torch, 0)
    assert batch_size._fits(workbench, model, 1)
    assert all(weight.grad is None for weight in model.parameters())


def test_it_needs_a_gpu_with_memory_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Skipped, match="uses the memory of the system"):
        batch_size.run(bench())
    workbench = bench()
    workbench.device = types.SimpleNamespace(type="cuda")
    shared = types.SimpleNamespace(is_integrated=1, total_memory=1 << 37)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _device: shared)
    with pytest.raises(Skipped, match="take memory from other programs"):
        batch_size.run(workbench)


def run_on_a_stand_in(monkeypatch: pytest.MonkeyPatch) -> tuple[Bench, list[float]]:
    """Run the whole test on the CPU, with the functions of torch.cuda replaced."""
    fractions: list[float] = []
    properties = types.SimpleNamespace(is_integrated=0, total_memory=1 << 33)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _device: properties)
    monkeypatch.setattr(
        torch.cuda,
        "set_per_process_memory_fraction",
        lambda share, _device: fractions.append(share),
    )
    monkeypatch.setattr(batch_size, "release", lambda _bench: None)
    monkeypatch.setattr(batch_size, "synchronize", lambda _bench: None)
    monkeypatch.setattr(batch_size, "_network", lambda _torch, _seed: torch.nn.Linear(2, 2))
    workbench = bench(memory_limit=1 << 31)
    workbench.device = torch.device("cuda")
    monkeypatch.setattr(torch.nn.Module, "to", lambda self, _device: self)
    return workbench, fractions


def test_torch_itself_holds_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    workbench, fractions = run_on_a_stand_in(monkeypatch)
    room_for(monkeypatch, 100)
    batch_size.run(workbench)
    assert fractions == [0.25, 1.0]
    assert 94 < workbench.data["largest_batch"] <= 100
    assert (
        workbench.remark
        == f"a batch of {workbench.data['largest_batch']} images fits into 2.00 GiB"
    )


def test_memory_that_is_not_had_again(monkeypatch: pytest.MonkeyPatch) -> None:
    workbench, fractions = run_on_a_stand_in(monkeypatch)
    gone: list[int] = []

    def step(_bench: Bench, _model: Any, size: int) -> None:  # noqa: ANN401
        if size > 100:
            gone.append(size)
        if size > 100 or (gone and size > 50):
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(batch_size, "_step", step)
    with pytest.raises(Failed, match="no longer fits"):
        batch_size.run(workbench)
    assert fractions == [0.25, 1.0]
