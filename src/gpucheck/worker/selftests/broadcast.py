"""Every rank in turn sends the same data to all others."""

from __future__ import annotations

from typing import Any

from .. import collectives, stamps
from ..bench import Bench
from ..collectives import Call
from ..groups import Group, group
from ..words import say

NAME = "broadcast"
PER = "ranks"
LEVELS = ("standard", "stress")
ABOUT = "each rank in turn sends the same data to all others"


def run(bench: Bench) -> None:
    """Send from every rank, then measure the speed of sending from rank 0."""
    with group(bench) as ranks:
        for fmt, count in collectives.cases(bench, ranks, "fp32", "int64"):
            _send(bench, ranks, stamps.Parts(bench.torch, fmt, count))
        collectives.bandwidth(bench, ranks, NAME, 1.0, lambda size: _timed(bench, ranks, size))


def _send(bench: Bench, ranks: Group, parts: stamps.Parts) -> None:
    for turn in range(collectives.TURNS):
        for root in range(ranks.size):
            what = say(
                "broadcast of {count} {format} values from rank {rank}",
                count=parts.length,
                format=parts.fmt.name,
                rank=root,
            )
            is_root = root == ranks.rank
            buffer = (parts.of(root, 0, turn) if is_root else parts.empty()).to(bench.device)
            ranks.do(what, lambda: ranks.dist.broadcast(buffer, root, async_op=True))  # noqa: B023
            ranks.judge(
                lambda: stamps.check_part(what, buffer, parts, (root, 0), turn)  # noqa: B023
            )


def _timed(bench: Bench, ranks: Group, size: int) -> Call:
    buffer = bench.torch.zeros(size // 4, device=bench.device)

    def call(at_once: bool) -> Any:  # noqa: ANN401, FBT001  # torch.distributed.Work
        return ranks.dist.broadcast(buffer, 0, async_op=at_once)

    return call
