"""Lists of ranks as short text, ``0-3,8``: each of thousands of tasks gets all of them."""

from collections.abc import Iterable

from gpucheck.facts.numbers import whole_number

MOST = 1_000_000
"""Ranks in a list, and in all groups of a step: a rank is in one of them."""


def pack(ranks: Iterable[int]) -> str:
    """Write ranks in their order; consecutive ones become one span."""
    spans: list[list[int]] = []
    for rank in ranks:
        if spans and rank == spans[-1][1] + 1:
            spans[-1][1] = rank
        else:
            spans.append([rank, rank])
    return ",".join(f"{a}-{b}" if b > a else f"{a}" for a, b in spans)


def unpack(text: str) -> tuple[int, ...]:
    """Read ranks back.

    Raises:
        ValueError: it is not such a list, or it has more than a million ranks.
    """
    found: list[int] = []
    for part in filter(None, text.split(",")):
        first, dash, last = part.partition("-")
        low, high = whole_number(first), whole_number(last if dash else first)
        if low is None or high is None or low > high or len(found) + high - low >= MOST:
            raise ValueError(f"no list of ranks: {text[:80]!r}")
        found += range(low, high + 1)
    return tuple(found)
