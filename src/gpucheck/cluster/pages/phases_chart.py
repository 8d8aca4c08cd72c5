"""How far each rank came, phase by phase: who waited, and for whom."""

import typing
from collections.abc import Sequence

from gpucheck.cluster.pages.words import BAD, host, spans
from gpucheck.facts.preflight import Phase, RankOutcome
from gpucheck.language import Sentence, in_turn, say, say_many
from gpucheck.output.html.builder import Element, Node, el
from gpucheck.output.html.charts.svg import WIDTH, Chart, Row, box, label, line
from gpucheck.output.words import in_line, term

PHASES: tuple[Phase, ...] = typing.get_args(Phase)
# In units of which a figure is WIDTH wide (svg.py); 46 of them on the right are left for the state
# of a rank.
_LEFT, _TOP, _HIGH = 118.0, 56.0, 20.0
_STEP = (WIDTH - _LEFT - 46) / len(PHASES)
_EACH, _MOST_BAD = 16, 14
"""Ranks up to which each has a row; otherwise so many bad ones have, and groups of the others."""


class RankGroup(typing.NamedTuple):
    """Ranks that came equally far: what they are called, how they ended, and which they are."""

    name: str
    status: str
    phase: Phase
    ranks: Sequence[RankOutcome]


def chart(ranks: Sequence[RankOutcome]) -> Chart | None:
    """Return the plot; None if every rank has passed."""
    if all(rank.status == "passed" for rank in ranks):
        return None
    groups = groups_of(ranks)
    drawn: list[Node] = []
    bottom = _TOP + len(groups) * _HIGH
    for at, phase in enumerate(PHASES):
        x = _LEFT + (at + 1) * _STEP
        turned = f"rotate(-55 {x:.1f} {_TOP - 6:.1f})"
        drawn.append(el("text", phase, x=x, y=_TOP - 6, transform=turned, class_="dim"))
        drawn.append(line(x, _TOP - 4, x, bottom, "grid"))
    for at, group in enumerate(groups):
        drawn += _bar(group, _TOP + at * _HIGH)
    rows: list[Row] = [
        (rank_group.name, term(rank_group.status), rank_group.phase, f"{len(rank_group.ranks):,}")
        for rank_group in groups
    ]
    return Chart(
        key="phases", title=say("How far each rank came"), caption=_caption(ranks),
        drawn=tuple(drawn), height=bottom + 4,
        heads=(say("Rank"), say("State"), say("Phase"), say("Ranks")), rows=rows, numbers=(3,),
    )  # fmt: skip


def _bar(group: RankGroup, y: float) -> list[Element]:
    width = max(2.0, _STEP * (PHASES.index(group.phase) + 1)) if group.status != "absent" else 2.0
    kind = "named" if group.status in BAD else "waits" if group.status == "stopped" else "bar"
    strong = "strong" if group.status in BAD else ""
    high = _HIGH - 6
    return [
        label(_LEFT - 4, y + 11, group.name, room=_LEFT - 4, anchor="end", class_=strong),
        box(_LEFT, y + 1, width, high, kind, in_line([group.name, term(group.status)])),
        label(_LEFT + width + 3, y + 11, term(group.status), room=46 + WIDTH, class_=strong),
    ]


def groups_of(ranks: Sequence[RankOutcome], *, by_step: bool = False) -> list[RankGroup]:
    """Return the rows of a plot: bad ranks alone, others together where they ended alike."""
    bad = [rank for rank in ranks if rank.status in BAD]
    each = list(ranks) if len(ranks) <= _EACH else bad[:_MOST_BAD]
    found = [RankGroup(_named(rank), rank.status, rank.phase, [rank]) for rank in each]
    shown = {rank.rank for rank in each}
    others: dict[tuple[str, Phase, int | None], list[RankOutcome]] = {}
    for rank in ranks:
        if rank.rank not in shown:
            step = rank.held_up.step if by_step and rank.held_up else None
            others.setdefault((rank.status, rank.phase, step), []).append(rank)
    for (status, phase, _step), ranks_alike in sorted(
        others.items(), key=lambda pair: -len(pair[1])
    ):
        name = say_many(len(ranks_alike), "{count} rank", "{count:,} ranks")
        found.append(RankGroup(name, status, phase, ranks_alike))
    return found


def _named(outcome: RankOutcome) -> str:
    rank = say("rank {rank}", rank=outcome.rank)
    return in_line([rank, host(outcome.host)]) if outcome.host else rank


def _caption(ranks: Sequence[RankOutcome]) -> str:
    bad = [rank.rank for rank in ranks if rank.status in BAD]
    waiting = [rank.rank for rank in ranks if rank.status == "stopped"]
    words: list[str] = [
        say("Each bar ends at the last phase that the rank reached; a dashed bar waited.")
    ]
    if bad and waiting:
        words.append(_waited(ranks_in_words(waiting).at_start(), bad))
    if not any(rank.held_up for rank in ranks):
        words.append(say("The report does not say how many seconds this took."))
    return in_turn(words)


def _waited(waiting: Sentence, bad: Sequence[int]) -> str:
    if len(bad) == 1:
        return say("{waiting} waited for {bad}.", waiting=waiting, bad=ranks_in_words(bad))
    return say(
        "{waiting} waited for others. Not passed: {bad}.", waiting=waiting, bad=ranks_in_words(bad)
    )


def ranks_in_words(ranks: Sequence[int]) -> Sentence:
    """Return ranks in words."""
    if len(ranks) == 1:
        return say("rank {rank}", rank=ranks[0])
    return say("ranks {ranks}", ranks=spans(ranks))
