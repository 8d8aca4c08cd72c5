"""How many tickets of a batch have which verdict, cause and owner: terminal, CSV, JSON, HTML."""

import csv
import html
import io
import json
from collections import Counter
from collections.abc import Callable, Sequence

from gpucheck.findings import all_rules
from gpucheck.language import current_language, say, say_many, spoken
from gpucheck.language.columns import padded, width_of
from gpucheck.output.layout import Page
from gpucheck.output.terms import term
from gpucheck.output.words import bracketed, clean, in_line
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
_STYLE = """
:root { color-scheme: light dark; --line: #ccc; --bar: #76b900; }
@media (prefers-color-scheme: dark) { :root { --line: #444; --bar: #5a8f00; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin-bottom: 2rem; }
caption { text-align: left; font-weight: bold; padding: .3rem 0; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); }
td.number { text-align: right; width: 5rem; font-variant-numeric: tabular-nums; }
td.bar { width: 20%; }
@media (min-width: 40rem) { th { white-space: nowrap; } }
td.bar div { background: var(--bar); height: .8rem; }
"""

Row = tuple[str, str, int]
"""A name, a word about it, and how many tickets."""


def text(tally: Tally, *, color: bool = False, width: int | None = None) -> str:
    """Return the numbers as three tables for a terminal."""
    page = Page(width, color=color)
    page.words(_head(tally), style="bold")
    for title, rows in _tables(tally):
        page.heading(title)
        said = [(spoken(name), spoken(word), count) for name, word, count in rows]
        room = max((width_of(name) for name, _word, _count in said), default=0) + 2
        for name, word, count in said:
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
    causes = [(clean(one.cause), clean(one.owner), one.tickets) for one in tally.causes]
    writer.writerows(("verdict", name, "", count) for name, count in verdicts)
    writer.writerows(("owner", name, name, count) for name, count in owners)
    writer.writerows(("cause", *one) for one in causes)
    return page.getvalue()


def as_json(tally: Tally) -> str:
    """Return the numbers as JSON (schema ``gpucheck.triage-summary/1``)."""
    return json.dumps(tally.as_json(), indent=2) + "\n"


def as_html(tally: Tally) -> str:
    """Return the numbers as a page of its own, which loads nothing and runs nothing."""
    tables = "\n".join(_html_table(title, rows, tally) for title, rows in _tables(tally))
    return (
        f'<!doctype html>\n<html lang="{current_language()}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>gpucheck triage</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{html.escape(spoken(_head(tally)))}</h1>\n{tables}\n</body>\n</html>\n"
    )


FORMATS: dict[str, Callable[[Tally], str]] = {"csv": as_csv, "json": as_json, "html": as_html}
"""The formats other than the terminal's."""


def _head(tally: Tally) -> str:
    tickets = say_many(tally.tickets, "{count} ticket", "{count} tickets")
    if not tally.not_read:
        return tickets
    return in_line([tickets, say("{count} could not be read", count=tally.not_read)])


def _tables(tally: Tally) -> Sequence[tuple[str, Sequence[Row]]]:
    times = Counter(one.cause for one in tally.causes)
    causes = [
        (_named(one, alone=times[one.cause] == 1), _title(one.cause), one.tickets)
        for one in tally.causes
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


def _html_table(title: str, rows: Sequence[Row], tally: Tally) -> str:
    most = max((count for _name, _word, count in rows), default=1)
    lines = "\n".join(
        f"<tr><th>{html.escape(spoken(clean(name)))}</th><td>{html.escape(spoken(word))}</td>"
        f'<td class="number">{count}</td><td class="number">{_share(count, tally)}</td>'
        f'<td class="bar"><div style="width: {100 * count / most:.0f}%"></div></td></tr>'
        for name, word, count in rows
    )
    return f"<table>\n<caption>{html.escape(spoken(title))}</caption>\n{lines}\n</table>"
