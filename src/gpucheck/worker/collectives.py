"""Shared by the tests of collectives: how much is sent, and how the speed is computed.

The *algorithm bandwidth* is the size of the operation divided by its time. The *bus bandwidth* is
the algorithm bandwidth times the share of the size that crosses each link. It can be compared with
the speed of the link for any number of ranks. The sizes and factors are those of nccl-tests
(PERFORMANCE.md).
"""

from __future__ import annotations

import time
from typing import Any, Callable, Iterator

from . import stamps
from .bench import Bench
from .formats import not_tested
from .groups import Group
from .stamps import StampFormat
from .timing import by_level
from .words import say

Call = Callable[[bool], Any]
"""The collective; its argument says whether to return at once, with the work under way."""

TURNS = 3
"""How often each size is sent from the same buffer: what is left of an earlier one shows."""
# Values: one, a few, and more than NCCL sends in one piece, which odd numbers end within.
_COUNTS = {
    "cpu": {"quick": (1, 1000, 65537), "standard": (1, 1000, 65537, 1 << 20)},
    "cuda": {"quick": (1, 1000, (1 << 20) + 3), "standard": (1, 1000, (1 << 20) + 3, 1 << 24)},
}
# Bytes, as nccl-tests steps through them: latency at the small end, bandwidth at the large one.
_TIMED = {
    "cpu": {"quick": (1 << 20,), "standard": (1 << 10, 1 << 20, 1 << 24)},
    "cuda": {"quick": (1 << 25,), "standard": (1 << 10, 1 << 20, 1 << 25, 1 << 28)},
}
_NO_TIME = say("too little time was left for it")
# Bytes, and calls below and above it. 20 is what nccl-tests does; chosen: fewer where a call takes
# long, because the CPU is slow and the others wait.
_SMALL, _MANY, _FEW = 1 << 16, 20, 5
_SHARE_OF_LIMIT = 8  # chosen: what is sent, received, expected and compared fits side by side


def cases(
    bench: Bench, ranks: Group, *formats: str, parts: int = 1
) -> Iterator[tuple[StampFormat, int]]:
    """Yield each named format with numbers of values to send, until time runs out.

    The numbers are one, a few, and enough for NCCL to send in pieces, each for all ``parts`` of a
    rank together.
    """
    for count in by_level(bench, _levels(_COUNTS[bench.device.type])):
        if count * 8 > bench.memory_limit // _SHARE_OF_LIMIT:
            continue
        for fmt in stamps.formats(bench, *formats):
            if ranks.has_time():
                yield fmt, max(1, count // parts)
            else:
                not_tested(
                    bench, say("{count} {format} values", count=count, format=fmt.name), _NO_TIME
                )


def bandwidth(bench: Bench, ranks: Group, what: str, factor: float, call: Any) -> None:  # noqa: ANN401
    """Measure a collective of several sizes.

    Args:
        bench: where the last rank notes the measurements.
        ranks: all of them take part.
        what: the name of the collective.
        factor: from algorithm to bus bandwidth.
        call: takes a number of bytes and returns the Call to be timed.
    """
    for size in by_level(bench, _levels(_TIMED[bench.device.type])):
        if size > bench.memory_limit // _SHARE_OF_LIMIT:
            continue
        if not ranks.has_time():
            not_tested(bench, say("the speed of {size}", size=in_bytes(size)), _NO_TIME)
            continue
        timed: Call = call(size)
        calls = _MANY if size <= _SMALL else _FEW
        warm = say("{what} of {size}, to warm up", what=what, size=in_bytes(size))
        ranks.do(warm, lambda: timed(True))  # noqa: B023, FBT003
        start = time.perf_counter()
        ranks.do(
            say("{what} of {size}, {count} times", what=what, size=in_bytes(size), count=calls),
            lambda: _repeat(ranks, timed, calls),  # noqa: B023  # called at once
        )
        seconds = (time.perf_counter() - start) / calls
        if ranks.rank == ranks.size - 1:
            speed = size / seconds / 1e9
            name = f"{what} of {in_bytes(size)}"
            bench.measure(name + ", time", seconds * 1e6, "us")
            bench.measure(name + ", algbw", speed, "GB/s")
            if ranks.size > 1:
                bench.measure(name + ", busbw", speed * factor, "GB/s")


def _levels(sizes: dict[str, Any]) -> dict[str, Any]:
    return {**sizes, "stress": sizes["standard"]}


def _repeat(ranks: Group, call: Call, calls: int) -> Any:  # noqa: ANN401
    """Call it several times; over NCCL, without waiting between the calls."""
    if ranks.backend == "nccl":
        return [call(True) for _ in range(calls)]  # noqa: FBT003
    for _ in range(calls):
        call(False)  # noqa: FBT003
    return None


def in_bytes(size: int) -> str:
    """Return a power of two in words, such as ``32 MiB``."""
    for shift, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << shift:
            return f"{size >> shift} {unit}"
    return f"{size} B"
