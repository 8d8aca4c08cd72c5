"""The causes behind the evidence: each once, with the smallest set of ranks that shows it."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from gpucheck.cluster.diagnose.evidence import Evidence, Trial
from gpucheck.cluster.diagnose.rounds import Pair, pair

Sort = Literal["rank", "port", "node", "link", "node-link", "inside", "either", "scale"]
"""The kind of cause. ``rank``: a rank. ``port``: its way out of its node. ``node``: a node.
``link`` and ``node-link``: what joins two ranks, or two nodes. ``inside``: a node that fails within
itself. ``either``: one of several nodes that only fail together. ``scale``: nobody, since only many
ranks together fail."""


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """A cause of failure. ``group`` is the smallest set of its ranks that fails."""

    sort: Sort
    ranks: tuple[int, ...]
    group: tuple[int, ...]
    partners: tuple[int, ...] = ()
    """The ranks, or the nodes where ``sort`` is ``node``, that are proven good and fail with it."""
    units: tuple[int, ...] = ()
    """The nodes, where ``sort`` is ``either``."""


def causes(evidence: Evidence) -> list[Cause]:
    """Return causes besides the ranks that a step named itself, the most certain first."""
    failing = _smallest(evidence)
    found = [*_of_ranks(evidence), *_of_nodes(evidence, failing)]
    inside: dict[int, list[Trial]] = {}
    for trial in evidence.unexplained:
        if len(trial.nodes) == 1:
            inside.setdefault(min(trial.nodes), []).append(trial)
    found += [_within(evidence, node, inside[node]) for node in evidence.guilty]
    return found + _either(evidence, failing)


def scale(evidence: Evidence) -> list[Cause]:
    """Return the smallest set of more than two nodes that fails although no pair in it does.

    It must have failed twice, or be a block of a larger set that did.
    """
    sets = [
        trial.group
        for trial in evidence.unexplained
        if len(trial.nodes) > 2  # noqa: PLR2004  # more than a pair
        and (trial.kind == "grow" or evidence.fails(trial.ranks) > 1)
        and not evidence.is_accounted(trial)
    ]
    smallest = sorted(sets, key=lambda one: (len(one), one))[:1]
    return [Cause(sort="scale", ranks=one, group=one) for one in smallest]


def _of_ranks(evidence: Evidence) -> list[Cause]:
    found = []
    for rank in evidence.bad_ranks:
        good = evidence.ranks.good_partners(rank)
        found.append(_with_partners("rank", rank, good))
    for rank in evidence.bad_ports:
        good = sorted(evidence.ranks.partners[rank] & evidence.across)
        found.append(_with_partners("port", rank, good))
    found += [Cause(sort="link", ranks=both, group=both) for both in evidence.links]
    return found


def _with_partners(sort: Literal["rank", "port"], rank: int, good: list[int]) -> Cause:
    group = tuple(sorted((rank, good[0])))
    return Cause(sort=sort, ranks=(rank,), group=group, partners=tuple(good))


def _of_nodes(evidence: Evidence, failing: dict[Pair, Trial]) -> list[Cause]:
    found = []
    for node in evidence.bad_nodes:
        good = evidence.nodes.good_partners(node)
        trial = failing[pair(node, good[0])]
        found.append(
            Cause(sort="node", ranks=evidence.pool[node], group=trial.group, partners=tuple(good))
        )
    for both in evidence.node_links:
        if both in failing and all(node in evidence.pool for node in both):
            ends = tuple(evidence.pool[node][0] for node in both)
            found.append(Cause(sort="node-link", ranks=ends, group=failing[both].group, units=both))
    return found


def _within(evidence: Evidence, node: int, inside: list[Trial]) -> Cause:
    """Return the cause of a node that fails within itself: its ranks that fail in pairs, or all."""
    smallest = min(inside, key=lambda one: (len(one.ranks), one.group))
    pairs = [tuple(one.ranks) for one in inside if len(one.ranks) == 2]  # noqa: PLR2004  # a pair
    ends = {rank for both in pairs for rank in both}
    accused = (ends - evidence.ranks.proven) or ends or set(evidence.pool[node])
    partners: tuple[int, ...] = ()
    if len(accused) == 1:
        partners = tuple(evidence.ranks.good_partners(min(accused)))
    return Cause(
        sort="inside",
        ranks=tuple(sorted(accused)),
        group=smallest.group,
        partners=partners,
        units=(node,),
    )


def _either(evidence: Evidence, failing: dict[Pair, Trial]) -> list[Cause]:
    """Return the nodes that fail with each other when nobody can say which of them is bad."""
    bad, links = {*evidence.bad_nodes}, {*evidence.node_links}
    open_pairs = [both for both in failing if bad.isdisjoint(both) and both not in links]
    smallest: dict[int, tuple[int, Pair]] = {}
    for both in open_pairs:
        size = (len(failing[both].ranks), both)
        for unit in both:
            smallest[unit] = min(smallest.get(unit, size), size)
    found = []
    for units in _connected(open_pairs):
        group = failing[min(smallest[unit] for unit in units)[1]].group
        good = units & evidence.nodes.proven
        accused = sorted(units - good) or sorted(units)
        ranks = tuple(rank for node in accused for rank in evidence.pool.get(node, ()))
        if len(accused) == 2 and not good:  # noqa: PLR2004  # a pair: represented by its ends
            ranks = tuple(evidence.pool[node][0] for node in accused if node in evidence.pool)
        found.append(
            Cause(
                sort="either",
                ranks=ranks,
                group=group,
                partners=tuple(sorted(good)),
                units=tuple(accused),
            )
        )
    return found


def _smallest(evidence: Evidence) -> dict[Pair, Trial]:
    """Return the smallest unexplained failure of each pair of nodes."""
    found: dict[Pair, Trial] = {}
    for trial in evidence.unexplained:
        if len(trial.nodes) == 2 and trial.nodes.isdisjoint(evidence.guilty):  # noqa: PLR2004
            both = pair(*trial.nodes)
            if both not in found or len(trial.ranks) < len(found[both].ranks):
                found[both] = trial
    return found


def _connected(pairs: Iterable[Pair]) -> list[set[int]]:
    """Return the units that are connected by pairs."""
    whole: dict[int, set[int]] = {}
    for one, other in pairs:
        left, right = whole.setdefault(one, {one}), whole.setdefault(other, {other})
        if left is not right:
            small, large = sorted((left, right), key=len)
            large |= small
            whole.update(dict.fromkeys(small, large))
    return sorted({id(found): found for found in whole.values()}.values(), key=min)
