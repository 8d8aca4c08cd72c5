"""Which link is slow: groups of ranks against similar groups, baselines and published figures.

As with GPUs, one measurement makes a suspect, and a culprit was slow every time.

A collective over all ranks is as slow as its slowest link, and says nothing about where that is. So
in a job that works every node is measured with a neighbour, all pairs at once. Where a pair is
slower than the others, its nodes are measured with partners that are not. A job of two nodes is one
pair: there is nothing to compare it with.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

import msgspec

from gpucheck.cluster.diagnose import rounds
from gpucheck.cluster.diagnose.naming import between, blamed, in_ranks
from gpucheck.cluster.diagnose.rounds import Pair, pair
from gpucheck.cluster.figures.bandwidth import Expected, Groups, Timed, of_table, timed
from gpucheck.cluster.figures.baseline import Baseline
from gpucheck.cluster.figures.slow import CPU_SHARE
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.model import Backend, Facts, Roster, Step, StepResult
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Bandwidth, Culprit, PairBandwidth, SlowLink
from gpucheck.findings.links import LINK_SLOW
from gpucheck.language import listed, say, say_many
from gpucheck.tables.nccl import BusBandwidths

_TIMES = 2
"""Measurements in which a culprit was slow, as for GPUs: one may have met other traffic."""
_SMALLEST = 1 << 20
"""Bytes: the time of a smaller message is mostly latency, and no bandwidth."""
_ENDS = 2
"""A rank that has no processor may hold the other end up as well, one after the other."""
_PAIR, _MOST_PAIRS = 2, 2016
"""Pairs in a report: all pairs of 64 ends."""
_DELAY = 0.02
"""Seconds by which processes on the CPU are late because others run on the machine."""
Group = tuple[int, ...]
Unit = tuple[bool, int]
"""A rank within a node, or a node (True)."""
_FEWEST = 3
"""Nodes, and pairs: of two nobody knows which is the odd one."""
_ROUNDS = 4
"""Steps at most that look for partners of suspects."""
_PARTNERS = 2
"""Good partners of a suspect: slow with two of them, it is no pair that is slow."""
_SIZES: Mapping[Backend, tuple[int, int]] = {"gloo": (1 << 20, 1 << 22), "nccl": (1 << 24, 1 << 27)}
"""Bytes of an all-reduce where the network is slow, and otherwise."""
_IS_SLOW = 0.5
"""Seconds of an all-reduce over the whole job from which on the smaller size is used."""
_TIMES_LONGER = 2.0
"""Two nodes may take so many times as long as the whole job did, for the same number of bytes."""


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What groups are compared with."""

    roster: Roster
    facts: Facts
    table: BusBandwidths
    backend: Backend
    baseline: Baseline | None = None
    late: frozenset[int] = frozenset()
    """Ranks that make the others wait: what their groups measured says nothing about links."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A measurement of a group, and what it is compared with."""

    timed: Timed
    expected: Expected

    @property
    def share(self) -> float:
        """The bandwidth as a share of the expected one."""
        return self.timed.busbw / self.expected.busbw

    @property
    def severity(self) -> Severity | None:
        """How bad the share is; None when it is fine, or says nothing about the link.

        Time in which a rank had no processor is no time of the link.
        """
        working = 1 - min(1.0, _ENDS * self.timed.busy)
        if self.timed.seconds * (working - self.share) < self.expected.most_delay:
            return None
        if self.share < self.expected.is_error_below * working:
            return Severity.ERROR
        return Severity.WARNING if self.share < self.expected.least * working else None


def expectation(measurement: Timed, groups: Groups, known: Known) -> Expected | None:
    """Return what a bandwidth is compared with: similar groups, its baseline, or the table."""
    peers = groups.others(measurement)
    if peers is not None:
        return peers if known.backend == "nccl" else _of_cpus(peers)
    return _of_baseline(measurement, known) or of_table(
        measurement, known.roster, known.facts, known.table, backend=known.backend
    )


def _of_cpus(expected: Expected) -> Expected:
    return msgspec.structs.replace(
        expected, least=CPU_SHARE, is_error_below=CPU_SHARE, most_delay=_DELAY
    )


def _is_slower(measurement: Timed, other: Timed) -> bool:
    """Whether a group is so much slower than another one that a third has to decide."""
    expected = _of_cpus(Expected(busbw=other.busbw, words=""))
    return Judged(timed=measurement, expected=expected).severity is not None


