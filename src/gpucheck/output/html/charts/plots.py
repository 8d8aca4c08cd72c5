"""Plots of values: over time or sizes as lines, of all ranks as bars or as they spread."""

import statistics
from collections.abc import Callable, Mapping, Sequence

import msgspec

from gpucheck.language import and_more, in_turn, say
from gpucheck.output.html.charts.svg import (
    LINE,
    WIDTH,
    Chart,
    Row,
    Scale,
    bottom_axis,
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
from gpucheck.output.html.elements import Element, Node, el
from gpucheck.output.words import headed, in_parts

# Values over time or over sizes: lines that differ in colour and in their dashes.

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


# A rate of all ranks: a bar for each of a few, otherwise how it is distributed over them.

# In units of which a figure is WIDTH wide (svg.py).
_SPREAD_LEFT, _SPREAD_RIGHT, _SPREAD_TOP, _SPREAD_BOTTOM = 44.0, 350.0, 22.0, 150.0
_NAMES, _VALUE, _HIGH = 150.0, 30.0, 20.0  # of a bar each: its name, its value, its height
_BINS = 24  # chosen: a bar is still 12 units wide
_NAMED = 6  # chosen: a line each below the plot
_NARROWEST = 0.05  # as GPUs of one model in one machine differ by 5 % (docs/evidence.md)
_FEW = 16
"""Fewer values have a bar each: of so few a distribution shows nothing."""
_EACH = 64
"""Up to this many values have a row each in the table, more a row for each bar."""


def spread_chart(
    key: str, title: str, unit: str, values: Mapping[str, float], blamed: Sequence[str],
    counted: str,
) -> Chart:  # fmt: skip
    """Return the distribution, or the values themselves if they are few.

    Args:
        key: a literal of ours.
        title: what was measured.
        unit: its name at the axis.
        values: by the name of whoever measured it.
        blamed: the names that a finding calls slow, the slowest first.
        counted: what the names are: ranks, or pairs of nodes.
    """
    if len(values) < _FEW:
        return _each(key, title, unit, values, blamed, counted)
    least, most = min(values.values()), max(values.values())
    middle = statistics.median(values.values())
    narrow = _NARROWEST * abs(middle)  # so that chance does not look like a difference
    edges = ticks(min(least, middle - narrow), max(most, middle + narrow))
    width = (edges[-1] - edges[0]) / _BINS
    bins = [0] * _BINS
    named = [0] * _BINS
    for name, value in values.items():
        at = min(_BINS - 1, int((value - edges[0]) / width))
        bins[at] += 1
        named[at] += name in blamed
    x = linear(edges[0], edges[-1], _SPREAD_LEFT, _SPREAD_RIGHT)
    heights = [value for value in ticks(0, max(bins)) if value == int(value)]
    y = linear(0, heights[-1], _SPREAD_BOTTOM, _SPREAD_TOP)
    drawn: list[Node] = [label(0, 12, counted, class_="dim")]
    drawn += left_axis(heights, y, _SPREAD_LEFT, _SPREAD_RIGHT)
    drawn += _bars(bins, named, y)
    drawn += bottom_axis(edges, x, _SPREAD_LEFT, _SPREAD_RIGHT, _SPREAD_BOTTOM, unit)
    shown = list(blamed[:_NAMED])
    bottom = _SPREAD_BOTTOM + 2 * LINE + 8
    for at, name in enumerate(shown):
        drawn += _slow(name, values[name], x, bottom + at * LINE)
    heads, rows = _table(values, blamed, bins, edges, unit, counted)
    return Chart(
        key=key, title=title, caption=_caption(values, blamed), drawn=tuple(drawn),
        height=bottom + len(shown) * LINE, heads=heads, rows=rows, numbers=(1,),
    )  # fmt: skip


def _each(
    key: str, title: str, unit: str, values: Mapping[str, float], blamed: Sequence[str],
    counted: str,
) -> Chart:  # fmt: skip
    """Return a bar for each value, all from the same zero."""
    axis = ticks(min(0.0, *values.values()), max(0.0, *values.values()))
    x = linear(axis[0], axis[-1], _NAMES, _SPREAD_RIGHT - _VALUE)
    drawn: list[Node] = []
    for at, (name, value) in enumerate(values.items()):
        y = 4 + at * _HIGH
        begin, end = sorted((x(0.0), x(value)))
        is_blamed = name in blamed
        strong = "strong" if is_blamed else ""
        drawn += [
            label(_NAMES - 4, y + 11, name, room=_NAMES - 4, anchor="end", class_=strong),
            box(begin, y + 1, max(1.0, end - begin), _HIGH - 6, "named" if is_blamed else "bar"),
            label(end + 3, y + 11, number(value), room=WIDTH - end, class_=strong),
        ]
    bottom = 4 + len(values) * _HIGH + 2
    drawn += bottom_axis(axis, x, _NAMES, _SPREAD_RIGHT - _VALUE, bottom, unit)
    heads, rows = _table(values, blamed, (), (), unit, counted)
    return Chart(
        key=key, title=title, caption=_caption(values, blamed), drawn=tuple(drawn),
        height=bottom + 2 * LINE + 4, heads=heads, rows=rows, numbers=(1,),
    )  # fmt: skip


def _bars(bins: Sequence[int], named: Sequence[int], y: Scale) -> list[Element]:
    width = (_SPREAD_RIGHT - _SPREAD_LEFT) / len(bins)
    found = []
    for at, (count, slow) in enumerate(zip(bins, named, strict=True)):
        if not count:
            continue
        place = _SPREAD_LEFT + at * width
        top = min(y(count), _SPREAD_BOTTOM - 2)
        kind = "named" if slow else "bar"
        found.append(box(place + 0.5, top, width - 1, _SPREAD_BOTTOM - top, kind, f"{count:,}"))
        if slow:
            found.append(label(place + width / 2, top - 3, "▼", anchor="middle", class_="strong"))
    return found


def _slow(name: str, value: float, x: Scale, y: float) -> list[Element]:
    caption = headed(name, number(value))
    at = x(value)
    mark = el("circle", cx=at, cy=_SPREAD_BOTTOM, r=2.5, class_="named")
    return [
        mark,
        label(_SPREAD_LEFT, y + 9.5, "▼"),
        label(_SPREAD_LEFT + LINE, y + 9.5, caption, room=WIDTH - _SPREAD_LEFT - LINE),
    ]


def _caption(values: Mapping[str, float], blamed: Sequence[str]) -> str:
    slowest = min(values, key=lambda name: values[name])
    fastest = max(values, key=lambda name: values[name])
    words = say(
        "{count:,} values: {least} ({slowest}) to {most} ({fastest}), median {median}.",
        count=len(values), least=number(values[slowest]), slowest=slowest,
        most=number(values[fastest]), fastest=fastest,
        median=number(statistics.median(values.values())),
    )  # fmt: skip
    if not blamed:
        return words
    return in_turn([words, say("Slow: {slow}.", slow=_listed(blamed, _NAMED))])


def _table(
    values: Mapping[str, float], blamed: Sequence[str], bins: Sequence[int],
    edges: Sequence[float], unit: str, counted: str,
) -> tuple[Sequence[str], list[Row]]:  # fmt: skip
    slow = {name: say("slow") for name in blamed}
    if len(values) <= _EACH:
        rows: list[Row] = [
            (name, number(values[name]), slow.get(name, ""))
            for name in sorted(values, key=lambda name: values[name])
        ]
        return (counted, unit, ""), rows
    width = (edges[-1] - edges[0]) / len(bins)
    bars: list[Row] = [
        (
            say("{least} to {most}", least=number(low), most=number(low + width)),
            f"{count:,}",
            _listed([name for name in blamed if low <= values[name] < low + width]),
        )
        for at, count in enumerate(bins)
        if count
        for low in (edges[0] + at * width,)
    ]
    return (unit, counted, say("slow")), bars


def _listed(names: Sequence[str], most: int = _EACH) -> str:
    return and_more(in_parts(names[:most]), len(names) - most)
