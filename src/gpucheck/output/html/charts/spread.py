"""A rate of all ranks: a bar for each of a few, otherwise how it is distributed over them."""

import statistics
from collections.abc import Mapping, Sequence

from gpucheck.language import and_more, in_turn, say
from gpucheck.output.html.builder import Element, Node, el
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
    linear,
    number,
    ticks,
)
from gpucheck.output.words import headed, in_parts

# In units of which a figure is WIDTH wide (svg.py).
_LEFT, _RIGHT, _TOP, _BOTTOM = 44.0, 350.0, 22.0, 150.0
_NAMES, _VALUE, _HIGH = 150.0, 30.0, 20.0  # of a bar each: its name, its value, its height
_BINS = 24  # chosen: a bar is still 12 units wide
_NAMED = 6  # chosen: a line each below the plot
_NARROWEST = 0.05  # as GPUs of one model in one machine differ by 5 % (docs/evidence.md)
_FEW = 16
"""Fewer values have a bar each: of so few a distribution shows nothing."""
_EACH = 64
"""Up to this many values have a row each in the table, more a row for each bar."""


def chart(
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
    x = linear(edges[0], edges[-1], _LEFT, _RIGHT)
    heights = [value for value in ticks(0, max(bins)) if value == int(value)]
    y = linear(0, heights[-1], _BOTTOM, _TOP)
    drawn: list[Node] = [label(0, 12, counted, class_="dim")]
    drawn += left_axis(heights, y, _LEFT, _RIGHT)
    drawn += _bars(bins, named, y)
    drawn += bottom_axis(edges, x, _LEFT, _RIGHT, _BOTTOM, unit)
    shown = list(blamed[:_NAMED])
    bottom = _BOTTOM + 2 * LINE + 8
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
    x = linear(axis[0], axis[-1], _NAMES, _RIGHT - _VALUE)
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
    drawn += bottom_axis(axis, x, _NAMES, _RIGHT - _VALUE, bottom, unit)
    heads, rows = _table(values, blamed, (), (), unit, counted)
    return Chart(
        key=key, title=title, caption=_caption(values, blamed), drawn=tuple(drawn),
        height=bottom + 2 * LINE + 4, heads=heads, rows=rows, numbers=(1,),
    )  # fmt: skip


def _bars(bins: Sequence[int], named: Sequence[int], y: Scale) -> list[Element]:
    width = (_RIGHT - _LEFT) / len(bins)
    found = []
    for at, (count, slow) in enumerate(zip(bins, named, strict=True)):
        if not count:
            continue
        place = _LEFT + at * width
        top = min(y(count), _BOTTOM - 2)
        kind = "named" if slow else "bar"
        found.append(box(place + 0.5, top, width - 1, _BOTTOM - top, kind, f"{count:,}"))
        if slow:
            found.append(label(place + width / 2, top - 3, "▼", anchor="middle", class_="strong"))
    return found


def _slow(name: str, value: float, x: Scale, y: float) -> list[Element]:
    caption = headed(name, number(value))
    at = x(value)
    mark = el("circle", cx=at, cy=_BOTTOM, r=2.5, class_="named")
    return [
        mark,
        label(_LEFT, y + 9.5, "▼"),
        label(_LEFT + LINE, y + 9.5, caption, room=WIDTH - _LEFT - LINE),
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
