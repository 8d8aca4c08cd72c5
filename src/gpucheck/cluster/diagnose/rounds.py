"""Which nodes or ranks are tested together: rounds of disjoint pairs, and blocks."""

from collections.abc import Callable, Iterable, Iterator, Sequence

Pair = tuple[int, int]


def pair(first: int, other: int) -> Pair:
    """Return the two in order, so that each pair has one form."""
    return (first, other) if first < other else (other, first)


def adjacent(units: Sequence[int]) -> list[Pair]:
    """Pair each with its neighbour; the last of an odd number is left over."""
    return [pair(units[at], units[at + 1]) for at in range(0, len(units) - 1, 2)]


def round_robin(units: Sequence[int]) -> Iterator[list[Pair]]:
    """Yield rounds in which each meets every other once (the circle method).

    n units need n - 1 rounds, an odd number n of them n. The first round pairs neighbours.
    """
    circle: list[int | None] = [*units[0::2], *reversed(units[1::2])]
    if len(circle) % 2:
        circle.insert((len(circle) + 1) // 2, None)
    half = len(circle) // 2
    for _ in range(len(circle) - 1):
        facing = zip(circle[:half], circle[: half - 1 : -1], strict=True)
        yield [pair(a, b) for a, b in facing if a is not None and b is not None]
        circle.insert(1, circle.pop())


def next_round(units: Sequence[int], is_wanted: Callable[[Pair], bool]) -> list[Pair]:
    """Return the wanted pairs of the first round that has any; [] when all have met."""
    for pairs in round_robin(units):
        if wanted := [both for both in pairs if is_wanted(both)]:
            return wanted
    return []


def partners(
    suspects: Iterable[int], good: Sequence[int], is_wanted: Callable[[Pair], bool]
) -> list[Pair]:
    """Give each suspect a good partner of its own, as far as there are enough.

    Good partners are used in turn, starting behind the last one used, so that nobody is used twice
    while others are free. A suspect that gets none waits for another round.
    """
    free = list(good)
    chosen = []
    for suspect in suspects:
        for at, unit in enumerate(free):
            if unit != suspect and is_wanted(pair(suspect, unit)):
                chosen.append(pair(suspect, unit))
                free = free[at + 1 :] + free[:at]
                break
    return chosen


def shifted(left: Sequence[int], right: Sequence[int], by: int) -> list[Pair]:
    """Pair the ranks of two nodes, with the second node's ranks shifted by some places.

    Shifted by 0 up to the size of the larger node, each rank meets each rank of the other node.
    """
    wide = max(len(left), len(right))
    found = []
    for at, unit in enumerate(left):
        place = (at + by) % wide
        if place < len(right):
            found.append(pair(unit, right[place]))
    return found


def blocks(units: Sequence[int], size: int) -> list[tuple[int, ...]]:
    """Cut into blocks of this size; a single one left over joins the last block."""
    cut = [tuple(units[at : at + size]) for at in range(0, len(units), size)]
    if len(cut) > 1 and len(cut[-1]) == 1:
        cut[-2:] = [cut[-2] + cut[-1]]
    return cut


def disjoint(groups: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return the groups, in order, that share no rank with an earlier one."""
    taken: set[int] = set()
    chosen = []
    for group in groups:
        if taken.isdisjoint(group):
            taken.update(group)
            chosen.append(tuple(group))
    return chosen
