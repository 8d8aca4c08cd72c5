"""How many tickets of a batch have which verdict, cause and owner: terminal, CSV, JSON, HTML."""

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Sequence

from gpucheck.findings import all_rules
from gpucheck.language import say, say_many, spoken
from gpucheck.language.columns import padded, width_of
from gpucheck.output.layout import Page
from gpucheck.output.words import bracketed, clean, in_line, term
from gpucheck.ticket.tally import CauseCount, Tally

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
    from gpucheck.ticket import tally_html as of_tally  # noqa: PLC0415  # the other forms need none

    tables = [
        (title, [(*row, _share(row[2], tally)) for row in rows]) for title, rows in _tables(tally)
    ]
    return of_tally.render(_head(tally), tables)


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
