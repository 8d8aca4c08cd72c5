"""A matrix of bandwidths between GPUs or nodes; a large one in blocks, with their slowest pair."""

import math
from collections.abc import Mapping, Sequence

import msgspec

from gpucheck.language import in_turn, say, say_many, spoken
from gpucheck.language.columns import cut_to, width_of
from gpucheck.output.html.charts.svg import WIDTH, Chart, Row, box, label, line, number
from gpucheck.output.html.elements import Element, Node, el
from gpucheck.output.words import clean, headed, in_parts

Pairs = Mapping[tuple[int, int], float]
"""GB/s by the places of both ends among the names."""

# In units of which a figure is WIDTH wide (svg.py).
_LEFT, _TOP, _TOP_OF_NAMES, _SHADES = 78.0, 8.0, 56.0, 5
# The width of a character of the labels, about; what is turned must fit _TOP_OF_NAMES.
_CHAR, _LONGEST_TURNED, _CROSS = 6.0, 10, 8.0
_MOST_CELLS = 24
"""Rows of the plot at most; beyond it each row stands for several ends."""
_WITH_NUMBERS = 9  # chosen: a cell of 31 units has room for a number
_WITH_NAMES = 12  # chosen: a column of 23 units has room for a turned name
_NAMED = 3  # chosen: a sentence; the table has all


class Matrix(msgspec.Struct, frozen=True):
    """What is known of pairs.

    ``blamed`` are the pairs that a finding names. ``each_way``: the way there and the way back were
    measured separately; otherwise a pair has one entry.
    """

    names: Sequence[str]
    pairs: Pairs
    blamed: frozenset[tuple[int, int]] = frozenset()
    each_way: bool = False

    @property
    def per(self) -> int:
        """How many ends a row of the plot stands for."""
        return math.ceil(len(self.names) / _MOST_CELLS)

    def cells(self) -> dict[tuple[int, int], float]:
        """Return the slowest pair of each cell of the plot."""
        found: dict[tuple[int, int], float] = {}
        for (end, other), value in self.pairs.items():
            for at in self._places(end, other):
                found[at] = min(value, found.get(at, value))
        return found

    def marked(self) -> set[tuple[int, int]]:
        """Return the cells with a pair that a finding names."""
        return {at for end, other in self.blamed for at in self._places(end, other)}

    def _places(self, end: int, other: int) -> list[tuple[int, int]]:
        first, last = end // self.per, other // self.per
        return [(first, last)] if self.each_way else [(first, last), (last, first)]


def chart(key: str, title: str, matrix: Matrix) -> Chart:
    """Return the plot of a matrix."""
    per = matrix.per
    count = math.ceil(len(matrix.names) / per)
    called = [_shown(matrix.names, place, per) for place in range(count)]
    few = count <= _WITH_NAMES
    top, size = _TOP_OF_NAMES if few else _TOP, (WIDTH - _LEFT - 2) / count
    drawn: list[Node] = list(_columns(called, size, top)) if few else []
    for place, name in enumerate(called):
        y = top + (place + 0.5) * size + 3.5
        drawn.append(label(_LEFT - 4, y, name, room=_LEFT - 6, anchor="end", class_="dim"))
    drawn += _cells(matrix, count, size, top)
    height = top + count * size
    return Chart(
        key=key, title=title, caption=_caption(matrix),
        drawn=(*drawn, *_key(max(matrix.pairs.values()), height)), height=height + 24,
        heads=(say("From"), say("To"), "GB/s", ""), rows=_rows(matrix), numbers=(2,),
    )  # fmt: skip


def _cells(matrix: Matrix, count: int, size: float, top: float) -> list[Element]:
    cells, marked, most = matrix.cells(), matrix.marked(), max(matrix.pairs.values())
    return [
        part
        for row in range(count)
        for column in range(count)
        for part in _cell(
            (_LEFT + column * size, top + row * size), cells.get((row, column)), most, size,
            is_marked=(row, column) in marked, with_number=count <= _WITH_NUMBERS,
        )
    ]  # fmt: skip


def _shown(names: Sequence[str], place: int, per: int) -> str:
    first = names[place * per]
    return first if per == 1 else f"{clean(spoken(first))} …"


def _columns(names: Sequence[str], size: float, top: float) -> list[Element]:
    """Return the names above the columns: level where all fit, otherwise turned."""
    fits = all(width_of(spoken(name)) * _CHAR <= size for name in names)
    found = []
    for place, name in enumerate(names):
        x = _LEFT + place * size + size / 2
        if fits:
            found.append(label(x, top - 6, name, room=size, anchor="middle", class_="dim"))
        else:
            turn = f"rotate(-90 {x + 3.5:.1f} {top - 6:.1f})"
            cut = cut_to(clean(spoken(name)), _LONGEST_TURNED)
            found.append(el("text", cut, x=x + 3.5, y=top - 6, transform=turn, class_="dim"))
    return found


def _cell(
    corner: tuple[float, float], value: float | None, most: float, size: float, *,
    is_marked: bool, with_number: bool,
) -> list[Element]:  # fmt: skip
    x, y = corner
    if value is None:
        return [box(x, y, size - 1, size - 1, "none")]
    shade = max(0, min(_SHADES - 1, int(_SHADES * value / most))) if most else 0
    found = [box(x, y, size - 1, size - 1, f"h{shade}", f"{number(value)} GB/s")]
    if with_number:
        middle = (x + size / 2, y + size / 2 + 3.5)
        found.append(label(*middle, number(value), anchor="middle", class_=f"on{shade}"))
    if is_marked:
        arm = min(size - 3, _CROSS)
        x, y, end_x, end_y = x + 1, y + 1, x + 1 + arm, y + 1 + arm
        kind = f"mark on{shade}"
        found += [line(x, y, end_x, end_y, kind), line(x, end_y, end_x, y, kind)]
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


def _caption(matrix: Matrix) -> str:
    names, pairs = matrix.names, matrix.pairs
    extremes = [
        headed(say("{one} to {other}", one=names[at[0]], other=names[at[1]]), number(pairs[at]))
        for at in sorted(pairs, key=lambda at: pairs[at])[:_NAMED]
    ]
    words = [
        say_many(
            len(pairs),
            "GB/s of {count} pair; the darker, the faster.",
            "GB/s of {count:,} pairs; the darker, the faster.",
        ),
        say("Slowest: {slowest}.", slowest=in_parts(extremes)),
    ]
    if matrix.blamed:
        words.append(say("A cross marks a pair that a finding names."))
    if matrix.per > 1:
        words.append(
            say(
                "Each cell stands for {count} by {count} ends, and shows their slowest pair.",
                count=matrix.per,
            )
        )
    return in_turn(words)


def _rows(matrix: Matrix) -> list[Row]:
    names, pairs = matrix.names, matrix.pairs
    return [
        (
            names[at[0]],
            names[at[1]],
            number(pairs[at]),
            say("named") if at in matrix.blamed else "",
        )
        for at in sorted(pairs, key=lambda at: pairs[at])
    ]
