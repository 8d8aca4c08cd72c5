"""Which GPU is slow, compared with similar ones in the job, or with what it reached before.

A collective's own time is never used, because every rank in it waits for the slowest: all leave it
at about the same time, whoever came last. One measurement makes a suspect; a culprit was slow every
time, in at least two measurements.

What tells of a rank that makes the others wait is the time that it took before it began the
collective, less the time in which its machine had no processor for it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median

import msgspec

from gpucheck.cluster.diagnose.naming import blamed
from gpucheck.cluster.figures.bandwidth import Peers
from gpucheck.cluster.figures.baseline import Baseline
from gpucheck.cluster.model import Facts, Pace, Rank, Roster, StepResult, TaskFacts, Throttling
from gpucheck.facts.claims import Severity
from gpucheck.facts.preflight import Culprit, Late, SlowGpu, Throttled
from gpucheck.findings.gpu_speed import GPU_SLOW
from gpucheck.findings.ranks import RAISE_THE_LIMIT, RANK_SLOW
from gpucheck.language import listed, say, say_many

_WARNING_SHARE, _ERROR_SHARE = 0.8, 0.5
"""Below this share of what it is compared with a GPU is slow; see the page of gpu-slow."""
CPU_SHARE = 0.4
"""The same for CPU processes, which share their cores with everything else on the machine."""
_MOST_REPEATED = 64
"""At most this many ranks measure again: suspects and some similar ranks."""
_TIMES = 2
"""Measurements in which a culprit was slow: one may have met another process."""
_PINNED = "pinned"
_SECONDS = " s"
_LATE, _VERY_LATE = 0.2, 0.5
"""Seconds: a rank that is later than that in a collective makes the others wait; it is an error
where it is that much later in half of them. Healthy ranks are some milliseconds apart."""
# Chosen: a collective or two may find another process in the way.
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
"""Processors of a rank; with less, its busy thread cannot run half of the time: an error."""
_NOTHING = Throttling(periods=0, throttled=0)


class RateReading(msgspec.Struct, frozen=True, kw_only=True):
    """One rate of one rank in one step, and what it is compared with."""

    rank: int
    rate: str
    value: float
    usual: float
    peers: int = 0
    """How many others ``usual`` is the median of; 0 for the GPU's own baseline."""
    of: str = ""
    """What the others are, or the date of the baseline."""
    model: str | None = None
    warning: float = _WARNING_SHARE
    error: float = _ERROR_SHARE

    @property
    def is_of_baseline(self) -> bool:
        """Whether it is compared with what this GPU reached before."""
        return self.peers == 0

    @property
    def against(self) -> str:
        """What it is compared with, in words."""
        if self.is_of_baseline:
            if not self.of:
                return say("the baseline of this GPU")
            return say("the baseline of this GPU of {day}", day=self.of)
        words = say("the other one")
        if self.peers > 1:
            words = say("the median of {count} {others}", count=self.peers, others=self.of)
        return say("{words} ({model})", words=words, model=self.model) if self.model else words

    @property
    def share(self) -> float:
        """The rate as a share of the usual one."""
        return self.value / self.usual

    @property
    def severity(self) -> Severity | None:
        """How bad the share is; None when it is fine."""
        if self.share < self.error:
            return Severity.ERROR
        return Severity.WARNING if self.share < self.warning else None


def readings(
    roster: Roster, history: Iterable[StepResult], baseline: Baseline | None = None
) -> list[RateReading]:
    """Return every rate that can be compared, in the order in which they were measured.

    With at least two similar ranks in its step, a rank is compared with their median; with one,
    with that one; with none, with its own baseline. Where peers show nothing, the baseline still
    may. Ranks that share a GPU slow each other down, so they are no measure.
    """
    found = []
    crowded = {rank for ranks in roster.sharing() for rank in ranks}
    for step in _alone(history):
        measured = {rank: rates for rank, rates in step.items() if rank not in crowded}
        peers = Peers(
            (key, value)
            for rank, rates in measured.items()
            for name, value in rates.items()
            for key in _keys(roster.ranks[rank], name)
        )
        for rank, rates in sorted(measured.items()):
            member = roster.ranks[rank]
            for name, value in rates.items():
                found += _of_peers(member, name, value, peers)
                found += _of_baseline(member, name, value, baseline)
    return found


def suspects(
    roster: Roster, history: Sequence[StepResult], baseline: Baseline | None = None
) -> tuple[int, ...]:
    """Return the ranks that were slow in their only measurement: they must measure again.

    A rank that was asked twice is no suspect any more, whatever came of it.
    """
    asked = Counter(
        rank for done in history if done.step.kind == "alone" for (rank, *_) in done.step.groups
    )
    slow = {
        same[0].rank
        for same in _series(readings(roster, history, baseline)).values()
        if same[0].severity is not None
    }
    return tuple(sorted(rank for rank in slow if asked[rank] < _TIMES and rank in roster.living))


