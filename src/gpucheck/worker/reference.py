"""Compares results with the right ones: exact integers, or float64 with rigorous error bounds.

The right value is known in two ways, neither of which depends on probability:

- *Integers.* If every partial sum, in any order, is an integer that the narrowest format holds
  exactly, nothing is rounded, and the result must be equal bit by bit.
- *Bounds.* If ``n`` products are added up in any order with unit roundoff ``u``, the error is at
  most ``gamma(n, u)`` times the sum of the absolute products (Higham, Accuracy and Stability of
  Numerical Algorithms, section 3.1).
"""

from __future__ import annotations

import math
from typing import Any, Sequence

from .bench import Bench, Failed
from .words import say

Torch = Any  # the module, of any version
Tensor = Any

LONGEST_SUM = 256
"""So many products may be added up for the bits in ``formats.py`` to be enough."""


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