def report(
    history: Sequence[StepResult], known: Known, every: Sequence[Timed] | None = None
) -> list[Bandwidth]:
    """Return the bandwidths for the report: the slowest and the fastest of each kind of group.

    So a report stays short however many pairs there were. ``every`` is what ``timed`` says of the
    history, if that is known already.
    """
    every = timed(known.roster, history) if every is None else every
    ends: dict[tuple[str, int, int], list[Timed]] = {}
    for measurement in sorted(every, key=lambda each: each.busbw):
        ends.setdefault(measurement.likeness, []).append(measurement)
    chosen = [
        measurement
        for same in ends.values()
        for measurement in (same[:1] if len(same) == 1 else [same[0], same[-1]])
    ]
    groups = Groups(every)
    return [_shown(measurement, expectation(measurement, groups, known)) for measurement in chosen]


def pair_bandwidths(every: Sequence[Timed], roster: Roster) -> list[PairBandwidth]:
    """Return the last measurement of every two ranks, or whole nodes, that were a group alone."""
    whole = {node: len(ranks) for node, ranks in roster.nodes().items()}
    last: dict[tuple[bool, tuple[int, ...]], Timed] = {}
    for measurement in every:
        nodes = tuple(sorted({roster.ranks[rank].node for rank in measurement.group}))
        if len(measurement.group) == _PAIR:
            last[False, tuple(sorted(measurement.group))] = measurement
        elif len(nodes) == _PAIR and len(measurement.group) == sum(
            whole.get(node, 0) for node in nodes
        ):
            last[True, nodes] = measurement
    found = [
        PairBandwidth(
            ends=(ends[0], ends[1]),
            of="nodes" if of_nodes else "ranks",
            size=measurement.size,
            busbw=measurement.busbw,
        )
        for (of_nodes, ends), measurement in last.items()
    ]
    return sorted(found, key=lambda bandwidth: bandwidth.busbw)[:_MOST_PAIRS]


def suspects(history: Sequence[StepResult], known: Known) -> tuple[Group, ...]:
    """Return the groups that were slow in their only measurement: they must measure again.

    Groups of a unit that is slow with several partners need not.
    """
    asked = Counter(
        frozenset(group)
        for done in history
        if done.step.kind not in ("alone", "arms")
        for group in done.step.groups
    )
    series = _series(timed(known.roster, history), known)
    explained = {group for groups in _units_to_blame(known, series).values() for group in groups}
    return tuple(
        group
        for group, same in series.items()
        if same[0].severity is not None
        and asked[frozenset(group)] < _TIMES
        and group not in explained
    )


def _slow_once(history: Sequence[StepResult], known: Known) -> tuple[Group, ...]:
    """Return the groups that were slow in every measurement so far."""
    series = _series(timed(known.roster, history), known)
    return tuple(group for group, same in series.items() if _is_slow(same))


def culprits(
    history: Sequence[StepResult], known: Known, every: Sequence[Timed] | None = None
) -> list[Culprit]:
    """Return who was slow every time, in at least two measurements.

    A rank or a node that is slow with every partner is named if two of them are well with others;
    its partners are not. Any other group must have been slow twice itself. ``every`` is what
    ``timed`` says of the history, if that is known already.
    """
    series = _series(timed(known.roster, history) if every is None else every, known)
    blame = _units_to_blame(known, series)
    found = [
        (min(_share(series[group]) for group in groups), _of_unit(known, unit, groups, series))
        for unit, groups in blame.items()
    ]
    explained = {group for groups in blame.values() for group in groups}
    found += [
        (_share(same), _culprit(known, group, same))
        for group, same in series.items()
        if group not in explained and len(same) >= _TIMES and _is_slow(same)
    ]
    return [culprit for _share, culprit in sorted(found, key=itemgetter(0))]


def _share(same: Sequence[Judged]) -> float:
    """Return the share of the measurement in which a group looks best."""
    return max(judged.share for judged in same)


def _is_slow(same: Sequence[Judged]) -> bool:
    return all(judged.severity is not None for judged in same)


def _series(every: Sequence[Timed], known: Known) -> dict[Group, list[Judged]]:
    """Return the measurements of each group that can be judged, in order."""
    groups = Groups(every)
    series: dict[Group, list[Judged]] = {}
    for measurement in every:
        if measurement.size < _SMALLEST or not known.late.isdisjoint(measurement.group):
            continue
        expected = expectation(measurement, groups, known)
        if expected is not None:
            key = tuple(sorted(measurement.group))
            series.setdefault(key, []).append(Judged(timed=measurement, expected=expected))
    return series


