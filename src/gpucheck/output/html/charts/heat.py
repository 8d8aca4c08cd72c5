"""A matrix of bandwidths between GPUs or nodes; a large one in blocks, with their slowest pair."""

import math
from collections.abc import Mapping, Sequence

from gpucheck.language import in_turn, say, say_many
from gpucheck.output.html.builder import Element, Node
from gpucheck.output.html.charts.svg import WIDTH, Chart, Row, box, label, line, number
from gpucheck.output.words import headed, in_parts

Pairs = Mapping[tuple[int, int], float]
"""GB/s by the places of both ends among the names; each way has an entry of its own."""

_LEFT, _TOP, _SHADES = 78.0, 34.0, 5
_MOST_CELLS = 24
"""Rows of the plot at most; beyond it each row stands for several ends."""
_WITH_NUMBERS = 9
_WITH_NAMES = 24
_NAMED = 3


def chart(
    key: str, title: str, names: Sequence[str], pairs: Pairs, blamed: frozenset[tuple[int, int]]
) -> Chart:
    """Return the matrix; ``blamed`` are the pairs that a finding names."""
    per = math.ceil(len(names) / _MOST_CELLS)
    count = math.ceil(len(names) / per)
    cells: dict[tuple[int, int], float] = {}
    marked = {(one // per, other // per) for one, other in blamed}
    for (one, other), value in pairs.items():
        at = (one // per, other // per)
        cells[at] = min(value, cells.get(at, value))
    size = (WIDTH - _LEFT - 2) / count
    drawn: list[Node] = []
    for place in range(count):
        drawn += _names(place, _shown(names, place, per), size, many=count > _WITH_NAMES // 2)
    most = max(cells.values())
    for one in range(count):
        for other in range(count):
            at = (one, other)
            drawn += _cell(at, cells.get(at), most, size, is_marked=at in marked, many=count)
    height = _TOP + count * size
    return Chart(
        key=key, title=title, said=_said(names, pairs, per), drawn=(*drawn, *_key(most, height)),
        height=height + 24, heads=(say("From"), say("To"), "GB/s", ""),
        rows=_rows(names, pairs, blamed), numbers=(2,),
    )  # fmt: skip


def _shown(names: Sequence[str], place: int, per: int) -> str:
    first, last = names[place * per], names[min(len(names), (place + 1) * per) - 1]
    return first if per == 1 else say("{first} to {last}", first=first, last=last)


def _names(place: int, name: str, size: float, *, many: bool) -> list[Element]:
    middle = place * size + size / 2
    row = label(_LEFT - 4, _TOP + middle + 3.5, name, room=_LEFT - 6, anchor="end", class_="dim")
    if many:
        return [row]  # the columns are in the order of the rows
    column = label(_LEFT + middle, _TOP - 6, name, room=size, anchor="middle", class_="dim")
    return [row, column]


def _cell(
    at: tuple[int, int], value: float | None, most: float, size: float, *,
    is_marked: bool, many: int,
) -> list[Element]:  # fmt: skip
    x, y = _LEFT + at[1] * size, _TOP + at[0] * size
    if value is None:
        return [box(x, y, size - 1, size - 1, "none")]
    shade = min(_SHADES - 1, int(_SHADES * value / most)) if most else 0
    found = [box(x, y, size - 1, size - 1, f"h{shade}", f"{number(value)} GB/s")]
    if many <= _WITH_NUMBERS:
        middle = (x + size / 2, y + size / 2 + 3.5)
        found.append(label(*middle, number(value), anchor="middle", class_=f"on{shade}"))
    if is_marked:
        end_x, end_y, kind = x + size - 2, y + size - 2, f"mark on{shade}"
        found += [line(x + 1, y + 1, end_x, end_y, kind), line(x + 1, end_y, end_x, y + 1, kind)]
    return found


def _key(most: float, top: float) -> list[Element]:
    found = []
    width = (WIDTH - _LEFT) / _SHADES
    for shade in range(_SHADES):
        x = _LEFT + shade * width
        found.append(box(x, top + 4, 12, 12, f"h{shade}"))
        low = number(most * shade / _SHADES)
        found.append(label(x + 15, top + 14, f"≥ {low}", room=width - 16, class_="dim"))
    return found


def _said(names: Sequence[str], pairs: Pairs, per: int) -> str:
    slowest = sorted(pairs, key=lambda at: pairs[at])[:_NAMED]
    told = [
        headed(say("{one} to {other}", one=names[at[0]], other=names[at[1]]), number(pairs[at]))
        for at in slowest
    ]
    words = say_many(
        len(pairs),
        "GB/s of {count} pair; the darker, the faster. Slowest: {slowest}. A cross marks a pair "
        "that a finding names.",
        "GB/s of {count:,} pairs; the darker, the faster. Slowest: {slowest}. A cross marks a pair "
        "that a finding names.",
        slowest=in_parts(told),
    )
    if per == 1:
        return words
    cells = say(
        "Each cell stands for {count} by {count} ends, and shows their slowest pair.", count=per
    )
    return in_turn([words, cells])


def _rows(names: Sequence[str], pairs: Pairs, blamed: frozenset[tuple[int, int]]) -> list[Row]:
    ordered = sorted(pairs, key=lambda at: pairs[at])
    return [
        (names[at[0]], names[at[1]], number(pairs[at]), say("named") if at in blamed else "")
        for at in ordered
    ]
