"""The number formats under test, and the results that others are compared with."""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from typing import Any, Iterator, NamedTuple, Sequence

from .bench import Bench, Failed
from .words import say

# The number formats under test: their significant bits, where they exist, torch's switches.

Torch = Any  # the module, of any version
Dtype = Any
Tensor = Any


class Format(NamedTuple):
    """A number format, as inputs and results have it.

    Attributes:
        name: ``fp64``, ``fp32``, ``tf32``, ``fp16`` or ``bf16``.
        dtype: of the tensors; TF32 works on float32 tensors.
        bits: significant bits of an input, the hidden one included (IEEE 754; TF32 and bfloat16:
            the CUDA C++ Programming Guide, "Alternate Floating Point").
        factor_bits: the bits of integers whose products can be added up, 256 of them, with every
            partial sum exact in the format of the result.
        result_roundoff: unit roundoff of the result's format.
        sum_roundoff: unit roundoff of the sums. Tensor cores truncate instead of rounding to
            nearest, so the relative error of an addition is up to 2**-23 (Fasi, Higham, Mikaitis,
            Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021).
    """

    name: str
    dtype: Dtype
    bits: int
    factor_bits: tuple[int, int]
    result_roundoff: float
    sum_roundoff: float

    @property
    def factor_roundoff(self) -> float:
        """Unit roundoff of an input."""
        return 2.0**-self.bits


_TENSOR_CORE = 2.0**-23  # Format.sum_roundoff has the source
_FORMATS = (
    Format("fp64", "float64", 53, (30, 14), 2.0**-53, 2.0**-53),
    Format("fp32", "float32", 24, (13, 3), 2.0**-24, 2.0**-24),
    Format("tf32", "float32", 11, (11, 3), 2.0**-24, _TENSOR_CORE),
    Format("fp16", "float16", 11, (3, 1), 2.0**-11, _TENSOR_CORE),
    Format("bf16", "bfloat16", 8, (1, 1), 2.0**-8, _TENSOR_CORE),
)
"""Their ``dtype`` is still a name here: there is no torch before a test is run."""
_SINCE = {"tf32": (8, 0), "bf16": (8, 0)}  # Ampere: the first GPUs whose tensor cores have them
FP8_SINCE = (8, 9)  # Ada; torch's _scaled_mm needs it


def usable(bench: Bench, names: Sequence[str]) -> list[Format]:
    """Return the named formats that exist here; note why the others do not."""
    found = []
    for fmt in _FORMATS:
        reason = _missing(bench, fmt) if fmt.name in names else None
        if reason:
            not_tested(bench, fmt.name, reason)
        elif reason is not None:
            found.append(fmt._replace(dtype=getattr(bench.torch, fmt.dtype)))
    return found


def obeyed(bench: Bench, names: Sequence[str]) -> list[Format]:
    """Return the usable formats in which NVIDIA's libraries compute if torch asks for them."""
    found = []
    for fmt in usable(bench, names):
        if reason := _overridden(bench, fmt.name):
            not_tested(bench, fmt.name, reason)
        else:
            found.append(fmt)
    return found


def _overridden(bench: Bench, name: str) -> str:
    """Return why another format is used, whatever torch's switches say; "" if it is not.

    With NVIDIA_TF32_OVERRIDE=1, cuBLAS multiplied float32 in TF32 on an H100.
    """
    if bench.device.type != "cuda":
        return ""
    value = os.environ.get("NVIDIA_TF32_OVERRIDE")
    if value == "0" and name == "tf32":
        return say("NVIDIA_TF32_OVERRIDE=0 turns TF32 off")
    if value == "1" and name == "fp32" and not too_old(bench, "tf32", _SINCE["tf32"]):
        return say("NVIDIA_TF32_OVERRIDE=1 lets the GPU compute in TF32 instead")
    return ""


def not_tested(bench: Bench, part: str, reason: str) -> None:
    """Note that a part of the test was left out, and why."""
    bench.data.setdefault("not_tested", {})[part] = reason


def _missing(bench: Bench, fmt: Format) -> str:
    if bench.device.type != "cuda":
        if fmt.name == "tf32":
            return say("TF32 exists on GPUs only")
        if fmt.name == "fp16" and not _multiplies(bench, fmt.dtype):
            return say("this torch does not multiply fp16 on the CPU")
        return ""
    return too_old(bench, fmt.name, _SINCE.get(fmt.name))


def too_old(bench: Bench, name: str, since: tuple[int, int] | None) -> str:
    """Return why this GPU does not have the format; "" if it has."""
    capability = tuple(bench.torch.cuda.get_device_capability(bench.device))
    if since is None or capability >= since:
        return ""
    return say(
        "{format} exists from compute capability {since}; this GPU has {found}",
        format=name,
        since="{}.{}".format(*since),
        found="{}.{}".format(*capability),
    )