def _of_baseline(measurement: Timed, known: Known) -> Expected | None:
    if known.baseline is None or measurement.nodes != 1:
        return None
    uuids = [known.roster.ranks[rank].uuid for rank in measurement.group]
    saved = known.baseline.of_group(uuids, measurement.size)
    if saved is None:
        return None
    words = say("the baseline of these GPUs")
    if saved.saved:
        words = say("the baseline of these GPUs of {day}", day=saved.saved)
    return Expected(busbw=saved.busbw, words=words)


def _culprit(known: Known, group: Group, same: list[Judged]) -> Culprit:
    best = max(same, key=lambda judged: judged.share)
    measurement = best.timed
    values = listed([f"{each.timed.busbw:.3g}" for each in same])
    entry = blamed(
        LINK_SLOW.slug,
        known.roster,
        group,
        severity=best.severity or Severity.WARNING,
        confidence=Confidence.LIKELY if measurement.nodes == 1 else Confidence.POSSIBLE,
        evidence=say_many(
            len(same),
            "an all-reduce of {size} over {ranks} reaches a bus bandwidth of {values} GB/s in "
            "{count} measurement, {share:.0%} of {usual:.3g} GB/s, {reference}",
            "an all-reduce of {size} over {ranks} reaches a bus bandwidth of {values} GB/s in "
            "{count} measurements, {share:.0%} of {usual:.3g} GB/s, {reference}",
            size=_bytes(measurement.size), ranks=in_ranks(len(group)), values=values,
            share=best.share, usual=best.expected.busbw, reference=best.expected.words,
        ),
        data=SlowLink(
            ratio=best.share, busbw=[each.timed.busbw for each in same],
            usual=best.expected.busbw, size=measurement.size,
        ),
    )  # fmt: skip
    pair = len(group) == 2 or measurement.nodes == 2  # noqa: PLR2004  # the two ends of a link
    return between(entry, known.roster) if pair else entry


def _units_to_blame(known: Known, series: Mapping[Group, list[Judged]]) -> dict[Unit, list[Group]]:
    """Return the slow groups of each unit that is slow with every partner.

    Two of its partners at least must be well with others.
    """
    slow: dict[Unit, list[Group]] = {}
    well: set[Unit] = set()
    units = {group: _units(known.roster, group) for group in series}
    for group, same in series.items():
        if not _is_slow(same):
            well |= units[group]
            continue
        for unit in units[group]:
            slow.setdefault(unit, []).append(group)
    return {
        unit: groups
        for unit, groups in slow.items()
        if unit not in well
        and len(groups) >= _TIMES
        and len(_partners(unit, groups, units) & well) >= _TIMES
    }


def _partners(
    unit: Unit, groups: Iterable[Group], units: Mapping[Group, frozenset[Unit]]
) -> frozenset[Unit]:
    return frozenset().union(*(units[group] for group in groups)) - {unit}


def _of_unit(
    known: Known,
    unit: Unit,
    groups: Sequence[Group],
    series: Mapping[Group, list[Judged]],
) -> Culprit:
    is_node, number = unit
    ranks = [
        rank.rank
        for rank in known.roster.ranks
        if (rank.node if is_node else rank.rank) == number
        and any(rank.rank in group for group in groups)
    ]
    worst = min(groups, key=lambda group: _share(series[group]))
    first = _culprit(known, worst, series[worst])
    units = {group: _units(known.roster, group) for group in series}
    well = frozenset().union(*(units[unit] for unit, same in series.items() if not _is_slow(same)))
    partners = _partners(unit, groups, units) & well
    return blamed(
        LINK_SLOW.slug,
        known.roster,
        ranks,
        severity=first.severity,
        confidence=Confidence.LIKELY,
        evidence=say_many(
            len(partners),
            "slow with {count} partner that is not slow with others: {said}",
            "slow with {count} partners that are not slow with others: {said}",
            said=first.evidence,
        ),
        data=first.data,
    )


def _units(roster: Roster, group: Group) -> frozenset[Unit]:
    """Return what a group joins: ranks inside a node, nodes across."""
    nodes = frozenset((True, roster.ranks[rank].node) for rank in group)
    return nodes if len(nodes) > 1 else frozenset((False, rank) for rank in group)


def _shown(measurement: Timed, against: Expected | None) -> Bandwidth:
    return Bandwidth(
        collective="all-reduce",
        ranks=len(measurement.group),
        nodes=measurement.nodes,
        size=measurement.size,
        seconds=measurement.seconds,
        busbw=measurement.busbw,
        compared_with="" if against is None else against.words,
        share=None if against is None else measurement.busbw / against.busbw,
    )


def _bytes(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size} B"


