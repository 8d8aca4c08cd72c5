"""The median of all others of a kind, for thousands of them at once."""

from bisect import bisect_left
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Peers(Generic[K]):
    """Values by what comparable ones have in common."""

    def __init__(self, values: Iterable[tuple[K, float]]) -> None:
        self._ordered: dict[K, list[float]] = {}
        for key, value in values:
            self._ordered.setdefault(key, []).append(value)
        for same in self._ordered.values():
            same.sort()

    def others(self, key: K, own: float) -> tuple[float, int]:
        """Return the median of the others under a key, and how many there are; (0, 0) without any.

        Args:
            key: what is compared.
            own: the value, one of those under the key, that is left out.
        """
        ordered = self._ordered.get(key, [])
        count = len(ordered) - 1
        if count < 1:
            return 0.0, 0
        left_out = bisect_left(ordered, own)
        values = [ordered[at + (at >= left_out)] for at in _middle(count)]
        return sum(values) / len(values), count

    def all_of(self, key: K) -> tuple[float, int]:
        """Return the median of all under a key, and how many there are; (0, 0) without any."""
        ordered = self._ordered.get(key, [])
        if not ordered:
            return 0.0, 0
        values = [ordered[at] for at in _middle(len(ordered))]
        return sum(values) / len(values), len(ordered)


def _middle(count: int) -> list[int]:
    return [count // 2] if count % 2 else [count // 2 - 1, count // 2]
