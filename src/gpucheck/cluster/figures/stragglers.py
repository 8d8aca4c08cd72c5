"""Ranks that make the others wait, and hosts that a limit on processor time holds up.

All ranks leave a collective at about the same time, whoever came last. So its duration accuses
nobody. What tells is the time that each rank took before it began the collective, less the time in
which its machine had no processor for it.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import msgspec

from gpucheck.cluster.diagnose.naming import blamed
from gpucheck.cluster.figures.bandwidth import Peers
from gpucheck.cluster.model import Facts, Pace, Roster, StepResult, TaskFacts, Throttling
from gpucheck.facts.claims import Severity
from gpucheck.facts.culprit_data import Late, Throttled
from gpucheck.facts.preflight import Culprit
from gpucheck.findings import rank_slow
from gpucheck.language import say

_LATE, _VERY_LATE = 0.2, 0.5
"""Seconds: a rank that is later than that in a collective makes the others wait; it is an error
where it is that much later in half of them. Healthy ranks are some milliseconds apart."""
_MOST_TIMES = 0.8
_COLLECTIVES = 5
"""Who was late in so large a share of at least so many collectives is late every time."""
_WAITED = 0.5
"""The others must have waited at least so large a part of the time that a rank was late."""
_THROTTLED, _FREE = 0.5, 0.1
"""The share of the periods of a limit on processor time in which it held a rank up, and the share
up to which the others count as free of one."""
_PERIODS = 20
"""At least so many periods, of a tenth of a second each: fewer say nothing."""
_HALF = 0.5
_NOTHING = Throttling(periods=0, throttled=0)


class _Late(msgspec.Struct, frozen=True):
    """How late a rank was: in so many collectives of all, by so many seconds in the middle one."""

    rank: int
    times: int
    collectives: int
    seconds: float


def culprits(roster: Roster, history: Iterable[StepResult]) -> list[Culprit]:
    """Return the ranks that slowed their group down in one of the steps, one entry for a node."""
    found: dict[int, Culprit] = {}
    for done in history:
        if done.step.kind in ("alone", "arms"):
            continue
        for group in done.step.groups:
            if len(group) > 1 and done.passed(group):
                paces = {rank: pace for rank in group if (pace := done.results[rank].pace)}
                for entry in _late(roster, paces):
                    found.setdefault(roster.ranks[entry.ranks[0]].node, entry)
    return list(found.values())


def _late(roster: Roster, paces: Mapping[int, Pace]) -> list[Culprit]:
    """Return the ranks that came last to nearly every collective, while the others waited."""
    collectives = min((_length(one) for one in paces.values()), default=0)
    if len(paces) < 2 or collectives < _COLLECTIVES:  # noqa: PLR2004  # a pair
        return []
    suspects = _suspects(paces, collectives)
    every = _Paces(paces, collectives) if suspects else None
    late = [one for rank in suspects if every and (one := every.late(rank))]
    by_node: dict[int, list[_Late]] = {}
    for one in late if 2 * len(late) <= len(paces) else ():
        by_node.setdefault(roster.ranks[one.rank].node, []).append(one)
    return [_entry(roster, same) for same in by_node.values()]


def _suspects(paces: Mapping[int, Pace], collectives: int) -> list[int]:
    """Return the ranks whose own time, over all, is so long that they may be late every time."""
    own = {
        rank: sum(one.own[:collectives]) - sum(one.delayed[:collectives])
        for rank, one in paces.items()
    }
    usual = sorted(own.values())[(len(own) - 1) // 2]
    least = _LATE * _MOST_TIMES * collectives
    return [rank for rank, seconds in own.items() if seconds - usual > least]


class _Paces:
    """The times of every rank in each collective, sorted once for all that may be late."""

    def __init__(self, paces: Mapping[int, Pace], collectives: int) -> None:
        self._paces, self._collectives = paces, collectives
        each, numbers = paces.values(), range(collectives)
        self._own = Peers((at, one.own[at]) for one in each for at in numbers)
        self._waited = Peers((at, one.waited[at]) for one in each for at in numbers)

    def late(self, rank: int) -> _Late | None:
        """Return how late a rank was; None unless it was late nearly every time."""
        pace = self._paces[rank]
        found = []
        for at in range(self._collectives):
            usual, _others = self._own.others(at, pace.own[at])
            waited, _others = self._waited.others(at, pace.waited[at])
            by = pace.own[at] - pace.delayed[at] - usual
            if by > _LATE and waited > _WAITED * by and pace.waited[at] < waited:
                found.append(by)
        if len(found) < _MOST_TIMES * self._collectives:
            return None
        return _Late(rank, len(found), self._collectives, median(found))


def _entry(roster: Roster, same: Sequence[_Late]) -> Culprit:
    worst = max(same, key=lambda one: one.seconds)
    return blamed(
        rank_slow.RULE.slug,
        roster,
        [one.rank for one in same],
        severity=Severity.ERROR if worst.seconds >= _VERY_LATE else Severity.WARNING,
        evidence=say(
            "made the others wait {seconds:.1f} s in each of {times} collectives ({all} were "
            "measured): it began them that much later",
            seconds=worst.seconds, times=worst.times, all=worst.collectives,
        ),
        data=Late(seconds=round(worst.seconds, 3), times=worst.times),
    )  # fmt: skip


def throttled(roster: Roster, facts: Facts) -> list[Culprit]:
    """Return the hosts that a limit on processor time held up, where it did so to few others.

    It is an error where a task gets less than half a processor.
    """
    shares = {task: _share(one) for task, one in facts.items()}
    held: dict[str, list[TaskFacts]] = {}
    for task, one in facts.items():
        if shares[task] >= _THROTTLED and (one.throttling or _NOTHING).periods >= _PERIODS:
            held.setdefault(one.host, []).append(one)
    free = {facts[task].host for task, share in shares.items() if share <= _FREE} - held.keys()
    return [_limited(roster, same) for same in held.values() if len(free) >= len(held)]


def _limited(roster: Roster, same: Sequence[TaskFacts]) -> Culprit:
    worst = max((one.throttling or _NOTHING for one in same), key=lambda one: one.throttled)
    tasks = {one.task for one in same}
    each = (worst.processors or 0.0) / len(same)
    return blamed(
        rank_slow.RULE.slug,
        roster,
        [one.rank for one in roster.ranks if one.task in tasks],
        hosts=[same[0].host],
        severity=Severity.ERROR if each < _HALF else Severity.WARNING,
        evidence=say(
            "the limit of its control group on processor time ({processors:.3g} of a processor) "
            "held it up in {throttled} of {periods} periods",
            processors=worst.processors or 0.0, throttled=worst.throttled, periods=worst.periods,
        ),
        data=Throttled(
            throttled=worst.throttled, periods=worst.periods, fixes=[rank_slow.RAISE_THE_LIMIT]
        ),
    )  # fmt: skip


def _share(facts: TaskFacts) -> float:
    seen = facts.throttling
    return seen.throttled / seen.periods if seen is not None and seen.periods else 0.0


def _length(pace: Pace) -> int:
    return min(len(pace.own), len(pace.waited), len(pace.delayed))
