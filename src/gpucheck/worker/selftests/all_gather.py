"""Every rank receives the data of all ranks."""

from __future__ import annotations

from typing import Any

from .. import collectives, stamps
from ..bench import Bench
from ..collectives import Call
from ..groups import Group, group
from ..words import say

NAME = "all-gather"
PER = "ranks"
LEVELS = ("standard", "stress")
ABOUT = "every rank gets the data of all ranks: the origin of every part is checked"


def run(bench: Bench) -> None:
    """Gather the data of all ranks, then measure the speed."""
    with group(bench) as ranks:
        for fmt, count in collectives.cases(bench, ranks, "fp32", "int64", parts=ranks.size):
            _gather(bench, ranks, stamps.Parts(bench.torch, fmt, count))
        factor = (ranks.size - 1) / ranks.size
        collectives.bandwidth(bench, ranks, NAME, factor, lambda size: _timed(bench, ranks, size))


def _gather(bench: Bench, ranks: Group, parts: stamps.Parts) -> None:
    what = say("all-gather of {count} {format} values", count=parts.length, format=parts.fmt.name)
    everyone = range(ranks.size)
    for turn in range(collectives.TURNS):
        own = parts.of(ranks.rank, 0, turn).to(bench.device)
        got = [parts.empty().to(bench.device) for _ in everyone]
        ranks.do(what, lambda: ranks.dist.all_gather(got, own, async_op=True))  # noqa: B023
        for sender in everyone:
            ranks.judge(
                lambda: stamps.check_part(what, got[sender], parts, (sender, 0), turn)  # noqa: B023
            )


def _timed(bench: Bench, ranks: Group, size: int) -> Call:
    """Gather this many bytes in all: the size as nccl-tests defines it."""
    each = max(1, size // 4 // ranks.size)
    own = bench.torch.zeros(each, device=bench.device)
    got = list(bench.torch.zeros(each * ranks.size, device=bench.device).chunk(ranks.size))

    def call(at_once: bool) -> Any:  # noqa: ANN401, FBT001  # torch.distributed.Work
        return ranks.dist.all_gather(got, own, async_op=at_once)

    return call
