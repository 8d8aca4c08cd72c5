"""Values over time or over sizes: lines that differ in colour and in their dashes."""

from collections.abc import Callable, Sequence

import msgspec

from gpucheck.output.html.builder import Element, Node, el
from gpucheck.output.html.charts.svg import (
    LINE,
    WIDTH,
    Chart,
    Row,
    Scale,
    box,
    label,
    left_axis,
    line,
    linear,
    logarithmic,
    number,
    path,
    ticks,
)

Points = Sequence[tuple[float, float]]

# In units of which a figure is WIDTH wide (svg.py).
_LEFT, _RIGHT, _TOP, _BOTTOM, _TALL = 44.0, 350.0, 22.0, 190.0, 2.4
_DASHES = ("", "6 3", "2 2", "9 3 2 3", "1 3", "12 4")
MOST_LINES = len(_DASHES)


class PlotLine(msgspec.Struct, frozen=True):
    """One line; ``is_limit``: it is what the others are compared with."""

    name: str
    points: Points
    is_limit: bool = False


class Across(msgspec.Struct, frozen=True):
    """What the plot is drawn over: its name, how its values are shown, and whether it doubles."""

    name: str
    shown: Callable[[float], str] = number
    doubles: bool = False


class Stretch(msgspec.Struct, frozen=True):
    """A part of what the plot is drawn over that is marked, with its name."""

    name: str
    first: float
    last: float


def chart(
    key: str, title: str, caption: str, unit: str, across: Across, lines: Sequence[PlotLine],
    marked: Sequence[Stretch] = (),
) -> Chart:  # fmt: skip
    """Return the plot of these lines, :data:`MOST_LINES` at most besides limits."""
    xs = sorted({x for plotted in lines for x, _y in plotted.points})
    ys = [y for plotted in lines for _x, y in plotted.points]
    low = min(ys) if min(ys) > max(ys) / 2 else 0.0
    levels = ticks(low, max(ys))
    kind = logarithmic if across.doubles and xs[0] > 0 else linear
    x = kind(xs[0], xs[-1], _LEFT + 6, _RIGHT - 6)
    y = linear(levels[0], levels[-1], _BOTTOM, _TOP)
    drawn: list[Node] = [label(0, 12, unit, class_="dim")]
    drawn += [node for stretch in marked for node in _stretch(stretch, xs, x)]
    drawn += left_axis(levels, y, _LEFT, _RIGHT)
    drawn.append(line(_LEFT, _BOTTOM, _RIGHT, _BOTTOM, "axis"))
    drawn += _under(xs, x, across)
    bottom = _BOTTOM + 2 * LINE + 6
    for at, plotted in enumerate(lines):
        drawn += _drawn(plotted, at, x, y)
        drawn += _named(plotted, at, bottom + at * LINE)
    return Chart(
        key=key, title=title, caption=caption, drawn=tuple(drawn),
        height=bottom + len(lines) * LINE,
        heads=(across.name, *[plotted.name for plotted in lines]),
        rows=_rows(xs, across, lines), numbers=tuple(range(1, len(lines) + 1)),
    )  # fmt: skip


def _stretch(stretch: Stretch, xs: Sequence[float], x: Scale) -> list[Element]:
    """Return a band behind the lines, as far as the plot goes, with its name above it."""
    first, last = max(stretch.first, xs[0]), min(stretch.last, xs[-1])
    if last <= first:
        return []
    left, right = x(first), x(last)
    band = box(left, _TOP - 4, right - left, _BOTTOM - _TOP + 4, "soft", stretch.name)
    middle = min(max((left + right) / 2, _LEFT + 40), WIDTH - 40)
    return [band, label(middle, _TOP - 8, stretch.name, anchor="middle", class_="dim")]


def _under(xs: Sequence[float], x: Scale, across: Across) -> list[Element]:
    """Return the axis below: the first, the last and some values between that have room."""
    found, free = [], 0.0
    for value in xs if across.doubles else ticks(xs[0], xs[-1]):
        place = x(value)
        if not _LEFT <= place <= _RIGHT:
            continue
        found.append(line(place, _BOTTOM, place, _BOTTOM + 3, "axis"))
        written = across.shown(value)
        half = 3.0 * len(written)
        middle = min(place, WIDTH - half)
        if middle - half >= free:
            found.append(label(middle, _BOTTOM + LINE, written, anchor="middle", class_="dim"))
            free = middle + half + 4
    name = label((_LEFT + _RIGHT) / 2, _BOTTOM + 2 * LINE, across.name, anchor="middle")
    return [*found, name]


def _drawn(plotted: PlotLine, at: int, x: Scale, y: Scale) -> list[Element]:
    places = [(x(across), y(value)) for across, value in plotted.points]
    if plotted.is_limit:
        if len(places) == 1:
            (across, value), *_ = places
            places = [(max(_LEFT, across - 18), value), (min(_RIGHT, across + 18), value)]
        return [path(places, "limit")]
    kind = f"line c{at % MOST_LINES}"
    found = [_dashed(path(places, kind), at)] if len(places) > 1 else []
    if len(places) <= 16:  # noqa: PLR2004  # more are a line anyway
        found += [el("circle", cx=cx, cy=cy, r=_TALL, class_=kind) for cx, cy in places]
    return found


def _dashed(drawn: Element, at: int) -> Element:
    dashes = _DASHES[at % MOST_LINES]
    if not dashes:
        return drawn
    return Element(drawn.tag, (*drawn.attributes, ("stroke-dasharray", dashes)), drawn.children)


def _named(plotted: PlotLine, at: int, y: float) -> list[Element]:
    kind = "limit" if plotted.is_limit else f"line c{at % MOST_LINES}"
    sample = path([(_LEFT, y + 6), (_LEFT + 24, y + 6)], kind)
    room = WIDTH - _LEFT - 30
    return [
        sample if plotted.is_limit else _dashed(sample, at),
        label(_LEFT + 30, y + 9.5, plotted.name, room=room),
    ]


def _rows(xs: Sequence[float], across: Across, lines: Sequence[PlotLine]) -> list[Row]:
    found = []
    by_place = [dict(plotted.points) for plotted in lines]
    for x in xs:
        cells = [number(points[x]) if x in points else "" for points in by_place]
        found.append((across.shown(x), *cells))
    return found
