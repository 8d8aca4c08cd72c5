"""The convolutions under test: their shapes, their inputs, and how they are computed."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import reference
from .bench import Bench
from .formats import Format

Torch = Any  # the module, of any version
Tensor = Any


class Shape(NamedTuple):
    """A convolution: sizes of batch, channels, image and kernel, and how it is applied."""

    name: str
    batch: int
    channels: int
    image: tuple[int, ...]
    kernel: tuple[int, ...]
    stride: int
    groups: int = 1


PLAIN = Shape("plain", 4, 16, (24, 24), (3, 3), 1)
STRIDED = Shape("strided", 2, 8, (17, 17), (5, 5), 2)
GROUPED = Shape("grouped", 2, 16, (17, 17), (3, 3), 2, 4)
DEPTHWISE = Shape("depthwise", 2, 16, (17, 17), (3, 3), 2, 16)
VOLUME = Shape("3-D", 1, 8, (9, 9, 9), (3, 3, 3), 2)
"""With stride 2 no sum is longer than ``reference.LONGEST_SUM``, forward or backward."""


def sizes(shape: Shape) -> tuple[tuple[int, ...], ...]:
    """Return the sizes of the input, the weight and the gradient that flows back."""
    out = tuple((side - 1) // shape.stride + 1 for side in shape.image)
    data = (shape.batch, shape.channels, *shape.image)
    weight = (shape.channels, shape.channels // shape.groups, *shape.kernel)
    return data, weight, (shape.batch, shape.channels, *out)


def padding(shape: Shape) -> tuple[int, ...]:
    """Return the padding: half a kernel, so that stride 1 keeps the size."""
    return tuple(side // 2 for side in shape.kernel)


def terms(shape: Shape) -> dict[str, int]:
    """Return the maximum number of products in one value of each result."""
    _data, weight, flow = sizes(shape)
    taps = _product(weight[1:])
    return {"forward": taps, "backward data": taps, "backward weight": _product(flow) // flow[1]}


def _product(numbers: tuple[int, ...]) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def draw_integers(torch: Torch, seed: int, fmt: Format, shape: Shape) -> tuple[Tensor, ...]:
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


def convolve(torch: Torch, shape: Shape, tensors: tuple[Tensor, ...]) -> dict[str, Tensor]:
    """Return the convolution and both gradients, on the device and in the format of the inputs."""
    data, weight = (each.detach().clone().requires_grad_() for each in tensors[:2])
    convolution = getattr(torch.nn.functional, f"conv{len(shape.image)}d")
    result = convolution(data, weight, None, shape.stride, padding(shape), 1, shape.groups)
    # Not autograd.grad: given a gradient, torch imports a second's worth of modules to check it.
    (result * tensors[2]).sum().backward()
    values = (result.detach(), data.grad, weight.grad)
    return dict(zip(("forward", "backward data", "backward weight"), values))
