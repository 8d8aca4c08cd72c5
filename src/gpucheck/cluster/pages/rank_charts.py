"""The plots of the ranks: how far each came, phase by phase, and how long each was there."""

import statistics
import typing
from collections.abc import Mapping, Sequence

import msgspec

from gpucheck.cluster.pages.words import BAD, host, spans
from gpucheck.facts.preflight import Phase, RankOutcome
from gpucheck.language import Sentence, in_series, in_turn, say, say_many
from gpucheck.output.html.charts.svg import (
    LINE,
    WIDTH,
    Chart,
    Row,
    Scale,
    bottom_axis,
    box,
    label,
    line,
    linear,
    ticks,
)
from gpucheck.output.html.elements import Element, Node, el
from gpucheck.output.words import clean, headed, in_line, in_parts, term

# How far each rank came, phase by phase: who waited, and for whom.

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


def phases_chart(ranks: Sequence[RankOutcome]) -> Chart | None:
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


# For how many seconds each rank was in its step: who waited how long, and in which phase.

# Places and sizes of this drawing are in its own units, of which a figure is WIDTH wide (svg.py).
_DURATIONS_LEFT, _RIGHT, _DURATIONS_TOP, _DURATIONS_HIGH = 118.0, 270.0, 4.0, 20.0
_MOST = 40  # chosen: a page of bars, the groups that matter first; the table has all
_SHORTEST = 1.5  # chosen: what was short is still seen
_ONE_GROUP = "together"
"""The kind of a step in which all ranks are in one group; elsewhere a rank may wait for another."""


def durations_chart(ranks: Sequence[RankOutcome], steps: Sequence[str]) -> Chart | None:
    """Return the plot; None if no rank was timed."""
    held = [_there(rank) for rank in ranks if rank.held_up or rank.status != "passed"]
    if not any(rank.held_up for rank in held):
        return None
    groups = groups_of(held, by_step=True)
    shown = groups[:_MOST]
    left = len(groups) - len(shown)
    bottom = _DURATIONS_TOP + (len(shown) + bool(left)) * _DURATIONS_HIGH + 2
    axis = ticks(0, max(map(_in_all, held)) or 1.0)
    scale = linear(axis[0], axis[-1], _DURATIONS_LEFT, _RIGHT)
    drawn: list[Node] = []
    for at, group in enumerate(shown):
        drawn += _durations_bar(group, _DURATIONS_TOP + at * _DURATIONS_HIGH, scale)
    if left:
        drawn.append(
            label(_DURATIONS_LEFT, bottom - 8, say("and {count:,} more", count=left), class_="dim")
        )
    drawn += bottom_axis(axis, scale, _DURATIONS_LEFT, _RIGHT, bottom, say("Seconds"))
    heads = (say("Rank"), say("State"), say("Time in each phase"))
    return Chart(
        key="durations", title=say("How long each rank took"), caption=_times_caption(held, steps),
        drawn=tuple(drawn), height=bottom + 2 * LINE + 4, heads=heads,
        rows=[_row(rank_group, steps) for rank_group in groups],
    )  # fmt: skip


def _there(rank: RankOutcome) -> RankOutcome:
    """Return how a rank ended where it was held up: it may have passed later."""
    if rank.held_up is None:
        return rank
    status = rank.status if rank.status in BAD else "stopped"
    return msgspec.structs.replace(rank, status=status, phase=rank.held_up.phase)


def _seconds(rank: RankOutcome) -> Mapping[Phase, float]:
    return rank.held_up.phase_seconds if rank.held_up else {}


def _in_all(rank: RankOutcome) -> float:
    return sum(_seconds(rank).values())


def _in_phase(rank: RankOutcome) -> float:
    return _seconds(rank).get(rank.phase, 0.0)


def _timed(group: RankGroup) -> list[RankOutcome]:
    return [rank for rank in group.ranks if rank.held_up]


