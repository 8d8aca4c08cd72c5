"""Every rank sends different data to each of the others."""

from __future__ import annotations

from typing import Any

from .. import collectives, stamps
from ..bench import Bench
from ..collectives import Call
from ..groups import Group, group
from ..words import say

NAME = "all-to-all"
PER = "ranks"
LEVELS = ("standard", "stress")
ABOUT = "each rank sends different data to every other; each part's origin and target are checked"


def run(bench: Bench) -> None:
    """Exchange a part between every two ranks, then measure the speed."""
    with group(bench) as ranks:
        for fmt, count in collectives.cases(bench, ranks, "fp32", "int64", parts=ranks.size):
            _exchange(bench, ranks, stamps.Parts(bench.torch, fmt, count))
        factor = (ranks.size - 1) / ranks.size
        collectives.bandwidth(bench, ranks, NAME, factor, lambda size: _timed(bench, ranks, size))


def _exchange(bench: Bench, ranks: Group, parts: stamps.Parts) -> None:
    what = say(
        "all-to-all of {count} {format} values for each rank",
        count=parts.length,
        format=parts.fmt.name,
    )
    everyone, own = range(ranks.size), ranks.rank
    for turn in range(collectives.TURNS):
        sent = bench.torch.cat([parts.of(own, target, turn) for target in everyone])
        sent = sent.to(bench.device)
        got = bench.torch.cat([parts.empty() for _ in everyone]).to(bench.device)
        ranks.do(what, lambda: ranks.dist.all_to_all_single(got, sent, async_op=True))  # noqa: B023
        for sender, part in enumerate(got.chunk(ranks.size)):
            ranks.judge(
                lambda: stamps.check_part(what, part, parts, (sender, own), turn)  # noqa: B023
            )


def _timed(bench: Bench, ranks: Group, size: int) -> Call:
    count = max(1, size // 4 // ranks.size) * ranks.size
    sent, got = (bench.torch.zeros(count, device=bench.device) for _ in range(2))

    def call(at_once: bool) -> Any:  # noqa: ANN401, FBT001  # torch.distributed.Work
        return ranks.dist.all_to_all_single(got, sent, async_op=at_once)

    return call