def _multiplies(bench: Bench, dtype: str) -> bool:
    square = bench.torch.ones(2, 2, dtype=getattr(bench.torch, dtype))
    try:
        bench.torch.mm(square, square)
        weight = square.reshape(1, 1, 2, 2)
        bench.torch.nn.functional.conv2d(weight, weight)
    except RuntimeError:
        return False
    return True


@contextlib.contextmanager
def switches(
    torch: Torch,
    *,
    tf32: bool = False,
    deterministic: bool = False,
    reduced: bool | None = None,
) -> Iterator[None]:
    """Set torch's switches for the precision and the order of its computations.

    ``reduced`` allows or forbids that partial sums of fp16 and bf16 are rounded to 16 bits; None
    changes nothing. The older names are used, because they also set the newer switches. The newer
    names would leave torch with contradicting settings.
    """
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    wanted = [
        (matmul, "allow_tf32", tf32),
        (cudnn, "allow_tf32", tf32),
        (cudnn, "deterministic", deterministic),
        (cudnn, "benchmark", False),
    ]
    if reduced is not None:
        wanted.append((matmul, "allow_fp16_reduced_precision_reduction", reduced))
        wanted.append((matmul, "allow_bf16_reduced_precision_reduction", reduced))
    before = [(owner, name, _set(owner, name, value)) for owner, name, value in wanted]
    try:
        yield
    finally:
        for owner, name, old in before:
            if old is not None:
                _set(owner, name, old)


