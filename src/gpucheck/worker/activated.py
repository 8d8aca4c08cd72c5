"""Tests a convolution together with the activation that follows it in most networks.

The inputs are integers, so the convolution must be exact. Its result is scaled by a power of two,
which rounds nothing. So the activation has the same input as in the reference, in every format.
"""

from __future__ import annotations

import math
from typing import Any

from . import reference
from .bench import Bench
from .convolution import Shape, draw_integers, padding
from .elementwise import ACTIVATIONS, activation_bound
from .formats import Format
from .timing import synchronize

Torch = Any  # the module, of any version
Tensor = Any

_WIDEST = 4.0
"""Beyond it, sigmoid and hyperbolic tangent are nearly constant."""


def check_activated(bench: Bench, fmt: Format, shape: Shape) -> None:
    """Check a convolution followed by ReLU, sigmoid and tanh; for ReLU, check the gradients too."""
    if bench.device.type == "cpu" and fmt.name == "fp16":
        return  # several releases have no fp16 activations on the CPU
    torch = bench.torch
    drawn = draw_integers(torch, bench.seed + 5, fmt, shape)
    for name in ACTIVATIONS:
        title = f"{fmt.name} {shape.name} convolution and {name}"
        bench.stage(title)
        expected = _computed(torch, shape, name, tuple(each.double() for each in drawn))
        there = tuple(each.to(fmt.dtype).to(bench.device) for each in drawn)
        got = _computed(torch, shape, name, there)
        synchronize(bench)
        for part, value in expected.items():
            what = f"{title}: {part}"
            reference.require_dtype(what, got[part], fmt.dtype)
            bound, because = activation_bound(torch, fmt, name, value)
            reference.within(what, got[part], value, bound, bench, because)


def _computed(
    torch: Torch, shape: Shape, name: str, tensors: tuple[Tensor, ...]
) -> dict[str, Tensor]:
    """Return the result of convolution and activation; for ReLU, both gradients as well."""
    data, weight = (each.detach().clone().requires_grad_() for each in tensors[:2])
    sums = torch.nn.functional.conv2d(data, weight, None, shape.stride, padding(shape))
    if name != "relu":
        return {"forward": getattr(torch, name)(sums.detach() * _scale(sums))}
    result = torch.relu(sums)
    (result * tensors[2]).sum().backward()
    return {
        "forward": result.detach(),
        "backward data": data.grad,
        "backward weight": weight.grad,
    }


def _scale(sums: Tensor) -> float:
    """Return the power of two that brings the largest sum into the useful range of activations."""
    largest = float(sums.detach().abs().max().double())
    return 2.0 ** math.floor(math.log2(_WIDEST / largest)) if largest > _WIDEST else 1.0
