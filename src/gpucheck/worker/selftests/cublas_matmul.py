"""Matrix products in every format: exact for integers, else within error bounds; the speed.

On a GPU, cuBLAS computes them. If all partial sums are representable, a product of integers must be
exact, for every kernel and order of summation that cuBLAS may choose. The factors are odd integers
that use every bit of their format. So the product is wrong if a narrower format is used instead.
``docs/selftests/reference.md`` has the arithmetic.
"""

from __future__ import annotations

from typing import Any

from .. import reference
from ..bench import Bench, by_level, release, seconds_per_call, synchronize
from ..reference import (
    FP8_SINCE,
    Format,
    not_tested,
    obeyed,
    rounded,
    sums_in_16_bits,
    switches,
    too_old,
)
from ..words import say

NAME = "cublas-matmul"
PER = "gpu"
LEVELS = ("quick", "standard", "stress")
ABOUT = "matrix products in fp64, fp32, TF32, fp16, bf16 and fp8: values and speed"

Tensor = Any

# Multiples of 16: the kernels for aligned shapes, with the longest sum that stays exact.
_ROWS, _INNER, _COLUMNS = 96, reference.LONGEST_SUM, 80
_ODD = (67, 251, 53)  # divisible by nothing: other kernels than the aligned shapes
# Chosen: 4096 kept the quick level of an H100 within 6 s, and 8192 reached 70 to 80 % of its peak
# (docs/evidence.md). In fp64 many boards are far slower.
_LARGEST = {"quick": 4096, "standard": 8192, "stress": 8192}
_LARGEST_FP64 = {"quick": 1024, "standard": 2048, "stress": 4096}
_ON_CPU = 256  # chosen: one thread of a CPU takes no time for it
_SAMPLE = 64  # rows and columns; chosen: each value costs a whole sum in float64
_NO_FP8_WORDS = (
    "only supported",
    "compute capability",
    "not implemented for",
    "CUBLAS_STATUS_NOT_SUPPORTED",
)

_REAL_NUMBERS = {
    "fp16": say("fp16 products of real numbers"),
    "bf16": say("bf16 products of real numbers"),
}
"""What is left out of the formats whose sums a CPU may round to 16 bits."""


def run(bench: Bench) -> None:
    """Test every format that exists here."""
    for fmt in obeyed(bench, ("fp64", "fp32", "tf32", "fp16", "bf16")):
        is_tf32 = fmt.name == "tf32"
        with switches(bench.torch, tf32=is_tf32):
            bench.stage(fmt.name + " products of integers")
            _exact(bench, fmt)
        with switches(bench.torch, tf32=is_tf32, reduced=False):
            bench.stage(fmt.name + " products of real numbers")
            _bounded(bench, fmt)
            bench.stage(fmt.name + " speed")
            _speed(bench, fmt)
    _fp8(bench)
    release(bench)


def _exact(bench: Bench, fmt: Format) -> None:
    torch, source = bench.torch, reference.generator(bench.torch, bench.seed)
    rows, inner, columns = _ODD
    left = reference.integers(torch, source, (rows, inner), fmt.factor_bits[0])
    full = reference.integers(torch, source, (rows, inner), min(fmt.bits, 50))
    selection = reference.signed_selection(torch, source, inner, columns)
    _multiply(bench, fmt, "selection", full, selection)
    right = reference.integers(torch, source, (inner, columns), fmt.factor_bits[1])
    _multiply(bench, fmt, "odd shape", left, right)

    left = reference.integers(torch, source, (_ROWS, _INNER), fmt.factor_bits[0])
    right = reference.integers(torch, source, (_COLUMNS, _INNER), fmt.factor_bits[1])
    _multiply(bench, fmt, "transposed", left, right.t())

    half = _INNER // 2
    left = reference.integers(torch, source, (3, 32, half), fmt.factor_bits[0])
    right = reference.integers(torch, source, (3, half, 24), fmt.factor_bits[1])
    got = torch.bmm(_there(bench, fmt, left), _there(bench, fmt, right))
    _check_exact(bench, fmt, "batched", got, torch.bmm(left, right))

    bias = reference.integers(torch, source, (24,), 1)
    weight = right[0].t().contiguous()
    got = torch.nn.functional.linear(
        *(_there(bench, fmt, each) for each in (left[0], weight, bias))
    )
    _check_exact(bench, fmt, "linear layer", got, torch.mm(left[0], right[0]) + bias)


def _multiply(bench: Bench, fmt: Format, what: str, left: Tensor, right: Tensor) -> None:
    """Multiply on the device and, with 64-bit integers, on the CPU."""
    got = bench.torch.mm(_there(bench, fmt, left), _there(bench, fmt, right))
    _check_exact(bench, fmt, what, got, bench.torch.mm(left, right))


def _check_exact(bench: Bench, fmt: Format, what: str, got: Tensor, expected: Tensor) -> None:
    title = f"{fmt.name} product, {what}"
    reference.require_dtype(title, got, fmt.dtype)
    reference.same(title, got, expected, bench)


def _there(bench: Bench, fmt: Format, values: Tensor) -> Tensor:
    return values.to(fmt.dtype).to(bench.device)