def _durations_bar(group: RankGroup, y: float, scale: Scale) -> list[Element]:
    """Return a row: the time before the last phase, the time in it, and what that was."""
    strong = "strong" if group.status in BAD else ""
    name = label(
        _DURATIONS_LEFT - 4,
        y + 11,
        group.name,
        room=_DURATIONS_LEFT - 4,
        anchor="end",
        class_=strong,
    )
    timed = _timed(group)
    if not timed:
        unknown = say("seconds unknown")
        return [
            name,
            label(
                _DURATIONS_LEFT + 3, y + 11, unknown, room=_RIGHT - _DURATIONS_LEFT, class_="dim"
            ),
        ]
    before = statistics.median(_in_all(rank) - _in_phase(rank) for rank in timed)
    within = statistics.median(map(_in_phase, timed))
    begin, end = scale(before), scale(before + within)
    end = max(end, begin + _SHORTEST)
    kind = "named" if group.status in BAD else "waits" if group.status == "stopped" else "bar"
    seconds = _range([_in_phase(rank) for rank in timed])
    phase = say("{phase} {seconds} s", phase=group.phase, seconds=seconds)
    whole = in_line([group.name, term(group.status), phase])
    return [
        name,
        box(_DURATIONS_LEFT, y + 1, begin - _DURATIONS_LEFT, _DURATIONS_HIGH - 6, "bar", whole),
        box(begin, y + 1, end - begin, _DURATIONS_HIGH - 6, kind, whole),
        label(end + 3, y + 11, phase, room=WIDTH - end - 3, class_=strong),
    ]


def _range(values: Sequence[float]) -> str:
    least, most = f"{min(values):,.1f}", f"{max(values):,.1f}"
    return least if least == most else say("{least} to {most}", least=least, most=most)


def _row(group: RankGroup, steps: Sequence[str]) -> Row:
    timed = _timed(group)
    phases = [
        say(
            "{phase} {seconds} s",
            phase=phase, seconds=_range([_seconds(rank).get(phase, 0.0) for rank in timed]),
        )
        for phase in PHASES
        if any(phase in _seconds(rank) for rank in timed)
    ]  # fmt: skip
    if not timed:
        return group.name, term(group.status), say("unknown")
    whole = say("{seconds} s in all", seconds=_range([_in_all(rank) for rank in timed]))
    step, each = _step(group, steps), in_series(phases)
    times = in_parts([headed(step, each) if step else each, whole])
    return group.name, term(group.status), times


def _step(group: RankGroup, steps: Sequence[str]) -> str:
    held_up = group.ranks[0].held_up
    if held_up is None or held_up.step >= len(steps):
        return ""
    return say("step {number} ({kind})", number=held_up.step + 1, kind=clean(steps[held_up.step]))


def _times_caption(held: Sequence[RankOutcome], steps: Sequence[str]) -> str:
    """Return what the plot shows, who waited for how long, and of whom nothing is known."""
    words: list[str] = [
        say(
            "Each bar begins with the first step that the rank did not pass. Its last part is the "
            "time in the phase that is named beside it; a rank with a dashed part waited."
        )
    ]
    waiting = [rank for rank in held if rank.status == "stopped" and rank.held_up]
    if waiting:
        who = ranks_in_words([rank.rank for rank in waiting]).at_start()
        seconds = _range([_in_phase(rank) for rank in waiting])
        awaited = _awaited(held, steps)
        words.append(
            say(
                "{waiting} waited {seconds} s for {bad}.",
                waiting=who, seconds=seconds, bad=ranks_in_words([awaited]),
            )
            if awaited is not None
            else say("{waiting} waited {seconds} s.", waiting=who, seconds=seconds)
        )  # fmt: skip
    unknown = [rank.rank for rank in held if not rank.held_up]
    if unknown:
        words.append(say("No seconds are known for {ranks}.", ranks=ranks_in_words(unknown)))
    return in_turn(words)


def _awaited(held: Sequence[RankOutcome], steps: Sequence[str]) -> int | None:
    """Return the rank that all others waited for; None unless one step of one group says so."""
    bad = [rank.rank for rank in held if rank.status in BAD]
    places = {rank.held_up.step for rank in held if rank.held_up}
    together = all(steps[at] == _ONE_GROUP for at in places if at < len(steps))
    is_certain = len(bad) == len(places) == 1 and together and max(places) < len(steps)
    return bad[0] if is_certain else None
