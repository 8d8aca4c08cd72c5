"""Which link is slow: groups of ranks against similar groups, baselines and published figures.

As with GPUs, one measurement makes a suspect, and a culprit was slow every time.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Bandwidth, Culprit
from gpucheck.findings import link_slow
from gpucheck.language import listed, say, say_many
from gpucheck.preflight.diagnose.naming import between, blamed, in_ranks
from gpucheck.preflight.figures.bandwidth import Expected, Groups, Timed, of_table, timed
from gpucheck.preflight.figures.baseline import Baseline
from gpucheck.preflight.figures.slow import CPU_SHARE
from gpucheck.preflight.model import Backend, Facts, Roster, StepResult
from gpucheck.tables.bus_bandwidth import BusBandwidths

_TIMES = 2
_SMALLEST = 1 << 20
"""Bytes: the time of a smaller message is mostly latency, and no bandwidth."""

Group = tuple[int, ...]


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What groups are compared with."""

    roster: Roster
    facts: Facts
    table: BusBandwidths
    backend: Backend
    baseline: Baseline | None = None


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
        """How bad the share is; None when it is fine."""
        if self.share < self.expected.is_error_below:
            return Severity.ERROR
        return Severity.WARNING if self.share < self.expected.least else None


def expectation(one: Timed, groups: Groups, known: Known) -> Expected | None:
    """Return what a bandwidth is compared with: similar groups, its baseline, or the table."""
    peers = groups.others(one)
    if peers is not None:
        if known.backend != "nccl":
            peers = msgspec.structs.replace(peers, least=CPU_SHARE, is_error_below=CPU_SHARE)
        return peers
    return _of_baseline(one, known) or of_table(
        one, known.roster, known.facts, known.table, backend=known.backend
    )


def report(
    history: Sequence[StepResult], known: Known, every: Sequence[Timed] | None = None
) -> list[Bandwidth]:
    """Return the bandwidths for the report: the slowest and the fastest of each kind of group.

    So a report stays short however many pairs there were. ``every`` is what ``timed`` says of the
    history, if that is known already.
    """
    every = timed(known.roster, history) if every is None else every
    ends: dict[tuple[str, int, int], list[Timed]] = {}
    for one in sorted(every, key=lambda each: each.busbw):
        ends.setdefault(one.likeness, []).append(one)
    chosen = [
        one
        for same in ends.values()
        for one in (same[:1] if len(same) == 1 else [same[0], same[-1]])
    ]
    groups = Groups(every)
    return [_shown(one, expectation(one, groups, known)) for one in chosen]


def suspects(history: Sequence[StepResult], known: Known) -> tuple[Group, ...]:
    """Return the groups that were slow in their only measurement: they must measure again."""
    asked = Counter(
        frozenset(group)
        for done in history
        if done.step.kind not in ("alone", "arms")
        for group in done.step.groups
    )
    return tuple(
        group
        for group, same in _series(timed(known.roster, history), known).items()
        if same[0].severity is not None and asked[frozenset(group)] < _TIMES
    )


def culprits(
    history: Sequence[StepResult], known: Known, every: Sequence[Timed] | None = None
) -> list[Culprit]:
    """Return the groups that were slow every time, in at least two measurements.

    A rank or a node that is in all slow groups, and in at least two, is named; its partners are
    not. ``every`` is what ``timed`` says of the history, if that is known already.
    """
    series = _series(timed(known.roster, history) if every is None else every, known)
    slow = {
        group: same
        for group, same in series.items()
        if len(same) >= _TIMES and all(one.severity is not None for one in same)
    }
    if not slow:
        return []
    found = [_culprit(known, group, same) for group, same in slow.items()]
    found.sort(key=lambda one: one.data["ratio"])
    return _gathered(known, slow, series, found)


def _series(every: Sequence[Timed], known: Known) -> dict[Group, list[Judged]]:
    """Return the measurements of each group that can be judged, in order."""
    groups = Groups(every)
    series: dict[Group, list[Judged]] = {}
    for one in every:
        if one.size < _SMALLEST:
            continue
        expected = expectation(one, groups, known)
        if expected is not None:
            key = tuple(sorted(one.group))
            series.setdefault(key, []).append(Judged(timed=one, expected=expected))
    return series


def _of_baseline(one: Timed, known: Known) -> Expected | None:
    if known.baseline is None or one.nodes != 1:
        return None
    uuids = [known.roster.ranks[rank].uuid for rank in one.group]
    saved = known.baseline.of_group(uuids, one.size)
    if saved is None:
        return None
    words = say("the baseline of these GPUs")
    if saved.saved:
        words = say("the baseline of these GPUs of {day}", day=saved.saved)
    return Expected(busbw=saved.busbw, words=words)


def _culprit(known: Known, group: Group, same: list[Judged]) -> Culprit:
    best = max(same, key=lambda one: one.share)
    one = best.timed
    values = listed([f"{each.timed.busbw:.3g}" for each in same])
    entry = blamed(
        link_slow.RULE.slug,
        known.roster,
        group,
        severity=best.severity or Severity.WARNING,
        confidence=Confidence.LIKELY if one.nodes == 1 else Confidence.POSSIBLE,
        evidence=say(
            "an all-reduce of {size} over {ranks} reaches a bus bandwidth of {values} GB/s in "
            "{count} measurements, {share:.0%} of {usual:.3g} GB/s, {reference}",
            size=_bytes(one.size), ranks=in_ranks(len(group)), values=values, count=len(same),
            share=best.share, usual=best.expected.busbw, reference=best.expected.words,
        ),
        data={
            "ratio": best.share, "busbw": [each.timed.busbw for each in same],
            "usual": best.expected.busbw, "size": one.size,
        },
    )  # fmt: skip
    pair = len(group) == 2 or one.nodes == 2  # noqa: PLR2004  # the two ends of a link
    return between(entry, known.roster) if pair else entry


def _gathered(
    known: Known,
    slow: Mapping[Group, list[Judged]],
    series: Mapping[Group, list[Judged]],
    found: list[Culprit],
) -> list[Culprit]:
    """Return one entry for the unit that all slow groups share, or the entries as they are."""
    units = {group: _units(known.roster, group) for group in series}
    shared = frozenset.intersection(*(units[group] for group in slow))
    if len(slow) < _TIMES or len(shared) != 1:
        return found
    partners = frozenset().union(*(units[group] for group in slow)) - shared
    well = frozenset().union(*(units[group] for group in series if group not in slow))
    if not partners <= well:
        return found
    inside = all(same[0].timed.nodes == 1 for same in slow.values())
    (unit,) = shared
    ranks = [
        rank.rank
        for rank in known.roster.ranks
        if (rank.rank if inside else rank.node) == unit
        and any(rank.rank in group for group in slow)
    ]
    first = found[0]
    entry = blamed(
        link_slow.RULE.slug,
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
    return [entry]


def _units(roster: Roster, group: Group) -> frozenset[int]:
    """Return what a group joins: ranks inside a node, nodes across."""
    nodes = frozenset(roster.ranks[rank].node for rank in group)
    return nodes if len(nodes) > 1 else frozenset(group)


def _shown(one: Timed, against: Expected | None) -> Bandwidth:
    return Bandwidth(
        collective="all-reduce",
        ranks=len(one.group),
        nodes=one.nodes,
        size=one.size,
        seconds=one.seconds,
        busbw=one.busbw,
        compared_with="" if against is None else against.words,
        share=None if against is None else one.busbw / against.busbw,
    )


def _bytes(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size} B"
