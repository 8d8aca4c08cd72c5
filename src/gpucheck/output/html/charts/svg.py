"""What all plots share: scales, axes, text that fits, and the figure around a plot.

A plot is 360 units wide, which is a telephone's width: its text is legible without zooming.
"""

import math
from collections.abc import Callable, Sequence

import msgspec

from gpucheck.language import say, spoken
from gpucheck.language.columns import cut_to, width_of
from gpucheck.output.html.elements import Element, Node, el, folded, table
from gpucheck.output.words import clean

# Units of every figure. Chosen: about the 22rem that a column of figures has at least (page.py),
# so that labels are as large as other small text.
WIDTH = 360.0
LINE = 14.0
"""The height of a line of text."""
_CHAR = 5.6
"""The width of a character."""
_MOST_ROWS = 200  # chosen: a table below a plot is read by eye; JSON has every value
_MOST_DECIMALS, _SAME = 7, 1e-9  # more tell no two values of a plot apart; floats have 15 digits
_LARGEST = 1e15  # beyond it floats are no longer exact to one; a saved report may have any number

Scale = Callable[[float], float]
Row = tuple[str, ...]


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """A plot, what it shows in words, and its figures."""

    key: str
    """A literal of ours, different on one page."""
    title: str
    caption: str
    """The plot in one or two sentences, for those who do not see it."""
    drawn: tuple[Node, ...]
    height: float
    heads: Sequence[str]
    rows: Sequence[Row]
    numbers: Sequence[int] = ()


def figure(chart: Chart) -> Element:
    """Return the plot with its heading, its description and its table."""
    title, description_id = f"{chart.key}-title", f"{chart.key}-said"
    rows = list(chart.rows[:_MOST_ROWS])
    if len(chart.rows) > _MOST_ROWS:
        left = say("and {count:,} more", count=len(chart.rows) - _MOST_ROWS)
        rows.append((left, *[""] * (len(chart.heads) - 1)))
    return el(
        "figure",
        el("h3", chart.title, id=title),
        el(
            "svg", *chart.drawn,
            viewBox=f"0 0 {WIDTH:g} {chart.height:g}", role="img",
            aria_labelledby=title, aria_describedby=description_id,
        ),
        el("figcaption", chart.caption, id=description_id),
        folded(say("These figures as a table"), table(chart.heads, rows, numbers=chart.numbers)),
    )  # fmt: skip


def drawable(value: float | None) -> bool:
    """Whether a number has a place in a plot; a saved report may have any number."""
    return value is not None and -_LARGEST < value < _LARGEST


def linear(first: float, last: float, left: float, right: float) -> Scale:
    """Return a scale from numbers to places."""
    span = (last - first) or 1.0
    return lambda value: left + (value - first) / span * (right - left)


def logarithmic(first: float, last: float, left: float, right: float) -> Scale:
    """Return a scale on which each factor has the same length."""
    inner = linear(math.log2(first), math.log2(last), left, right)
    return lambda value: inner(math.log2(value))


def ticks(least: float, most: float, count: int = 4) -> list[float]:
    """Return about so many round numbers from at or below ``least`` to at or above ``most``."""
    span = most - least
    if span <= max(_SAME * max(abs(least), abs(most)), 1 / _LARGEST):
        span = max(abs(most), 1 / _LARGEST) if most else 1.0
    raw = span / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(
        power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * (1 - 1e-9)
    )
    first, last = math.floor(least / step + 1e-9), math.ceil(most / step - 1e-9)
    return [step * at for at in range(first, max(last, first + 1) + 1)]


def number(value: float) -> str:
    """Return a number with three digits at least, and no more zeros than it needs."""
    if abs(value) >= 100:  # noqa: PLR2004  # three digits
        return f"{value:,.0f}"
    return f"{value:.3g}"


def marks(values: Sequence[float]) -> list[str]:
    """Return the numbers of an axis with as many decimals as tell them apart."""
    for decimals in range(_MOST_DECIMALS):
        if all(abs(round(value, decimals) - value) <= _SAME * abs(value) for value in values):
            return [f"{value:,.{decimals}f}" for value in values]
    return [f"{value:.3g}" for value in values]


def label(
    x: float, y: float, text: str, *, room: float = WIDTH, anchor: str = "start", class_: str = ""
) -> Element:
    """Return a text; what does not fit into its room is cut, and the whole is its tooltip."""
    written = clean(spoken(text))
    columns = int(room / _CHAR)
    if width_of(written) <= columns:
        return el("text", written, x=x, y=y, text_anchor=anchor, class_=class_ or None)
    cut = f"{cut_to(written, max(1, columns - 1))}…"
    whole = el("title", written)
    return el("text", whole, cut, x=x, y=y, text_anchor=anchor, class_=class_ or None)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Element:
    """Return a line."""
    return el("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def box(x: float, y: float, width: float, height: float, class_: str, title: str = "") -> Element:
    """Return a rectangle; a title is its tooltip."""
    inner = el("title", title) if title else None
    return el("rect", inner, x=x, y=y, width=width, height=max(0.0, height), class_=class_)


def path(points: Sequence[tuple[float, float]], class_: str) -> Element:
    """Return a line through points."""
    points_text = " ".join(
        f"{'L' if at else 'M'}{x:.1f} {y:.1f}" for at, (x, y) in enumerate(points)
    )
    return el("path", d=points_text, class_=class_)


def bottom_axis(
    values: Sequence[float], scale: Scale, left: float, right: float, y: float, name: str
) -> list[Node]:
    """Return a horizontal line with marks, their numbers and what they count below it."""
    parts: list[Node] = [line(left, y, right, y, "axis")]
    for value, mark in zip(values, marks(values), strict=True):
        x = scale(value)
        parts.append(line(x, y, x, y + 3, "axis"))
        at = min(x, WIDTH - 3 * len(mark))
        parts.append(label(at, y + LINE, mark, anchor="middle", class_="dim"))
    parts.append(label((left + right) / 2, y + 2 * LINE, name, anchor="middle"))
    return parts


def left_axis(values: Sequence[float], scale: Scale, left: float, right: float) -> list[Node]:
    """Return horizontal lines with their numbers at the left."""
    parts: list[Node] = []
    for value, mark in zip(values, marks(values), strict=True):
        y = scale(value)
        parts.append(line(left, y, right, y, "grid"))
        parts.append(label(left - 4, y + 3.5, mark, room=left - 4, anchor="end", class_="dim"))
    return parts