def to_repeat(
    roster: Roster, history: Sequence[StepResult], baseline: Baseline | None = None
) -> tuple[int, ...]:
    """Return the ranks of the step that confirms or clears the suspects; () without suspects.

    Similar ranks measure again at the same time, those of the same node first: a rank that measured
    alone on an idle node would look better than it is.
    """
    wanted = suspects(roster, history, baseline)
    if not wanted:
        return ()
    measured = {rank for step in _alone(history) for rank in step}
    alive = [rank for rank in roster.living if rank in measured]
    nodes = {roster.ranks[rank].node for rank in wanted}
    models = {_model(roster.ranks[rank]) for rank in wanted}
    like = [rank for rank in alive if _model(roster.ranks[rank]) in models]
    near = [rank for rank in like if roster.ranks[rank].node in nodes]
    far = [rank for rank in like if roster.ranks[rank].node not in nodes]
    order = dict.fromkeys((*(rank for rank in wanted if rank in alive), *near, *far))
    room = max(_MOST_REPEATED, len(wanted))
    return tuple(sorted(list(order)[:room]))


def culprits(
    roster: Roster, history: Sequence[StepResult], baseline: Baseline | None = None
) -> list[Culprit]:
    """Return the ranks that were slow every time, the slowest first."""
    worst: dict[int, list[RateReading]] = {}
    for same in _series(readings(roster, history, baseline)).values():
        if len(same) < _TIMES or any(reading.severity is None for reading in same):
            continue
        rank = same[0].rank
        if rank not in worst or _best(same).share < _best(worst[rank]).share:
            worst[rank] = same
    slow = sorted(worst.values(), key=lambda same: _best(same).share)
    return [_culprit(roster, same) for same in slow]


def _culprit(roster: Roster, same: list[RateReading]) -> Culprit:
    best = _best(same)
    values = listed([f"{reading.value:.3g}" for reading in same])
    name, _blank, unit = best.rate.rpartition(" ")
    return blamed(
        GPU_SLOW.slug,
        roster,
        [best.rank],
        severity=best.severity or Severity.WARNING,
        evidence=say(
            "{rate}: {values} {unit} in {count} measurements, {share:.0%} of {usual:.3g} {unit}, "
            "{reference}",
            rate=name, values=values, unit=unit, count=len(same), share=best.share,
            usual=best.usual, reference=best.against,
        ),
        data=SlowGpu(
            rate=best.rate, values=[reading.value for reading in same],
            usual=best.usual, ratio=best.share,
        ),
    )  # fmt: skip


def _best(same: list[RateReading]) -> RateReading:
    """Return the measurement in which the rank looks best: it is at least that slow."""
    return max(same, key=lambda reading: reading.share)


def _series(found: Iterable[RateReading]) -> dict[tuple[int, str, bool], list[RateReading]]:
    """Return the readings of each rank, rate and kind of comparison, one for each step."""
    series: dict[tuple[int, str, bool], list[RateReading]] = {}
    for reading in found:
        series.setdefault((reading.rank, reading.rate, reading.is_of_baseline), []).append(reading)
    return series


def _alone(history: Iterable[StepResult]) -> Iterator[Mapping[int, dict[str, float]]]:
    """Yield the rates of the ranks that passed alone, step by step; more is always better."""
    for done in history:
        if done.step.kind == "alone":
            yield {
                rank: rates
                for rank, result in done.results.items()
                if result.passed and (rates := _rates(result.measurements))
            }


def _rates(measurements: Mapping[str, float]) -> dict[str, float]:
    return {
        name: value
        for name, value in measurements.items()
        if 0 < value < float("inf") and not name.endswith(_SECONDS)
    }


Key = tuple[str, str, int | None]


def _keys(member: Rank, name: str) -> tuple[Key, ...]:
    """Return what similar ranks have in common: the model, and for some rates the slot."""
    model = _model(member)
    if name.startswith(_PINNED):
        return (model, name, None), (model, name, member.local)
    return ((model, name, None),)


def _of_peers(member: Rank, name: str, value: float, peers: Peers[Key]) -> list[RateReading]:
    """Compare with the median of the others of its model in the same step.

    The speed of pinned copies also depends on the slot and the socket, so these are compared with
    the same slot of other nodes. Where fewer than two of those exist, only half of the usual share
    is an error or a warning.
    """
    of_model, *of_slot = _keys(member, name)
    usual, count = peers.others(of_model, value)
    words = say("others of its model")
    warning, error = _WARNING_SHARE, _ERROR_SHARE
    for key in of_slot:
        in_slot, in_slots = peers.others(key, value)
        if in_slots > 1:
            usual, count, words = in_slot, in_slots, say("others in the same slot")
        else:
            warning, error = _ERROR_SHARE, _ERROR_SHARE / 2
    if not count:
        return []
    if not member.device.startswith("cuda"):
        warning = error = CPU_SHARE
        words = say("other processes")
    return [
        RateReading(
            rank=member.rank, rate=name, value=value, usual=usual, peers=count, of=words,
            model=member.model, warning=warning, error=error,
        )
    ]  # fmt: skip


