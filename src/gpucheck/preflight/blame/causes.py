"""What the picture comes to: each cause once, and the smallest set of ranks that shows it."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from gpucheck.preflight.blame.evidence import Picture, Trial
from gpucheck.preflight.blame.rounds import Pair, pair

Sort = Literal["rank", "port", "node", "link", "node-link", "inside", "either", "scale"]
"""What is to blame: a rank; its way out of its node; a node among nodes; a link of two ranks, of
two nodes; a node that fails within itself; one of those that only fail together; or nobody, where
only many ranks together fail."""


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Who is to blame, or may be. ``group`` is the smallest set of theirs that fails."""

    sort: Sort
    ranks: tuple[int, ...]
    group: tuple[int, ...]
    partners: tuple[int, ...] = ()
    """Proven good, and failing with it: ranks, or nodes where ``sort`` is ``node``."""
    units: tuple[int, ...] = ()
    """Of ``either``: the nodes."""


def causes(picture: Picture) -> list[Cause]:
    """Return what is to blame beside the ranks that a step named itself, the surest first."""
    failing = _smallest(picture)
    found = [*_of_ranks(picture), *_of_nodes(picture, failing)]
    inside: dict[int, list[Trial]] = {}
    for trial in picture.unexplained:
        if len(trial.nodes) == 1:
            inside.setdefault(min(trial.nodes), []).append(trial)
    found += [_within(picture, node, inside[node]) for node in picture.guilty]
    return found + _either(picture, failing)


def scale(picture: Picture) -> list[Cause]:
    """Return the smallest set over more than two nodes that fails while no pair in it does.

    It must have failed twice, or be a block of a larger one that did.
    """
    sets = [
        trial.group
        for trial in picture.unexplained
        if len(trial.nodes) > 2  # noqa: PLR2004  # more than a pair
        and (trial.kind == "grow" or picture.fails(trial.ranks) > 1)
        and not picture.is_accounted(trial)
    ]
    smallest = sorted(sets, key=lambda one: (len(one), one))[:1]
    return [Cause(sort="scale", ranks=one, group=one) for one in smallest]


def _of_ranks(picture: Picture) -> list[Cause]:
    found = []
    for rank in picture.bad_ranks:
        good = picture.ranks.good_partners(rank)
        found.append(_with_partners("rank", rank, good))
    for rank in picture.bad_ports:
        good = sorted(picture.ranks.partners[rank] & picture.across)
        found.append(_with_partners("port", rank, good))
    found += [Cause(sort="link", ranks=both, group=both) for both in picture.links]
    return found


def _with_partners(sort: Literal["rank", "port"], rank: int, good: list[int]) -> Cause:
    group = tuple(sorted((rank, good[0])))
    return Cause(sort=sort, ranks=(rank,), group=group, partners=tuple(good))


def _of_nodes(picture: Picture, failing: dict[Pair, Trial]) -> list[Cause]:
    found = []
    for node in picture.bad_nodes:
        good = picture.nodes.good_partners(node)
        trial = failing[pair(node, good[0])]
        found.append(
            Cause(sort="node", ranks=picture.pool[node], group=trial.group, partners=tuple(good))
        )
    for both in picture.node_links:
        if both in failing and all(node in picture.pool for node in both):
            ends = tuple(picture.pool[node][0] for node in both)
            found.append(Cause(sort="node-link", ranks=ends, group=failing[both].group, units=both))
    return found


def _within(picture: Picture, node: int, inside: list[Trial]) -> Cause:
    """Return a node that fails within itself: those of its ranks that fail in pairs, else all."""
    smallest = min(inside, key=lambda one: (len(one.ranks), one.group))
    pairs = [tuple(one.ranks) for one in inside if len(one.ranks) == 2]  # noqa: PLR2004  # a pair
    ends = {rank for both in pairs for rank in both}
    accused = (ends - picture.ranks.proven) or ends or set(picture.pool[node])
    partners: tuple[int, ...] = ()
    if len(accused) == 1:
        partners = tuple(picture.ranks.good_partners(min(accused)))
    return Cause(
        sort="inside",
        ranks=tuple(sorted(accused)),
        group=smallest.group,
        partners=partners,
        units=(node,),
    )


def _either(picture: Picture, failing: dict[Pair, Trial]) -> list[Cause]:
    """Return the nodes that fail with each other while it cannot be told which of them is bad."""
    bad, links = {*picture.bad_nodes}, {*picture.node_links}
    open_pairs = [both for both in failing if bad.isdisjoint(both) and both not in links]
    smallest: dict[int, tuple[int, Pair]] = {}
    for both in open_pairs:
        size = (len(failing[both].ranks), both)
        for unit in both:
            smallest[unit] = min(smallest.get(unit, size), size)
    found = []
    for units in _connected(open_pairs):
        group = failing[min(smallest[unit] for unit in units)[1]].group
        good = units & picture.nodes.proven
        accused = sorted(units - good) or sorted(units)
        ranks = tuple(rank for node in accused for rank in picture.pool.get(node, ()))
        if len(accused) == 2 and not good:  # noqa: PLR2004  # a pair: its ends stand for it
            ranks = tuple(picture.pool[node][0] for node in accused if node in picture.pool)
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


def _smallest(picture: Picture) -> dict[Pair, Trial]:
    """Return the smallest unexplained failure of each pair of nodes."""
    found: dict[Pair, Trial] = {}
    for trial in picture.unexplained:
        if len(trial.nodes) == 2 and trial.nodes.isdisjoint(picture.guilty):  # noqa: PLR2004
            both = pair(*trial.nodes)
            if both not in found or len(trial.ranks) < len(found[both].ranks):
                found[both] = trial
    return found


def _connected(pairs: Iterable[Pair]) -> list[set[int]]:
    """Return the units that hang together by pairs."""
    whole: dict[int, set[int]] = {}
    for one, other in pairs:
        left, right = whole.setdefault(one, {one}), whole.setdefault(other, {other})
        if left is not right:
            small, large = sorted((left, right), key=len)
            large |= small
            whole.update(dict.fromkeys(small, large))
    return sorted({id(found): found for found in whole.values()}.values(), key=min)