def _set(owner: Any, name: str, value: Any) -> Any:  # noqa: ANN401  # modules of torch
    """Set a switch and return its former value; None if this torch does not have it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer releases call the older names deprecated
        try:
            old = getattr(owner, name)
            setattr(owner, name, value)
        except (AttributeError, AssertionError):
            return None
    return old


def rounded(torch: Torch, fmt: Format, values: Tensor) -> Tensor:
    """Round to the format, so that the device and the reference have exactly the same input."""
    if fmt.name == "tf32":
        values = values.to(torch.float16)  # as many bits, and a range that is wide enough here
    return values.to(fmt.dtype)


def sums_in_16_bits(bench: Bench, fmt: Format) -> bool:
    """Whether partial sums may be rounded to 16 bits, as several releases of torch do on the CPU.

    If so, there is no useful error bound. Products of integers are still exact.
    """
    return bench.device.type == "cpu" and fmt.name in ("fp16", "bf16")


# Compares results with the right ones: exact integers, or float64 with rigorous error bounds.
#
# The right value is known in two ways, neither of which depends on probability:
#
# - *Integers.* If every partial sum, in any order, is an integer that the narrowest format holds
#   exactly, nothing is rounded, and the result must be equal bit by bit.
# - *Bounds.* If ``n`` products are added up in any order with unit roundoff ``u``, the error is at
#   most ``gamma(n, u)`` times the sum of the absolute products (Higham, Accuracy and Stability of
#   Numerical Algorithms, section 3.1).

LONGEST_SUM = 256
"""So many products may be added up for the bits in ``reference.py`` to be enough."""


def gamma(terms: int, roundoff: float) -> float:
    """Return the bound on the relative error of a sum of ``n`` products, in any order."""
    share = terms * roundoff
    return share / (1.0 - share)


def generator(torch: Torch, seed: int) -> Any:  # noqa: ANN401  # a torch.Generator
    """Return a source of random numbers on the CPU, so that they are the same for every device."""
    source = torch.Generator()
    source.manual_seed(seed)
    return source


def integers(torch: Torch, source: Any, shape: Sequence[int], bits: int) -> Tensor:  # noqa: ANN401
    """Return odd integers of exactly ``bits`` bits, one in four of them negative, as int64.

    A format with fewer significant bits can hold none of them.
    """
    top = 1 << (bits - 1)
    values = torch.randint(0, max(1, top // 2), shape, generator=source) * 2 + 1
    if bits > 1:
        values = values + top
    is_negative = torch.randint(0, 4, shape, generator=source) == 0
    return torch.where(is_negative, -values, values)


def signed_selection(torch: Torch, source: Any, rows: int, columns: int) -> Tensor:  # noqa: ANN401
    """Return a matrix with one 1 or -1 in each column: a product with it selects and copies."""
    chosen = torch.randperm(rows, generator=source)[:columns]
    signs = torch.randint(0, 2, (columns,), generator=source) * 2 - 1
    matrix = torch.zeros(rows, columns, dtype=torch.int64)
    matrix[chosen, torch.arange(columns)] = signs
    return matrix


def same(what: str, got: Tensor, expected: Tensor, bench: Bench) -> None:
    """Require that the result equals the exact result, value by value.

    Raises:
        Failed: with kind ``wrong-shape``, ``wrong-dtype``, ``not-finite`` or ``wrong-value``.
    """
    right = expected.double()
    values = _values(what, got, right, bench)
    wrong = values != right
    if bool(wrong.any()):
        _fail(what, values, right, wrong, say("exact, because every partial sum is representable"))


def within(
    what: str, got: Tensor, expected: Tensor, bound: Tensor, bench: Bench, bound_from: str
) -> None:
    """Require that the error of each value is within its bound, and note the worst value.

    ``expected`` and ``bound`` are float64 on the CPU.

    Raises:
        Failed: with kind ``wrong-shape``, ``wrong-dtype``, ``not-finite`` or ``wrong-value``.
    """
    values = _values(what, got, expected, bench)
    bound = bound.expand_as(expected)
    error = (values - expected).abs()
    wrong = error > bound
    if bool(wrong.any()):
        _fail(what, values, expected, wrong, bound_from)
    if not error.numel():
        return
    worst = int((error / bound.clamp(min=1e-300)).argmax())
    bench.measure(
        what + ": largest error",
        float(error.reshape(-1)[worst]),
        "",
        float(bound.reshape(-1)[worst]),
        bound_from,
    )


def _values(what: str, got: Tensor, expected: Tensor, bench: Bench) -> Tensor:
    """Return the result as float64 on the CPU; require the right shape and finite values."""
    if tuple(got.shape) != tuple(expected.shape):
        raise Failed(
            "wrong-shape",
            say(
                "{what}: the result has shape {got} instead of {right}",
                what=what,
                got=list(got.shape),
                right=list(expected.shape),
            ),
        )
    if got.device.type != bench.device.type:
        raise Failed(
            "wrong-device",
            say(
                "{what}: the result is on {got} instead of {right}",
                what=what,
                got=got.device,
                right=bench.device,
            ),
        )
    values = got.detach().cpu().double()
    bad = ~bench.torch.isfinite(values)
    if bool(bad.any()):
        index = _first(bad)
        raise Failed(
            "not-finite",
            say(
                "{what}: {wrong} of {all} values are NaN or infinite, the first at {at}",
                what=what,
                wrong=int(bad.sum()),
                all=values.numel(),
                at=index,
            ),
            {"what": what, "wrong": int(bad.sum()), "of": values.numel(), "index": index},
        )
    return values


def require_dtype(what: str, got: Tensor, dtype: Any) -> None:  # noqa: ANN401  # a torch.dtype
    """Require that a result has the requested format."""
    if got.dtype != dtype:
        raise Failed(
            "wrong-dtype",
            say(
                "{what}: the result is {got} instead of {right}",
                what=what,
                got=got.dtype,
                right=dtype,
            ),
        )


def _fail(what: str, values: Tensor, expected: Tensor, wrong: Tensor, bound_from: str) -> None:
    index = _first(wrong)
    got, right = float(values[tuple(index)]), float(expected[tuple(index)])
    count, total = int(wrong.sum()), values.numel()
    data: dict[str, Any] = {
        "what": what,
        "wrong": count,
        "of": total,
        "index": index,
        "got": got,
        "expected": right,
        "bound_from": bound_from,
    }
    detail = say(
        "{what}: {wrong} of {all} values are wrong, the first at {at}: {got} instead of {right}",
        what=what,
        wrong=count,
        all=total,
        at=index,
        got=repr(got),
        right=repr(right),
    )
    bits = _bits_kept(values, expected, wrong)
    if bits is not None:
        data["bits_kept"] = bits
        detail = say(
            "{said}; it looks as if only about {bits} significant bits were kept",
            said=detail, bits=bits,
        )  # fmt: skip
    raise Failed("wrong-value", detail, data)


def _bits_kept(values: Tensor, expected: Tensor, wrong: Tensor) -> Any:  # noqa: ANN401
    """Return in how many bits the results agree, if many are slightly wrong; otherwise None.

    A few wrong values come from a fault of memory or of a circuit. Many values that are all
    slightly wrong come from a narrower format. Errors are relative to the largest value, because
    terms of a sum can cancel.
    """
    scale = float(expected.abs().max())
    error = float((values - expected).abs().max())
    if int(wrong.sum()) * 4 < wrong.numel() or not 0.0 < error < scale / 4:
        return None
    return max(1, int(-math.log2(error / scale)))


def _first(where: Tensor) -> Any:  # noqa: ANN401  # a list of indices
    return [int(at) for at in where.nonzero()[0]] if where.dim() else []