def _of_baseline(
    member: Rank, name: str, value: float, baseline: Baseline | None
) -> list[RateReading]:
    saved = None if baseline is None else baseline.of_gpu(member.uuid, member.model)
    usual = None if saved is None else saved.rates.get(name)
    if saved is None or usual is None or not 0 < usual < float("inf"):
        return []
    warning, error = _WARNING_SHARE, _ERROR_SHARE
    if name.startswith(_PINNED):
        warning, error = _ERROR_SHARE, _ERROR_SHARE / 2
    return [
        RateReading(
            rank=member.rank, rate=name, value=value, usual=usual,
            of=saved.saved,
            warning=warning, error=error,
        )
    ]  # fmt: skip


def _model(rank: Rank) -> str:
    return rank.model or ("" if rank.device.startswith("cuda") else "cpu")


def spread(roster: Roster, history: Sequence[StepResult]) -> str:
    """Return in words how similar the ranks are, for a report without a culprit; "" if unknown."""
    found = readings(roster, history)
    if not found:
        return ""
    return say_many(
        len({reading.rank for reading in found}),
        "{count} rank at {share:.0%} or more of the median of similar ranks",
        "{count} ranks at {share:.0%} or more of the median of similar ranks",
        share=min(reading.share for reading in found),
    )


class _Late(msgspec.Struct, frozen=True):
    """How late a rank was: in so many collectives of all, by so many seconds in the middle one."""

    rank: int
    times: int
    collectives: int
    seconds: float


def slowed(roster: Roster, history: Iterable[StepResult]) -> list[Culprit]:
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
    collectives = min((_length(pace) for pace in paces.values()), default=0)
    if len(paces) < 2 or collectives < _COLLECTIVES:  # noqa: PLR2004  # a pair
        return []
    suspects = _suspects(paces, collectives)
    every = _Paces(paces, collectives) if suspects else None
    late = [straggler for rank in suspects if every and (straggler := every.late(rank))]
    by_node: dict[int, list[_Late]] = {}
    for late_rank in late if 2 * len(late) <= len(paces) else ():
        by_node.setdefault(roster.ranks[late_rank.rank].node, []).append(late_rank)
    return [_entry(roster, same) for same in by_node.values()]


def _suspects(paces: Mapping[int, Pace], collectives: int) -> list[int]:
    """Return the ranks whose own time, over all, is so long that they may be late every time."""
    own = {
        rank: sum(pace.own[:collectives]) - sum(pace.delayed[:collectives])
        for rank, pace in paces.items()
    }
    usual = sorted(own.values())[(len(own) - 1) // 2]
    least = _LATE * _MOST_TIMES * collectives
    return [rank for rank, seconds in own.items() if seconds - usual > least]


class _Paces:
    """The times of every rank in each collective, sorted once for all that may be late."""

    def __init__(self, paces: Mapping[int, Pace], collectives: int) -> None:
        self._paces, self._collectives = paces, collectives
        each, numbers = paces.values(), range(collectives)
        self._own = Peers((at, pace.own[at]) for pace in each for at in numbers)
        self._waited = Peers((at, pace.waited[at]) for pace in each for at in numbers)

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
    worst = max(same, key=lambda late_rank: late_rank.seconds)
    return blamed(
        RANK_SLOW.slug,
        roster,
        [late_rank.rank for late_rank in same],
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
    shares = {task: _share(task_facts) for task, task_facts in facts.items()}
    held: dict[str, list[TaskFacts]] = {}
    for task, task_facts in facts.items():
        if shares[task] >= _THROTTLED and (task_facts.throttling or _NOTHING).periods >= _PERIODS:
            held.setdefault(task_facts.host, []).append(task_facts)
    free = {facts[task].host for task, share in shares.items() if share <= _FREE} - held.keys()
    return [_limited(roster, same) for same in held.values() if len(free) >= len(held)]


def _limited(roster: Roster, same: Sequence[TaskFacts]) -> Culprit:
    worst = max(
        (task_facts.throttling or _NOTHING for task_facts in same),
        key=lambda throttling: throttling.throttled,
    )
    tasks = {task_facts.task for task_facts in same}
    each = (worst.processors or 0.0) / len(same)
    return blamed(
        RANK_SLOW.slug,
        roster,
        [member.rank for member in roster.ranks if member.task in tasks],
        hosts=[same[0].host],
        severity=Severity.ERROR if each < _HALF else Severity.WARNING,
        evidence=say(
            "the limit of its control group on processor time ({processors:.3g} of a processor) "
            "held it up in {throttled} of {periods} periods",
            processors=worst.processors or 0.0, throttled=worst.throttled, periods=worst.periods,
        ),
        data=Throttled(
            throttled=worst.throttled, periods=worst.periods, fixes=[RAISE_THE_LIMIT]
        ),
    )  # fmt: skip


def _share(facts: TaskFacts) -> float:
    seen = facts.throttling
    return seen.throttled / seen.periods if seen is not None and seen.periods else 0.0


def _length(pace: Pace) -> int:
    return min(len(pace.own), len(pace.waited), len(pace.delayed))
