"""How many tickets of a batch have which verdict, cause and owner, as text and page."""

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gpucheck.findings import all_rules
from gpucheck.language import say, say_many, spoken
from gpucheck.language.columns import padded, width_of
from gpucheck.output.html.elements import Element, el, section, table, words
from gpucheck.output.html.page import First, page
from gpucheck.output.layout import Page
from gpucheck.output.words import bracketed, clean, in_line, term

# How many tickets of a batch have which verdict, which cause and which owner.

SCHEMA = "gpucheck.triage-summary/1"


class CauseCount(msgspec.Struct, frozen=True, kw_only=True):
    """A first root cause, its owner, and in how many tickets; "" if there is none."""

    cause: str
    owner: str
    tickets: int


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of a batch; each ticket that could be read counts once in every one of them."""

    tickets: int
    not_read: int
    """Tickets that could not be read, which count nowhere else."""
    verdicts: dict[str, int]
    owners: dict[str, int]
    causes: tuple[CauseCount, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as JSON-like data."""
        data: dict[str, Any] = msgspec.to_builtins(self)
        return {"schema": SCHEMA, **data}


class Counting:
    """Counts the answers of a batch as they come."""

    def __init__(self) -> None:
        self._verdicts: Counter[str] = Counter()
        self._owners: Counter[str] = Counter()
        self._causes: Counter[tuple[str, str]] = Counter()
        self._not_read = 0

    def add(self, line: dict[str, Any]) -> None:
        """Count the line of a ticket."""
        if "error" in line:
            self._not_read += 1
            return
        owner = line["owner"]
        cause = next(iter(line["root_causes"]), "")
        self._verdicts[line["verdict"]] += 1
        self._owners[owner] += 1
        self._causes[cause, owner] += 1

    def tally(self) -> Tally:
        """Return the numbers so far, the greatest first, of equal ones by name."""
        return Tally(
            tickets=self._verdicts.total() + self._not_read,
            not_read=self._not_read,
            verdicts=dict(_ordered(self._verdicts)),
            owners=dict(_ordered(self._owners)),
            causes=tuple(
                CauseCount(cause=cause, owner=owner, tickets=count)
                for (cause, owner), count in _ordered(self._causes)
            ),
        )


def _ordered(counts: Counter[Any]) -> list[tuple[Any, int]]:
    return sorted(counts.items(), key=lambda counted: (-counted[1], counted[0]))


# How many tickets of a batch have which verdict, cause and owner, as a page.

TallyHtmlRow = tuple[str, str, int, str]
"""A name, a word about it, how many tickets, and their share in words."""

_WIDE = 100  # units: a per cent each


def render(heading: str, tables: Sequence[tuple[str, Sequence[TallyHtmlRow]]]) -> str:
    """Return the page of these tables, each with its title."""
    most = max(
        (count for _title, rows in tables for _name, _word, count, _share in rows), default=1
    )
    parts = [
        section(f"counts-{at}", title, _table(title, rows, most) if rows else el("p", say("none")))
        for at, (title, rows) in enumerate(tables)
    ]
    return page(First("", "", heading), parts, [el("p", "gpucheck triage")])


def _table(title: str, rows: Sequence[TallyHtmlRow], most: int) -> Element:
    """Return a table whose bars have the scale of all tables."""
    cells = [
        (_tally_html_named(name, word), f"{count:,}", share, _bar(count, most))
        for name, word, count, share in rows
    ]
    return table((title, say("Tickets"), say("Share"), ""), cells, numbers=(1, 2))


def _tally_html_named(name: str, word: str) -> Element:
    meaning = (el("br"), el("small", words(word))) if word else ()
    return el("span", words(name), *meaning)


def _bar(count: int, most: int) -> Element:
    return el(
        "svg",
        el("rect", x=0, y=0, width=_WIDE * count / max(1, most), height=8, class_="bar"),
        viewBox=f"0 0 {_WIDE} 8", preserveAspectRatio="none", aria_hidden="true", class_="bar",
    )  # fmt: skip


# How many tickets of a batch have which verdict, cause and owner: terminal, CSV, JSON, HTML.

