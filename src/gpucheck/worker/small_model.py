"""A small convolutional model for runtimes other than torch, and its right result.

Its inputs and the weights of its first convolution are short integers, scaled by powers of two.
Both convolutions have stride 2, for which Winograd's method does not exist. So the first sum is
exact in fp32 and in TF32; with ReLU the whole model is exact. ``docs/selftests/reference.md`` has
the arithmetic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from . import reference
from .bench import Bench
from .words import say

Torch = Any  # the module, of any version
Tensor = Any
Module = Any

ACTIVATIONS = ("relu", "sigmoid", "tanh")
_LAYERS = {"relu": "ReLU", "sigmoid": "Sigmoid", "tanh": "Tanh"}
# An odd side with stride 2 has an edge; the bits below allow for 18 and 72 products.
_BATCH, _CHANNELS, _INNER, _SIDE, _KERNEL = 2, (2, 4), 8, 17, 3
# 18 products of them stay below 2**11, which TF32 holds exactly, and 72 products of these sums
# below 2**24.
_DATA_BITS, _WEIGHT_BITS = 4, 3
_SCALE = 2.0**-7
"""Makes the sums of the first convolution, which are some hundreds, fit a sigmoid."""
_SMOOTH = 2.0**-20
"""How far a sigmoid or a hyperbolic tangent may be off. It is absolute, because libraries compute a
sigmoid as one half and an odd function."""
_TENSOR_CORE = 2.0**-23  # formats.py has the source
_TF32 = 2.0**-10
"""What a rounding to TF32 costs at most, cut off or not."""


class Task(NamedTuple):
    """A model in float32 on the CPU, its input, and its result in float64 with a bound."""

    activation: str
    model: Module
    data: Tensor
    expected: Tensor
    bound: Tensor
    because: str


def task(torch: Torch, seed: int, activation: str, *, coarse: bool = False) -> Task:
    """Return the model with this activation; ``coarse`` allows TF32."""
    source = reference.generator(torch, seed)
    nn, scale = torch.nn, 1.0 if activation == "relu" else _SCALE
    first = nn.Conv2d(_CHANNELS[0], _INNER, _KERNEL, stride=2, padding=1)
    second = nn.Conv2d(_INNER, _CHANNELS[1], _KERNEL, stride=2, padding=1)
    with torch.no_grad():
        for layer in (first, second):
            for values in layer.parameters():
                drawn = reference.integers(torch, source, values.shape, _WEIGHT_BITS)
                values.copy_(drawn.float() * scale)
    model = nn.Sequential(first, getattr(nn, _LAYERS[activation])(), second).eval()
    size = (_BATCH, _CHANNELS[0], _SIDE, _SIDE)
    data = reference.integers(torch, source, size, _DATA_BITS).float()
    with torch.no_grad():
        return Task(activation, model, data, *_right(torch, model, data, coarse=coarse))


def _right(
    torch: Torch, model: Module, data: Tensor, *, coarse: bool
) -> tuple[Tensor, Tensor, str]:
    """Return the result in float64, the error bound, and the reason for the bound."""
    first, activation, second = model
    inner = activation(_convolved(torch, first, data.double(), first.bias.double()))
    result = _convolved(torch, second, inner, second.bias.double())
    if isinstance(activation, torch.nn.ReLU):
        return (
            result,
            torch.zeros_like(result),
            say("exact, because every partial sum is representable"),
        )
    off = torch.full_like(inner, _TF32 if coarse else _SMOOTH)
    if coarse:
        off = off + _TF32 * inner.abs()
    terms = second.weight[0].numel() + 1
    sums = _absolute(torch, second, inner.abs(), second.bias.double().abs())
    bound = _absolute(torch, second, off, None) + reference.gamma(terms, _TENSOR_CORE) * sums
    if coarse:
        because = say(
            "TF32, the error of the activation, rounding of a sum of {count} products", count=terms
        )
    else:
        because = say("2^-20 of the activation, rounding of a sum of {count} products", count=terms)
    return result, bound, because


def _convolved(torch: Torch, layer: Module, data: Tensor, bias: Tensor) -> Tensor:
    return torch.nn.functional.conv2d(data, layer.weight.double(), bias, 2, 1)


def _absolute(torch: Torch, layer: Module, data: Tensor, bias: Tensor | None) -> Tensor:
    return torch.nn.functional.conv2d(data, layer.weight.double().abs(), bias, 2, 1)


def judge(bench: Bench, model_task: Task, got: Tensor, by: str) -> None:
    """Check each value that a runtime has computed.

    Raises:
        Failed: see ``reference``.
    """
    what = f"convolutions and {model_task.activation}, {by}"
    there = got.to(bench.device)
    reference.require_dtype(what, there, bench.torch.float32)
    reference.within(what, there, model_task.expected, model_task.bound, bench, model_task.because)
