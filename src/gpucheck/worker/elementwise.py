"""Checks activations and batch norm, the layers between the convolutions of a network."""

from __future__ import annotations

from typing import Any

from . import reference
from .bench import Bench
from .formats import Format, switches, usable
from .timing import synchronize
from .words import say

Torch = Any  # the module, of any version
Tensor = Any

ACTIVATIONS = ("relu", "sigmoid", "tanh")
# Chosen: 8,192 values; batch norm adds up 1,024 of them, which its bound allows for.
_SIZE = (4, 8, 16, 16)
_ULPS = 4
"""CUDA's tanhf and expf are off by at most 2 units in the last place (CUDA C++ Programming Guide,
"Mathematical Functions"); a sigmoid adds an addition and a division."""


def check_elementwise(bench: Bench) -> None:
    """Compare ReLU, sigmoid, tanh and batch norm with float64 on the CPU."""
    for fmt in usable(bench, ("fp32", "fp16", "bf16")):
        if bench.device.type == "cpu" and fmt.name == "fp16":
            continue  # several releases have no fp16 activations on the CPU
        with switches(bench.torch):
            _activations(bench, fmt)
    fp32 = usable(bench, ("fp32",))[0]
    _batch_norm(bench, fp32)


def _activations(bench: Bench, fmt: Format) -> None:
    torch = bench.torch
    source = reference.generator(torch, bench.seed + 3)
    data = (3 * torch.randn(_SIZE, generator=source)).to(fmt.dtype)
    for name in ACTIVATIONS:
        title = f"{fmt.name} {name}"
        bench.stage(title)
        function = getattr(torch, name)
        got = function(data.to(bench.device))
        expected = function(data.double())
        bound, because = activation_bound(torch, fmt, name, expected)
        reference.require_dtype(title, got, fmt.dtype)
        reference.within(title, got, expected, bound, bench, because)


def activation_bound(torch: Torch, fmt: Format, name: str, expected: Tensor) -> tuple[Tensor, str]:
    """Return the error bound of each value of an activation, and the reason for it."""
    if name == "relu":
        return 0.0 * expected, say("nothing is rounded")
    least = torch.finfo(fmt.dtype).tiny * fmt.result_roundoff  # half of the smallest subnormal
    roundoff = fmt.result_roundoff + 2 * _ULPS * 2.0**-24
    return roundoff * expected.abs() + least, say("4 ulp of fp32, and rounding of the result")


def _batch_norm(bench: Bench, fmt: Format) -> None:
    """Normalise a batch: result, running mean and running variance."""
    torch, title = bench.torch, "fp32 batch norm"
    bench.stage(title)
    source = reference.generator(torch, bench.seed + 4)
    drawn = {
        "data": torch.randn(_SIZE, generator=source) + 0.5,
        "weight": torch.rand(_SIZE[1], generator=source) + 0.5,
        "bias": torch.randn(_SIZE[1], generator=source),
    }
    got = _normalise(torch, {name: each.to(bench.device) for name, each in drawn.items()})
    synchronize(bench)
    exact = {name: each.double() for name, each in drawn.items()}
    expected = _normalise(torch, exact)
    bounds = _batch_norm_bounds(exact, expected, fmt)
    for part, value in expected.items():
        count = _SIZE[0] * _SIZE[2] * _SIZE[3]
        because = say("rounding of sums over {count} values", count=count)
        reference.within(f"{title}: {part}", got[part], value, bounds[part], bench, because)


def _normalise(torch: Torch, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    mean, variance = torch.zeros_like(tensors["bias"]), torch.zeros_like(tensors["bias"])
    result = torch.nn.functional.batch_norm(
        tensors["data"],
        mean,
        variance,
        tensors["weight"],
        tensors["bias"],
        training=True,
        momentum=1.0,
    )
    return {"result": result, "mean": mean, "variance": variance}


def _batch_norm_bounds(
    exact: dict[str, Tensor], expected: dict[str, Tensor], fmt: Format
) -> dict[str, Tensor]:
    """Return error bounds that follow from the rounding of the sums.

    Let g be gamma of the number of values. The error of the mean is at most g times the mean
    absolute value. The variance is a sum of squared differences from the mean, and its error is at
    most 2 g times the mean square of the values. The error of the result follows from both, plus a
    few roundings of its own.
    """
    data = exact["data"]
    dims = (0, 2, 3)
    share = reference.gamma(data.numel() // data.shape[1] + 4, fmt.sum_roundoff)
    mean = share * data.abs().mean(dims)
    variance = 2 * share * (data**2).mean(dims)
    scale = expected["variance"].rsqrt()
    standard = (data - _by_channel(expected["mean"])) * _by_channel(scale)
    slope = _by_channel(exact["weight"])
    result = slope * (
        _by_channel(mean * scale) + standard.abs() * _by_channel(variance * scale**2 + share)
    )
    own = 4 * fmt.result_roundoff * (expected["result"].abs() + _by_channel(exact["bias"].abs()))
    return {"result": result + own, "mean": mean, "variance": variance}


def _by_channel(values: Tensor) -> Tensor:
    return values.reshape(1, -1, 1, 1)