_NO_CAUSE = {"none": say("(nothing broken)"), "unknown": say("(no cause found)")}
_OWNERS = {
    "environment": say("software and settings of the machine"),
    "hardware": say("the hardware"),
    "cluster": say("the cluster"),
    "code": say("the program or a library"),
    "user-code": say("the user's own program"),
    "library": say("the package that raised the exception"),
    "other": say("something that has nothing to do with GPUs"),
    "none": say("nobody: nothing is broken"),
    "unknown": say("not known"),
}
_CELLS = (6, 6)
"""The columns of a number and of its share."""

Row = tuple[str, str, int]
"""A name, a word about it, and how many tickets."""


def text(tally: Tally, *, color: bool = False, width: int | None = None) -> str:
    """Return the numbers as three tables for a terminal."""
    page = Page(width, color=color)
    page.words(_head(tally), style="bold")
    for title, rows in _tables(tally):
        page.heading(title)
        lines = [(spoken(name), spoken(word), count) for name, word, count in rows]
        room = max((width_of(name) for name, _word, _count in lines), default=0) + 2
        for name, word, count in lines:
            number, share = str(count).rjust(_CELLS[0]), _share(count, tally).rjust(_CELLS[1])
            page.verbatim(f"{padded(name, room)}{number}{share}  {word}".rstrip(), indent=2)
    return page.text()


def as_csv(tally: Tally) -> str:
    """Return the numbers as one table: what is counted, its name, its owner, and the tickets."""
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(("counted", "name", "owner", "tickets"))
    writer.writerow(("all", "", "", tally.tickets))
    writer.writerow(("not-read", "", "", tally.not_read))
    verdicts = [(clean(name), count) for name, count in tally.verdicts.items()]
    owners = [(clean(name), count) for name, count in tally.owners.items()]
    causes = [(clean(cause.cause), clean(cause.owner), cause.tickets) for cause in tally.causes]
    writer.writerows(("verdict", name, "", count) for name, count in verdicts)
    writer.writerows(("owner", name, name, count) for name, count in owners)
    writer.writerows(("cause", *cause) for cause in causes)
    return page.getvalue()


def as_json(tally: Tally) -> str:
    """Return the numbers as JSON (schema ``gpucheck.triage-summary/1``)."""
    return json.dumps(tally.as_json(), indent=2) + "\n"


def as_html(tally: Tally) -> str:
    """Return the numbers as a page of its own, which loads nothing."""
    tables = [
        (title, [(*row, _share(row[2], tally)) for row in rows]) for title, rows in _tables(tally)
    ]
    return render(_head(tally), tables)


FORMATS: dict[str, Callable[[Tally], str]] = {"csv": as_csv, "json": as_json, "html": as_html}
"""The formats other than the terminal's."""


def _head(tally: Tally) -> str:
    tickets = say_many(tally.tickets, "{count} ticket", "{count} tickets")
    if not tally.not_read:
        return tickets
    return in_line([tickets, say("{count} could not be read", count=tally.not_read)])


def _tables(tally: Tally) -> Sequence[tuple[str, Sequence[Row]]]:
    times = Counter(cause.cause for cause in tally.causes)
    causes = [
        (_named(cause, alone=times[cause.cause] == 1), _title(cause.cause), cause.tickets)
        for cause in tally.causes
    ]
    owners = [(name, _OWNERS.get(name, ""), count) for name, count in tally.owners.items()]
    verdicts = [(term(name), "", count) for name, count in tally.verdicts.items()]
    return (
        (say("Verdict"), verdicts),
        (say("First cause"), causes),
        (say("Who has to act"), owners),
    )


def _named(count: CauseCount, *, alone: bool) -> str:
    """Return the name of a cause, with its owner if it has several."""
    name = count.cause or _NO_CAUSE.get(count.owner, "")
    return name if alone or not count.cause else bracketed(name, count.owner)


def _title(slug: str) -> str:
    rule = all_rules().get(slug)
    return rule.title if rule is not None else ""


def _share(count: int, tally: Tally) -> str:
    return f"{100 * count / max(1, tally.tickets - tally.not_read):.0f} %"
