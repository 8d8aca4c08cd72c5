"""Full load for a while: every product must be the same; the speed of each second is noted.

The factors are integers, so each sum is exact in every order. This test does not read clocks,
temperature or power. The process that starts it can watch them.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from .. import reference
from ..bench import Bench, Failed, by_level, release, synchronize
from ..reference import switches, usable
from ..words import say

NAME = "sustained"
PER = "gpu"
LEVELS = ("stress",)
ABOUT = "a minute of full load: the same result every time, and the speed of each second"
# The load below, and what comes before and after it.
SECONDS = {"quick": 60, "standard": 60, "stress": 180}

Torch = Any  # the module, of any version
Tensor = Any
Dtype = Any

# A minute, in which heat shows (docs/selftests/reference.md); the others are for tests by name.
_LOAD_SECONDS = {"quick": 2.0, "standard": 10.0, "stress": 60.0}
_SHARE_OF_DEADLINE = 0.7  # chosen: a GPU that throttles needs longer for the burst that has begun
# Sizes. With more than 4096, _FACTOR below no longer holds; a CPU is slow.
_LARGEST, _SMALLEST, _ON_CPU = 4096, 512, 384
_FACTOR = 127
"""The sum of 4096 products of two random integers up to this has a standard deviation of 2**18.4:
none reaches 2**23, so that fp32 and the sums of tensor cores hold every partial sum."""
_SCALE = 64  # each factor is divided by it, so that the result stays within fp16
_SAMPLE = 48  # rows and columns; chosen: each value costs a whole sum of 64-bit integers
_BURST_SECONDS = 0.1  # chosen: comparing a product is little beside it, so the load goes on
_TAIL = 5  # seconds at both ends that are compared; the first one warms up


def run(bench: Bench) -> None:
    """Multiply until the time is over, and check every burst of products."""
    torch = bench.torch
    name = "fp16" if bench.device.type == "cuda" else "fp32"
    dtype = usable(bench, (name,))[0].dtype
    size = _size(bench)
    source = reference.generator(torch, bench.seed)
    drawn = [torch.randint(-_FACTOR, _FACTOR + 1, (size, size), generator=source) for _ in range(2)]
    left, right = ((each.double() / _SCALE).to(dtype).to(bench.device) for each in drawn)
    with switches(torch, reduced=False):
        bench.stage(say("the first product"))
        first = torch.mm(left, right)
        _check_sample(bench, drawn[0], drawn[1], first, dtype)
        bench.stage("load")
        rates = _load(bench, left, right, first)
    _report(bench, rates)
    release(bench)


def _size(bench: Bench) -> int:
    """Return the largest power of two whose four matrices take half of the memory limit."""
    if bench.device.type != "cuda":
        return _ON_CPU
    size = _LARGEST
    while size > _SMALLEST and 4 * size**2 * 2 > bench.memory_limit // 2:
        size //= 2
    return size


def _check_sample(bench: Bench, left: Tensor, right: Tensor, product: Tensor, dtype: Dtype) -> None:
    """Compare some rows and columns with 64-bit integers, rounded once."""
    torch, source = bench.torch, reference.generator(bench.torch, bench.seed + 1)
    rows, columns = (torch.randperm(len(left), generator=source)[:_SAMPLE] for _ in range(2))
    exact = torch.mm(left[rows], right[:, columns]).double() / _SCALE**2
    got = product[rows.to(bench.device)][:, columns.to(bench.device)]
    reference.same("a sample of the first product", got, exact.to(dtype), bench)


def _load(bench: Bench, left: Tensor, right: Tensor, first: Tensor) -> list[float]:
    """Return the TFLOP/s of each second."""
    product, rates = bench.torch.empty_like(first), []
    begin = time.monotonic()
    wanted = by_level(bench, _LOAD_SECONDS)
    end = begin + min(wanted, max(1.0, bench.seconds_left() * _SHARE_OF_DEADLINE))
    burst, total = 1, 0
    while time.monotonic() < end:
        start, done = time.monotonic(), 0
        while (elapsed := time.monotonic() - start) < 1.0:
            before = time.monotonic()
            for _ in range(burst):
                bench.torch.mm(left, right, out=product)
            synchronize(bench)
            done += burst
            _require_same(bench, product, first, total + done, before - begin)
            if time.monotonic() - before < _BURST_SECONDS:
                burst *= 2
        total += done
        rates.append(2.0 * len(left) ** 3 * done / elapsed / 1e12)
    return rates


def _require_same(bench: Bench, product: Tensor, first: Tensor, number: int, at: float) -> None:
    if bench.torch.equal(product, first):
        return
    wrong = int((product != first).sum())
    raise Failed(
        "wrong-value",
        say(
            "product {number}, {at:.1f} s into the load, differs from the first, which was right, "
            "in {wrong} of {all} values",
            number=number,
            at=at,
            wrong=wrong,
            all=first.numel(),
        ),
        {"product": number, "seconds": at, "wrong": wrong, "of": first.numel()},
    )


def _report(bench: Bench, rates: list[float]) -> None:
    """Note the speed: the median, the lowest, and the share that remains at the end."""
    bench.data["rates"] = rates
    bench.measure("sustained rate", statistics.median(rates), "TFLOP/s")
    bench.measure("lowest rate of a second", min(rates), "TFLOP/s")
    if len(rates) > 2 * _TAIL:
        early, late = rates[1 : 1 + _TAIL], rates[-_TAIL:]
        bench.measure(
            "rate at the end", 100.0 * statistics.mean(late) / statistics.mean(early), "%"
        )
