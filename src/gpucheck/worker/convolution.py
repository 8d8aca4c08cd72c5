"""The layers of a network under test: convolutions, activations and batch norm."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from . import reference
from .bench import Bench, Failed, synchronize
from .reference import Format, not_tested, switches, usable
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


# Proves that cuDNN can compute a convolution, and finds the backend that torch would choose.

_PART = say("proof that cuDNN ran")
_BENCHMARK_DETERMINISTIC_TF32 = (False, True, False)
_TRANSPOSED = False


def prove_cudnn(bench: Bench) -> None:
    """Call cuDNN by torch's operator for it, and require that ``conv2d`` would choose cuDNN too.

    Without an NVIDIA GPU nothing is required.
    """
    if bench.device.type != "cuda":
        not_tested(bench, _PART, say("cuDNN works on GPUs only"))
    elif getattr(bench.torch.version, "hip", None):
        not_tested(bench, _PART, say("this is a build for AMD GPUs, which have MIOpen instead"))
    else:
        require_cudnn(bench)


def require_cudnn(bench: Bench) -> None:
    """Fail unless torch chooses cuDNN for the convolutions that cuDNN normally computes.

    Depthwise convolutions, activations and normalisation are not examined, because torch has its
    own kernels for them. Convolutions in half precision are not examined either, because several
    releases of torch avoid cuDNN for them on purpose.

    Raises:
        Failed: ``cudnn-not-used``, or what ``reference.same`` raises.
    """
    torch = bench.torch
    _require_switched_on(torch)
    bench.stage(say("cuDNN version"))
    bench.data["cudnn_version"] = torch.backends.cudnn.version()
    backends = {}
    with switches(torch):
        for shape in (STRIDED, GROUPED, VOLUME):
            tensors = _by_operator(bench, shape)
            backends[shape.name] = _backend(bench, shape, tensors)
        backends[PLAIN.name] = _backend(bench, PLAIN, _tensors(bench, PLAIN)[1])
    bench.data["conv_backends"] = backends
    for name, backend in backends.items():
        if backend is not None and "cudnn" not in backend.lower():
            raise Failed(
                "cudnn-not-used",
                say(
                    "torch takes {backend} for the {name} convolution in fp32 instead of cuDNN",
                    backend=backend,
                    name=name,
                ),
                {"backends": backends},
            )
    unknown = sorted(name for name, backend in backends.items() if backend is None)
    if unknown:
        not_tested(
            bench,
            _PART,
            say(
                "torch does not say which library computes these convolutions: {names}",
                names=", ".join(unknown),
            ),
        )


def _require_switched_on(torch: Torch) -> None:
    cudnn = torch.backends.cudnn
    if not cudnn.is_available():
        raise Failed(
            "cudnn-not-used", say("this build of torch has no cuDNN"), {"reason": "not built in"}
        )
    if not cudnn.enabled:
        raise Failed(
            "cudnn-not-used",
            say(
                "torch.backends.cudnn.enabled is False: something at start-up has switched cuDNN "
                "off"
            ),
            {"reason": "switched off"},
        )


def _tensors(bench: Bench, shape: LayerShape) -> tuple[tuple[Tensor, ...], tuple[Tensor, Tensor]]:
    """Return the integers on the CPU, and input and weight on the device."""
    fp32 = usable(bench, ("fp32",))[0]
    drawn = draw_integers(bench.torch, bench.seed + 2, fp32, shape)
    data, weight = (each.to(fp32.dtype).to(bench.device) for each in drawn[:2])
    return drawn, (data, weight)


def _by_operator(bench: Bench, shape: LayerShape) -> tuple[Tensor, Tensor]:
    """Convolve by the operator that uses only cuDNN; return the arguments that it was given."""
    torch = bench.torch
    bench.stage("cudnn_convolution, " + shape.name)
    drawn, (data, weight) = _tensors(bench, shape)
    sides = len(shape.image)
    got = torch.ops.aten.cudnn_convolution(
        data,
        weight,
        list(padding(shape)),
        [shape.stride] * sides,
        [1] * sides,
        shape.groups,
        *_BENCHMARK_DETERMINISTIC_TF32,
    )
    synchronize(bench)
    expected = convolve(torch, shape, tuple(each.double() for each in drawn))["forward"]
    reference.same("cudnn_convolution, " + shape.name, got, expected, bench)
    return data, weight


def _backend(bench: Bench, shape: LayerShape, tensors: tuple[Tensor, Tensor]) -> str | None:
    """Return the backend that torch would choose for this convolution; None if unknown."""
    bench.stage(say("which library computes the {name} convolution", name=shape.name))
    return _selected(bench.torch, shape, tensors) or _profiled(bench.torch, shape, tensors)


def _selected(torch: Torch, shape: LayerShape, tensors: tuple[Tensor, Tensor]) -> str | None:
    """Ask torch's own choice (``torch._C._select_conv_backend``, private, since 1.13)."""
    sides = len(shape.image)
    ask = getattr(torch._C, "_select_conv_backend", None)  # noqa: SLF001  # torch has no public one
    if ask is None:
        return None
    strides = [shape.stride] * sides
    try:
        answer = ask(
            *tensors, None, strides, list(padding(shape)), [1] * sides,
            _TRANSPOSED, [0] * sides, shape.groups,
        )  # fmt: skip
    except TypeError:
        return None  # another signature
    return str(answer).rpartition(".")[2] or None


def _profiled(torch: Torch, shape: LayerShape, tensors: tuple[Tensor, Tensor]) -> str | None:
    """Return the operator that the profiler recorded below ``conv2d``."""
    convolution = getattr(torch.nn.functional, f"conv{len(shape.image)}d")
    try:
        with torch.autograd.profiler.profile() as seen:
            convolution(*tensors, None, shape.stride, padding(shape), 1, shape.groups)
        names = {event.name for event in seen.function_events}
    except (AttributeError, RuntimeError, TypeError):
        return None
    inner = sorted(name for name in names if name.startswith("aten::") and "conv" in name)
    own = [name for name in inner if name not in _OUTER]
    for name in [name for name in own if "cudnn" in name] + own:
        return str(name)
    return None


_OUTER = frozenset(("aten::conv2d", "aten::conv3d", "aten::convolution", "aten::_convolution"))
