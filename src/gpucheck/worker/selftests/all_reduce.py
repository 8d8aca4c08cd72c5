"""The sum over all ranks, in several sizes and formats; a wrong sum names the rank to blame."""

from __future__ import annotations

from typing import Any

from .. import collectives, stamps
from ..bench import Bench
from ..collectives import Call
from ..groups import Group, group
from ..words import say

NAME = "all-reduce"
PER = "ranks"
LEVELS = ("quick", "standard", "stress")
ABOUT = "a sum over all ranks (NCCL, or gloo on the CPU); a wrong sum shows which rank is at fault"
# More than usual: NCCL sets itself up, and every rank waits for the slowest.
SECONDS = {"quick": 90}


def run(bench: Bench) -> None:
    """Add up the data of all ranks, then measure the speed."""
    with group(bench) as ranks:
        for fmt, count in collectives.cases(bench, ranks):
            _add_up(bench, ranks, fmt, count)
        factor = 2.0 * (ranks.size - 1) / ranks.size
        collectives.bandwidth(bench, ranks, NAME, factor, lambda size: _timed(bench, ranks, size))


def _add_up(bench: Bench, ranks: Group, fmt: stamps.StampFormat, count: int) -> None:
    what = say("all-reduce of {count} {format} values", count=count, format=fmt.name)
    sums = stamps.Sums(bench.torch, fmt, ranks.size, count, bench.seed)
    buffer = bench.torch.empty(count, dtype=fmt.dtype, device=bench.device)
    for turn in range(sums.turns):
        buffer.copy_(sums.of(ranks.rank, turn))
        ranks.do(what, lambda: ranks.dist.all_reduce(buffer, async_op=True))
        ranks.judge(lambda: stamps.check_sum(what, buffer, sums, turn, ranks.rank))  # noqa: B023


def _timed(bench: Bench, ranks: Group, size: int) -> Call:
    buffer = bench.torch.zeros(size // 4, device=bench.device)

    def call(at_once: bool) -> Any:  # noqa: ANN401, FBT001  # torch.distributed.Work
        return ranks.dist.all_reduce(buffer, async_op=at_once)

    return call
