"""Self-tests of the worker on real torch, with a fault put under them."""

from types import ModuleType
from typing import Any

import pytest

from gpucheck.worker.bench import Bench, Failed

torch = pytest.importorskip("torch")
torch.set_num_threads(1)  # what is computed here is too small for more

Tensor = Any
LEAST = 64
"""Smaller tensors only ask whether something is there."""


def bench(seed: int = 0, level: str = "quick", **more: Any) -> Bench:  # noqa: ANN401
    return Bench(torch, "cpu", level=level, seed=seed, **more)


def failure(test: ModuleType, level: str = "quick", **more: Any) -> Failed:  # noqa: ANN401
    """Run a self-test that has to find something; return what."""
    with pytest.raises(Failed) as caught:
        test.run(bench(level=level, **more))
    return caught.value


def is_under_test(tensor: Tensor, *names: str) -> bool:
    """Whether a tensor belongs to the computation under test: references are float64 and int64."""
    name = str(tensor.dtype).removeprefix("torch.")
    return tensor.numel() >= LEAST and name in (names or ("float32", "float16", "bfloat16"))


def flip(tensor: Tensor, bit: int, at: int = 5) -> Tensor:
    """Return the tensor with one bit of one value flipped."""
    width = tensor.element_size()
    whole = {2: torch.int16, 4: torch.int32, 8: torch.int64}[width]
    copy = tensor.detach().clone(memory_format=torch.contiguous_format)
    copy.view(-1).view(whole)[at] ^= torch.tensor(1 << bit, dtype=torch.int64).to(whole)
    return copy


def as_tf32(tensor: Tensor) -> Tensor:
    """Round float32 to the eleven significant bits of TF32."""
    bits = tensor.detach().contiguous().view(torch.int32)
    return ((bits + (1 << 12)) & ~((1 << 13) - 1)).view(torch.float32)


def as_bf16(tensor: Tensor) -> Tensor:
    return tensor.to(torch.bfloat16).to(tensor.dtype)


def as_fp32(tensor: Tensor) -> Tensor:
    return tensor.to(torch.float32).to(tensor.dtype)


def as_fp8(tensor: Tensor) -> Tensor:
    return tensor.to(torch.float8_e5m2).to(tensor.dtype)
