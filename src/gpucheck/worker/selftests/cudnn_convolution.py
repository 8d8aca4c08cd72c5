"""Compares convolutions, forward and backward, with float64, and proves that cuDNN computed them.

Convolutions with stride 2 are computed with integers and must be exact. Winograd's method and the
Fourier transform would round, but exist only for stride 1. For stride 1 the error bound allows for
them. ``docs/selftests/reference.md`` has the arithmetic.
"""

from __future__ import annotations

from typing import Any

from .. import reference
from ..bench import Bench, release, synchronize
from ..convolution import (
    DEPTHWISE,
    GROUPED,
    PLAIN,
    STRIDED,
    VOLUME,
    LayerShape,
    check_activated,
    check_elementwise,
    convolve,
    draw_integers,
    place,
    prove_cudnn,
    sizes,
    terms,
)
from ..reference import Format, obeyed, rounded, sums_in_16_bits, switches
from ..words import say

NAME = "cudnn-convolution"
PER = "gpu"
LEVELS = ("quick", "standard", "stress")
ABOUT = "convolutions forward and backward, activations, batch norm: values, and that cuDNN ran"

Tensor = Any

_LAYOUTS = ("contiguous", "channels_last")
_QUICK_NAMES = ("fp32", "fp16")
_WINOGRAD_SUMS = 4
_WINOGRAD_TILES = 24
"""What Winograd's method costs with stride 1: so many times the rounding of a plain sum, and, where
transformed tiles are kept in 16 bits or TF32, so many times their rounding. Simulated: up to 0.27
and 11 (see ``docs/selftests/reference.md``)."""


def run(bench: Bench) -> None:
    """Test every format that exists here, then layers without cuDNN, then the backend."""
    for fmt in obeyed(bench, ("fp32", "tf32", "fp16", "bf16")):
        with switches(bench.torch, tf32=fmt.name == "tf32"):
            _integers(bench, fmt, STRIDED, _LAYOUTS[0])
            check_activated(bench, fmt, STRIDED)
            for layout in _LAYOUTS:
                _real(bench, fmt, PLAIN, layout)
            if bench.level == "quick" and fmt.name not in _QUICK_NAMES:
                continue  # each kernel that is new to cuDNN takes its time
            _integers(bench, fmt, STRIDED, _LAYOUTS[1])
            for shape in (GROUPED, DEPTHWISE, VOLUME):
                _integers(bench, fmt, shape, _LAYOUTS[0])
    check_elementwise(bench)
    prove_cudnn(bench)
    release(bench)


def _integers(bench: Bench, fmt: Format, shape: LayerShape, layout: str) -> None:
    """Convolve integers: the result and both gradients must be exact."""
    title = _begin(bench, fmt, shape, layout)
    drawn = draw_integers(bench.torch, bench.seed, fmt, shape)
    expected = convolve(bench.torch, shape, tuple(each.double() for each in drawn))
    got = convolve(bench.torch, shape, place(bench, fmt, drawn, layout))
    synchronize(bench)
    for part, value in expected.items():
        reference.require_dtype(title + part, got[part], fmt.dtype)
        reference.same(title + part, got[part], value, bench)


def _real(bench: Bench, fmt: Format, shape: LayerShape, layout: str) -> None:
    """Convolve normally distributed numbers: each error must be within its bound."""
    if sums_in_16_bits(bench, fmt):
        return
    torch, title = bench.torch, _begin(bench, fmt, shape, layout)
    source = reference.generator(torch, bench.seed)
    drawn = tuple(rounded(torch, fmt, torch.randn(size, generator=source)) for size in sizes(shape))
    exact = tuple(each.double() for each in drawn)
    expected = convolve(torch, shape, exact)
    absolute = convolve(torch, shape, tuple(each.abs() for each in exact))
    got = convolve(torch, shape, place(bench, fmt, drawn, layout))
    synchronize(bench)
    for part, value in expected.items():
        products = terms(shape)[part]
        share = _WINOGRAD_SUMS * reference.gamma(products, fmt.sum_roundoff)
        if fmt.factor_roundoff > fmt.sum_roundoff:
            share += _WINOGRAD_TILES * fmt.factor_roundoff
        bound = share * absolute[part].max() + fmt.result_roundoff * value.abs()
        because = say(
            "rounding of a sum of {count} products by Winograd's method, and of the result",
            count=products,
        )
        reference.require_dtype(title + part, got[part], fmt.dtype)
        reference.within(title + part, got[part], value, bound, bench, because)


def _begin(bench: Bench, fmt: Format, shape: LayerShape, layout: str) -> str:
    title = f"{fmt.name} {shape.name} convolution, {layout}"
    bench.stage(title)
    return title + ": "
