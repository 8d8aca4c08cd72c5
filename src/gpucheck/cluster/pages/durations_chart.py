"""For how many seconds each rank was in its step: who waited how long, and in which phase."""

import statistics
from collections.abc import Mapping, Sequence

import msgspec

from gpucheck.cluster.pages.phases_chart import PHASES, RankGroup, groups_of, ranks_in_words
from gpucheck.cluster.pages.words import BAD
from gpucheck.facts.preflight import Phase, RankOutcome
from gpucheck.language import in_series, in_turn, say
from gpucheck.output.html.builder import Element, Node
from gpucheck.output.html.charts.svg import (
    LINE,
    WIDTH,
    Chart,
    Row,
    Scale,
    bottom_axis,
    box,
    label,
    linear,
    ticks,
)
from gpucheck.output.words import clean, headed, in_line, in_parts, term

# Places and sizes of this drawing are in its own units, of which a figure is WIDTH wide (svg.py).
_LEFT, _RIGHT, _TOP, _HIGH = 118.0, 270.0, 4.0, 20.0
_MOST = 40  # chosen: a page of bars, the groups that matter first; the table has all
_SHORTEST = 1.5  # chosen: what was short is still seen
_ONE_GROUP = "together"
"""The kind of a step in which all ranks are in one group; elsewhere a rank may wait for another."""


def chart(ranks: Sequence[RankOutcome], steps: Sequence[str]) -> Chart | None:
    """Return the plot; None if no rank was timed."""
    held = [_there(rank) for rank in ranks if rank.held_up or rank.status != "passed"]
    if not any(rank.held_up for rank in held):
        return None
    groups = groups_of(held, by_step=True)
    shown = groups[:_MOST]
    left = len(groups) - len(shown)
    bottom = _TOP + (len(shown) + bool(left)) * _HIGH + 2
    axis = ticks(0, max(map(_in_all, held)) or 1.0)
    scale = linear(axis[0], axis[-1], _LEFT, _RIGHT)
    drawn: list[Node] = []
    for at, group in enumerate(shown):
        drawn += _bar(group, _TOP + at * _HIGH, scale)
    if left:
        drawn.append(label(_LEFT, bottom - 8, say("and {count:,} more", count=left), class_="dim"))
    drawn += bottom_axis(axis, scale, _LEFT, _RIGHT, bottom, say("Seconds"))
    heads = (say("Rank"), say("State"), say("Time in each phase"))
    return Chart(
        key="durations", title=say("How long each rank took"), caption=_caption(held, steps),
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


def _bar(group: RankGroup, y: float, scale: Scale) -> list[Element]:
    """Return a row: the time before the last phase, the time in it, and what that was."""
    strong = "strong" if group.status in BAD else ""
    name = label(_LEFT - 4, y + 11, group.name, room=_LEFT - 4, anchor="end", class_=strong)
    timed = _timed(group)
    if not timed:
        unknown = say("seconds unknown")
        return [name, label(_LEFT + 3, y + 11, unknown, room=_RIGHT - _LEFT, class_="dim")]
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
        box(_LEFT, y + 1, begin - _LEFT, _HIGH - 6, "bar", whole),
        box(begin, y + 1, end - begin, _HIGH - 6, kind, whole),
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


def _caption(held: Sequence[RankOutcome], steps: Sequence[str]) -> str:
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
