"""How many tickets of a batch have which verdict, cause and owner, as a page."""

from collections.abc import Sequence

from gpucheck.language import say
from gpucheck.output.html.elements import Element, el, section, table, words
from gpucheck.output.html.page import First, page

Row = tuple[str, str, int, str]
"""A name, a word about it, how many tickets, and their share in words."""

_WIDE = 100  # units: a per cent each


def render(heading: str, tables: Sequence[tuple[str, Sequence[Row]]]) -> str:
    """Return the page of these tables, each with its title."""
    most = max(
        (count for _title, rows in tables for _name, _word, count, _share in rows), default=1
    )
    parts = [
        section(f"counts-{at}", title, _table(title, rows, most) if rows else el("p", say("none")))
        for at, (title, rows) in enumerate(tables)
    ]
    return page(First("", "", heading), parts, [el("p", "gpucheck triage")])


def _table(title: str, rows: Sequence[Row], most: int) -> Element:
    """Return a table whose bars have the scale of all tables."""
    cells = [
        (_named(name, word), f"{count:,}", share, _bar(count, most))
        for name, word, count, share in rows
    ]
    return table((title, say("Tickets"), say("Share"), ""), cells, numbers=(1, 2))


def _named(name: str, word: str) -> Element:
    meaning = (el("br"), el("small", words(word))) if word else ()
    return el("span", words(name), *meaning)


def _bar(count: int, most: int) -> Element:
    return el(
        "svg",
        el("rect", x=0, y=0, width=_WIDE * count / max(1, most), height=8, class_="bar"),
        viewBox=f"0 0 {_WIDE} 8", preserveAspectRatio="none", aria_hidden="true", class_="bar",
    )  # fmt: skip
