"""Sums that show which rank's contribution is missing or was added twice.

Each rank of a segment sends a different power of two. The right sum has every bit set, is at most
2^23 - 1, and is exact in fp32 in every order of summation. A lost contribution clears its bit; one
that arrives twice is added once more. If there are more ranks than an element can carry, the buffer
is divided into segments. Each segment carries an equal share of the ranks, and the other ranks send
zeros there. A buffer with fewer elements than segments is sent several times.

Everything is sent in three rounds, and a rank has a different power in each. In the second round
the powers are shifted by one. So a fault of one bit, not of one rank, blames different ranks in
these rounds, and no rank is blamed by every round. In the third round the order of the powers is
reversed. So two faults that together look like a fault of a third rank do not look like it in that
round.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence

RANKS_EACH = 23
"""The most ranks in one element: the sum is exact, even with one of them twice."""
ROUNDS = 3


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
