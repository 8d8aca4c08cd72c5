"""Proves that cuDNN can compute a convolution, and finds the backend that torch would choose."""

from __future__ import annotations

from typing import Any

from . import reference
from .bench import Bench, Failed
from .convolution import (
    GROUPED,
    PLAIN,
    STRIDED,
    VOLUME,
    LayerShape,
    convolve,
    draw_integers,
    padding,
)
from .formats import not_tested, switches, usable
from .timing import synchronize
from .words import say

Torch = Any  # the module, of any version
Tensor = Any

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
