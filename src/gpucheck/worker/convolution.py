"""The layers of a network under test: convolutions, activations and batch norm."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from . import reference
from .bench import Bench
from .formats import Format, switches, usable
from .timing import synchronize
from .words import say

# The convolutions under test: their shapes, their inputs, and how they are computed.

Torch = Any  # the module, of any version
Tensor = Any


class LayerShape(NamedTuple):
    """A convolution: sizes of batch, channels, image and kernel, and how it is applied."""

    name: str
    batch: int
    channels: int
    image: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: int
    groups: int = 1


PLAIN = LayerShape("plain", 4, 16, (24, 24), (3, 3), 1)
STRIDED = LayerShape("strided", 2, 8, (17, 17), (5, 5), 2)
GROUPED = LayerShape("grouped", 2, 16, (17, 17), (3, 3), 2, 4)
DEPTHWISE = LayerShape("depthwise", 2, 16, (17, 17), (3, 3), 2, 16)
VOLUME = LayerShape("3-D", 1, 8, (9, 9, 9), (3, 3, 3), 2)
"""With stride 2 no sum is longer than ``reference.LONGEST_SUM``, forward or backward."""


def sizes(shape: LayerShape) -> tuple[tuple[int, ...], ...]:
    """Return the sizes of the input, the weight and the gradient that flows back."""
    out = tuple((side - 1) // shape.stride + 1 for side in shape.image)
    data = (shape.batch, shape.channels, *shape.image)
    weight = (shape.channels, shape.channels // shape.groups, *shape.kernel)
    return data, weight, (shape.batch, shape.channels, *out)


def padding(shape: LayerShape) -> tuple[int, ...]:
    """Return the padding: half a kernel, so that stride 1 keeps the size."""
    return tuple(side // 2 for side in shape.kernel)


def terms(shape: LayerShape) -> dict[str, int]:
    """Return the maximum number of products in one value of each result."""
    _data, weight, flow = sizes(shape)
    taps = _product(weight[1:])
    return {"forward": taps, "backward data": taps, "backward weight": _product(flow) // flow[1]}


def _product(numbers: tuple[int, ...]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def draw_integers(torch: Torch, seed: int, fmt: Format, shape: LayerShape) -> tuple[Tensor, ...]:
    """Draw input, weight and gradient as integers small enough for exact sums of products."""
    source = reference.generator(torch, seed)
    wide, narrow = fmt.factor_bits
    return tuple(
        reference.integers(torch, source, size, bits)
        for size, bits in zip(sizes(shape), (wide, narrow, narrow))
    )


def place(
    bench: Bench, fmt: Format, tensors: tuple[Tensor, ...], layout: str = "contiguous"
) -> tuple[Tensor, ...]:
    """Move tensors to the device under test, in the format and the memory layout."""
    there = tuple(each.to(fmt.dtype).to(bench.device) for each in tensors)
    if layout == "contiguous":
        return there
    return tuple(each.contiguous(memory_format=bench.torch.channels_last) for each in there)


def convolve(torch: Torch, shape: LayerShape, tensors: tuple[Tensor, ...]) -> dict[str, Tensor]:
    """Return the convolution and both gradients, on the device and in the format of the inputs."""
    data, weight = (each.detach().clone().requires_grad_() for each in tensors[:2])
    convolution = getattr(torch.nn.functional, f"conv{len(shape.image)}d")
    result = convolution(data, weight, None, shape.stride, padding(shape), 1, shape.groups)
    # Not autograd.grad: given a gradient, torch imports a second's worth of modules to check it.
    (result * tensors[2]).sum().backward()
    values = (result.detach(), data.grad, weight.grad)
    return dict(zip(("forward", "backward data", "backward weight"), values))


# Checks activations and batch norm, the layers between the convolutions of a network.

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


# Tests a convolution together with the activation that follows it in most networks.
#
# The inputs are integers, so the convolution must be exact. Its result is scaled by a power of two,
# which rounds nothing. So the activation has the same input as in the reference, in every format.

_WIDEST = 4.0
"""Beyond it, sigmoid and hyperbolic tangent are nearly constant."""


def check_activated(bench: Bench, fmt: Format, shape: LayerShape) -> None:
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
    torch: Torch, shape: LayerShape, name: str, tensors: tuple[Tensor, ...]
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