def next_step(history: Sequence[StepResult], known: Known, plan: JobPlan) -> Step | None:
    """Return the next step; None when all pairs are alike, or the suspects have met enough others.

    Only a job in which everything passed is measured: elsewhere the fault comes first.
    """
    nodes = known.roster.nodes()
    whole = next(
        (
            measurement
            for measurement in timed(known.roster, history)
            if measurement.nodes == len(nodes)
        ),
        None,
    )
    round_ = _Round(history, known)
    if whole is None or len(round_.nodes) < _FEWEST or not all(map(_passed, history)):
        return None
    pairs = round_.unmet()
    is_first = bool(pairs)
    pairs = pairs or round_.of_suspects()
    if not pairs:
        return None
    small, large = _SIZES[known.backend]
    size = small if whole.seconds > _IS_SLOW else large
    seconds = _TIMES_LONGER * whole.seconds * size / whole.size
    return Step(
        number=len(history),
        kind="links",
        groups=tuple(tuple(sorted(nodes[first] + nodes[other])) for first, other in pairs),
        backend=known.backend,
        seconds=max(plan.least_collective, min(plan.first_collective, seconds)),
        sizes=(size,),
        only_measures=is_first,
    )


def _passed(done: StepResult) -> bool:
    return all(result.passed for result in done.results.values())


def sizes_of(history: Sequence[StepResult], group: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes with which a group was tested last, so that it is tested with them again."""
    return next((done.step.sizes for done in reversed(history) if group in done.step.groups), ())


class _Round:
    """The pairs of nodes that were measured, and which of them are slower than the others."""

    def __init__(self, history: Sequence[StepResult], known: Known) -> None:
        self.nodes = {
            node: ranks
            for node, ranks in known.roster.nodes().items()
            if known.late.isdisjoint(ranks)
        }
        self._measured: dict[Pair, Timed] = {}
        node_of = {rank.rank: rank.node for rank in known.roster.ranks}
        self._steps = sum(
            done.step.kind == "links" and bool(done.step.sizes) and not done.step.only_measures
            for done in history
        )
        self._met: set[Pair] = set()
        for done in history:
            for group in done.step.groups:
                both = sorted({node_of[rank] for rank in group})
                if len(both) == 2 and len(group) == sum(len(self.nodes.get(at, ())) for at in both):  # noqa: PLR2004
                    self._met.add(pair(*both))
        for measurement in timed(known.roster, history):
            both = sorted({node_of[rank] for rank in measurement.group})
            if len(both) == 2 and pair(*both) in self._met:  # noqa: PLR2004  # a pair of nodes
                self._measured[pair(*both)] = measurement
        self._slow = {
            pair(*sorted({node_of[rank] for rank in group}))
            for group in _slow_once(history, known)
            if len({node_of[rank] for rank in group}) == 2  # noqa: PLR2004  # as above
        }

    def unmet(self) -> list[Pair]:
        """Return pairs of nodes that have met nobody; three nodes all meet each other."""
        nodes = sorted(self.nodes)
        if len(nodes) == _FEWEST:
            return rounds.next_round(nodes, lambda both: both not in self._met)
        met = {node for both in self._met for node in both}
        left = [node for node in nodes if node not in met]
        if len(left) == 1:
            fastest = max(self._measured.items(), key=lambda item: item[1].busbw, default=None)
            return [pair(left[0], (fastest[0] if fastest is not None else sorted(met))[0])]
        return rounds.adjacent(left)

    def of_suspects(self) -> list[Pair]:
        """Return pairs of a node of a slow pair with one of a pair that is not slow."""
        slow = self._slow or self._slower_of_two()
        if not slow or self._steps >= _ROUNDS:
            return []
        good = {node for both in self._measured.keys() - slow for node in both}
        tries = {
            node: sum(node in both and not good.isdisjoint(both) for both in self._met)
            for node in self.nodes
        }
        suspects = sorted(
            {node for both in slow for node in both if tries[node] < _PARTNERS} - good
        )
        found = rounds.partners(suspects, sorted(good), lambda both: both not in self._met)
        return [pair(*both) for both in rounds.disjoint(found)]

    def _slower_of_two(self) -> set[Pair]:
        """Return the slower one of two pairs that differ: others will show whether it is slow."""
        if len(self._measured) != 2:  # noqa: PLR2004  # see above
            return set()
        (first, measurement), (second, other) = self._measured.items()
        if measurement.likeness != other.likeness:
            return set()
        slower, faster = (
            ((first, measurement), other)
            if measurement.busbw < other.busbw
            else ((second, other), measurement)
        )
        return {slower[0]} if _is_slower(slower[1], faster) else set()