def _bounded(bench: Bench, fmt: Format) -> None:
    """Compare products of normally distributed numbers with float64 on the CPU."""
    if sums_in_16_bits(bench, fmt):
        reason = say(
            "CPU kernels may round every partial sum to 16 bits; products of integers only"
        )
        not_tested(bench, _REAL_NUMBERS[fmt.name], reason)
        return
    torch, source = bench.torch, reference.generator(bench.torch, bench.seed + 1)
    left, right = (
        rounded(torch, fmt, torch.randn(shape, generator=source, dtype=torch.float64))
        for shape in ((_ROWS, _INNER), (_INNER, _COLUMNS))
    )
    got = torch.mm(left.to(bench.device), right.to(bench.device))
    _check_bounded(bench, fmt, fmt.name + " product", got, left, right)


def _check_bounded(
    bench: Bench, fmt: Format, what: str, got: Tensor, left: Tensor, right: Tensor
) -> None:
    exact_left, exact_right = left.cpu().double(), right.cpu().double()
    expected = exact_left @ exact_right
    share = reference.gamma(left.shape[1] + 1, fmt.sum_roundoff)
    if fmt.name == "fp64":
        share *= 2  # the reference has as much
    bound = share * (exact_left.abs() @ exact_right.abs()) + fmt.result_roundoff * expected.abs()
    because = say(
        "rounding of a sum of {count} products in any order, and of the result",
        count=int(left.shape[1]),
    )
    reference.within(what, got, expected, bound, bench, because)


def _speed(bench: Bench, fmt: Format) -> None:
    """Measure the speed of a large product and check a sample of its values."""
    torch = bench.torch
    size = _size(bench, fmt.name, torch.empty(0, dtype=fmt.dtype).element_size())
    source = torch.Generator(device=bench.device)
    source.manual_seed(bench.seed)
    kind = {"dtype": fmt.dtype, "device": bench.device}
    left, right = (
        rounded(torch, fmt, torch.randn(size, size, generator=source, **kind)) for _ in range(2)
    )
    product = torch.empty(size, size, dtype=fmt.dtype, device=bench.device)
    seconds = seconds_per_call(bench, lambda: torch.mm(left, right, out=product))
    bench.measure(fmt.name + " rate", 2.0 * size**3 / seconds / 1e12, "TFLOP/s")
    if sums_in_16_bits(bench, fmt):
        return
    rows, columns = (
        torch.randperm(size, generator=reference.generator(torch, bench.seed + at))[:_SAMPLE]
        for at in (0, 1)
    )
    rows, columns = rows.to(bench.device), columns.to(bench.device)
    sample = product[rows][:, columns]
    what = f"{fmt.name} product of size {size}"
    _check_bounded(bench, fmt, what, sample, left[rows], right[:, columns])


def _size(bench: Bench, name: str, bytes_each: int) -> int:
    """Return the largest power of two whose three matrices take half of the memory limit."""
    if bench.device.type == "cpu":
        return _ON_CPU
    largest = int(by_level(bench, _LARGEST_FP64 if name == "fp64" else _LARGEST))
    while largest > _ON_CPU and 3 * largest**2 * bytes_each > bench.memory_limit // 2:
        largest //= 2
    return largest


def _fp8(bench: Bench) -> None:
    torch = bench.torch
    reason = _no_fp8(bench)
    if reason:
        not_tested(bench, "fp8", reason)
        return
    bench.stage(say("fp8 products of integers"))
    source = reference.generator(torch, bench.seed)
    full = reference.integers(torch, source, (_ROWS, _INNER), 4)
    selection = reference.signed_selection(torch, source, _INNER, _COLUMNS)
    ones, more = (
        reference.integers(torch, source, shape, 1)
        for shape in ((_ROWS, _INNER), (_INNER, _COLUMNS))
    )
    for what, left, right in (("selection", full, selection), ("sums", ones, more)):
        try:
            got = _scaled_product(bench, left, right)
            synchronize(bench)
        except (RuntimeError, TypeError, ValueError) as error:
            if not _is_unsupported(error):
                raise
            not_tested(bench, "fp8", f"it is refused: {error}".splitlines()[0][:200])
            return
        reference.same("fp8 product, " + what, got, torch.mm(left, right), bench)


def _no_fp8(bench: Bench) -> str:
    if bench.device.type != "cuda":
        return say("fp8 products are tested on GPUs only")
    if not hasattr(bench.torch, "_scaled_mm") or not hasattr(bench.torch, "float8_e4m3fn"):
        return say("this torch has no fp8 product")
    return too_old(bench, "fp8", FP8_SINCE)


def _scaled_product(bench: Bench, left: Tensor, right: Tensor) -> Tensor:
    """Multiply in fp8; early releases return a pair; the right factor must be in column order."""
    torch = bench.torch
    scale = torch.ones((), dtype=torch.float32, device=bench.device)
    first = left.to(torch.float8_e4m3fn).to(bench.device)
    second = right.t().contiguous().to(torch.float8_e4m3fn).to(bench.device).t()
    got = torch._scaled_mm(  # noqa: SLF001  # torch has no public one
        first, second, scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16
    )
    return got[0] if isinstance(got, tuple) else got


def _is_unsupported(error: Exception) -> bool:
    """Whether torch or cuBLAS reports that this GPU does not support fp8, which is no fault."""
    words = str(error)
    return not isinstance(error, RuntimeError) or any(each in words for each in _NO_FP8_WORDS)
