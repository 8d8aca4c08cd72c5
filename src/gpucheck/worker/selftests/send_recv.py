"""Every rank sends to the next one and receives from the previous one, in a ring."""

from __future__ import annotations

from typing import Any

from .. import collectives, stamps
from ..bench import Bench
from ..collectives import Call
from ..groups import Group, group
from ..words import say

NAME = "send-recv"
PER = "ranks"
LEVELS = ("standard", "stress")
ABOUT = "each rank sends to the next in a ring"

Tensor = Any


def run(bench: Bench) -> None:
    """Send around the ring, then measure the speed."""
    with group(bench) as ranks:
        if ranks.size == 1:
            bench.skip(say("there is one rank only, and none to send to"))
        for fmt, count in collectives.cases(bench, ranks, "fp32", "int64"):
            _around(bench, ranks, stamps.Parts(bench.torch, fmt, count))
        collectives.bandwidth(bench, ranks, NAME, 1.0, lambda size: _timed(bench, ranks, size))


def _around(bench: Bench, ranks: Group, parts: stamps.Parts) -> None:
    what = say(
        "send and receive of {count} {format} values", count=parts.length, format=parts.fmt.name
    )
    behind, ahead = _neighbours(ranks)
    for turn in range(collectives.TURNS):
        sent = parts.of(ranks.rank, ahead, turn).to(bench.device)
        got = parts.empty().to(bench.device)
        ranks.do(what, lambda: _exchange(ranks, sent, got))  # noqa: B023
        ranks.judge(
            lambda: stamps.check_part(what, got, parts, (behind, ranks.rank), turn)  # noqa: B023
        )


def _neighbours(ranks: Group) -> tuple[int, int]:
    """Return the ranks before and after this one."""
    return (ranks.rank - 1) % ranks.size, (ranks.rank + 1) % ranks.size


def _exchange(ranks: Group, sent: Tensor, got: Tensor) -> Any:  # noqa: ANN401  # list of Work
    """Start sending and receiving together: over NCCL, one alone would wait for the other rank."""
    behind, ahead = _neighbours(ranks)
    dist = ranks.dist
    pair = [dist.P2POp(dist.isend, sent, ahead), dist.P2POp(dist.irecv, got, behind)]
    return dist.batch_isend_irecv(pair)


def _timed(bench: Bench, ranks: Group, size: int) -> Call:
    sent, got = (bench.torch.zeros(size // 4, device=bench.device) for _ in range(2))

    def call(at_once: bool) -> Any:  # noqa: ANN401, FBT001  # list of Work
        works = _exchange(ranks, sent, got)
        if not at_once:
            for work in works:
                work.wait()
        return works

    return call
