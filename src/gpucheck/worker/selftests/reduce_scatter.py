"""Every rank receives its part of the sum over all ranks."""

from __future__ import annotations

from typing import Any

from .. import collectives, stamps
from ..bench import Bench
from ..collectives import Call
from ..groups import Group, group
from ..words import say

NAME = "reduce-scatter"
PER = "ranks"
LEVELS = ("standard", "stress")
ABOUT = (
    "every rank gets its part of a sum over all ranks; a wrong part shows which rank is at fault"
)


def run(bench: Bench) -> None:
    """Add up the data of all ranks, part by part, then measure the speed."""
    with group(bench) as ranks:
        for fmt, count in collectives.cases(bench, ranks, parts=ranks.size):
            _scatter(bench, ranks, fmt, count)
        factor = (ranks.size - 1) / ranks.size
        collectives.bandwidth(bench, ranks, NAME, factor, lambda size: _timed(bench, ranks, size))


def _scatter(bench: Bench, ranks: Group, fmt: stamps.StampFormat, count: int) -> None:
    what = say(
        "reduce-scatter of {count} {format} values for each rank", count=count, format=fmt.name
    )
    sums = stamps.Sums(bench.torch, fmt, ranks.size, count * ranks.size, bench.seed)
    own = slice(ranks.rank * count, (ranks.rank + 1) * count)
    for turn in range(sums.turns):
        mine = sums.of(ranks.rank, turn).to(fmt.dtype).to(bench.device)
        parts = list(mine.chunk(ranks.size))
        got = bench.torch.zeros(count, dtype=fmt.dtype, device=bench.device)
        ranks.do(what, lambda: ranks.dist.reduce_scatter(got, parts, async_op=True))  # noqa: B023
        ranks.judge(
            lambda: stamps.check_sum(what, got, sums, turn, ranks.rank, own)  # noqa: B023
        )


def _timed(bench: Bench, ranks: Group, size: int) -> Call:
    each = max(1, size // 4 // ranks.size)
    parts = list(bench.torch.zeros(each * ranks.size, device=bench.device).chunk(ranks.size))
    got = bench.torch.zeros(each, device=bench.device)

    def call(at_once: bool) -> Any:  # noqa: ANN401, FBT001  # torch.distributed.Work
        return ranks.dist.reduce_scatter(got, parts, async_op=at_once)

    return call
