"""What changed between two snapshots, as a page: what matters most first, then every change."""

from collections.abc import Sequence

from gpucheck.baselines.diff import Change, change_words, groups, lines, verdict
from gpucheck.engine import Report
from gpucheck.facts.system import System
from gpucheck.language import say, say_many
from gpucheck.output.html.elements import Node, el, facts, folded, pairs, section, table, when
from gpucheck.output.html.elements import words as block_words
from gpucheck.output.html.page import First, page
from gpucheck.output.words import (
    clean,
    in_line,
    term,
)

_ROWS, _LONG = 2000, 300  # chosen: a page that a browser opens at once, whatever a saved report has


def render_html(before: Report, after: Report, changes: Sequence[Change]) -> str:
    """Return the page of two reports whose snapshots are redacted together."""
    if not changes:
        nothing = First("", "", say("Nothing changed."))
        return page(nothing, [], _end(), _top(before, after))
    change_count = say_many(len(changes), "{count} change", "{count} changes")
    overview = lines(before.snapshot, after.snapshot)
    rows: list[tuple[str, Node]] = [(say("Verdict"), block_words(verdict(before, after)))]
    rows += [(term(label), block_words(became)) for label, became in overview]
    main: list[Node] = [section("overview", say("Overview"), pairs(rows))]
    for at, (heading, named) in enumerate(groups(changes)):
        cells = [(clean(name), block_words(became)) for name, became in named[:_ROWS]]
        main.append(
            section(f"group-{at}", heading, table((say("Name"), say("Change")), _cut(cells, named)))
        )
    every = [
        (el("code", clean(change.fact, _LONG)), block_words(change_words(change)))
        for change in changes[:_ROWS]
    ]
    all_of_them = table((say("Fact"), say("Change")), _cut(every, changes))
    main.append(section("every", say("Every change"), folded(change_count, all_of_them)))
    return page(First("", "", change_count), main, _end(), _top(before, after))


def _cut(rows: Sequence[Sequence[Node]], every: Sequence[object]) -> list[Sequence[Node]]:
    if len(every) <= len(rows):
        return list(rows)
    return [*rows, (say("and {count:,} more", count=len(every) - len(rows)), "")]


def _top(before: Report, after: Report) -> list[Node]:
    sides = ((say("Before"), before.snapshot), (say("After"), after.snapshot))
    rows = [
        (name, in_line([clean(snapshot.get(System).hostname or ""), when(snapshot.taken)]))
        for name, snapshot in sides
    ]
    return [facts(rows)]


def _end() -> list[Node]:
    return [el("p", say("Names, paths, addresses and UUIDs are pseudonyms."))]
