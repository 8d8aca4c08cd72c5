"""Shared by the tests of collectives: how much is sent, and how the speed is computed.

The *algorithm bandwidth* is the size of the operation divided by its time. The *bus bandwidth* is
the algorithm bandwidth times the share of the size that crosses each link. It can be compared with
the speed of the link for any number of ranks. The sizes and factors are those of nccl-tests
(PERFORMANCE.md).
"""

from __future__ import annotations

import time
from typing import Any, Callable, Iterator, NamedTuple, Sequence

from . import stamps
from .bench import Bench, by_level
from .groups import Group
from .reference import not_tested
from .stamps import StampFormat
from .words import say

# Sums that show which rank's contribution is missing or was added twice.
#
# Each rank of a segment sends a different power of two. The right sum has every bit set, is at most
# 2^23 - 1, and is exact in fp32 in every order of summation. A lost contribution clears its bit;
# one that arrives twice is added once more. If there are more ranks than an element can carry, the
# buffer is divided into segments. Each segment carries an equal share of the ranks, and the other
# ranks send zeros there. A buffer with fewer elements than segments is sent several times.
#
# Everything is sent in three rounds, and a rank has a different power in each. In the second round
# the powers are shifted by one. So a fault of one bit, not of one rank, blames different ranks in
# these rounds, and no rank is blamed by every round. In the third round the order of the powers is
# reversed. So two faults that together look like a fault of a third rank do not look like it in
# that round.

RANKS_EACH = 23
"""The most ranks in one element: the sum is exact, even with one of them twice."""
ROUNDS = 3  # docs/architecture.md, Pre-flight: a rank is named only if every round blames it alone


class Part(NamedTuple):
    """The elements of the buffer that carry a segment: from ``begin`` to before ``end``."""

    segment: int
    begin: int
    end: int


class Blame(NamedTuple):
    """Whose contribution is wrong; ``place`` is the rank's place in its group."""

    place: int
    fault: str
    """``missing`` or ``doubled``."""
    segment: int


class Code(NamedTuple):
    """What each rank of a group of this size sends, and what the sums say."""

    size: int

    @property
    def segments(self) -> int:
        """The number of segments."""
        return -(-self.size // RANKS_EACH)

    def members(self, segment: int) -> range:
        """Return the ranks of a segment; all segments have equally many, or one less."""
        count = self.segments
        return range(segment * self.size // count, (segment + 1) * self.size // count)

    def segment_of(self, index: int) -> int:
        """Return the segment that carries a rank."""
        return ((index + 1) * self.segments - 1) // self.size

    def power(self, index: int, turn: int) -> int:
        """Return the exponent of what a rank sends in a round."""
        members = self.members(self.segment_of(index))
        place, count = index - members.start, len(members)
        return count - 1 - place if turn == ROUNDS - 1 else (place + turn) % count

    def total(self, segment: int) -> float:
        """Return the sum over all ranks, of each element of a segment."""
        return float((1 << len(self.members(segment))) - 1)

    def sendings(self, count: int) -> list[list[Part]]:
        """Return how ``count`` elements carry all segments: one list for each sending."""
        found = []
        for first in range(0, self.segments, count):
            some = range(first, min(first + count, self.segments))
            found.append(
                [
                    Part(segment, at * count // len(some), (at + 1) * count // len(some))
                    for at, segment in enumerate(some)
                ]
            )
        return found

    def contribution(
        self, index: int, sending: Sequence[Part], turn: int
    ) -> tuple[Part, float] | None:
        """Return the elements that a rank sets and their value; None if it sends only zeros."""
        own = self.segment_of(index)
        for part in sending:
            if part.segment == own:
                return part, float(1 << self.power(index, turn))
        return None

    def blame(self, segment: int, lowest: float, highest: float, turn: int) -> Blame | None:
        """Return whose contribution is wrong in a segment with these values.

        None where that is unknown: the values differ, or are off by something that no single rank
        has sent.
        """
        if lowest != highest:  # also when they are no numbers
            return None
        off = self.total(segment) - lowest
        for index in self.members(segment):
            if abs(off) == float(1 << self.power(index, turn)):
                return Blame(index, "missing" if off > 0 else "doubled", segment)
        return None


def agreed(rounds: Sequence[Sequence[Blame | None]]) -> Blame | None:
    """Return the only rank that every round blames; None if there is no such rank.

    Args:
        rounds: for each round at a size with wrong sums, the blame of each wrong segment.
    """
    whole = [each for found_round in rounds for each in found_round]
    if (
        not whole
        or any(len(found_round) != 1 for found_round in rounds)
        or any(b != whole[0] for b in whole)
    ):
        return None
    return whole[0]


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
