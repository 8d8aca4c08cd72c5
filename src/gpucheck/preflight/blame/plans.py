"""The steps that there are, each planned from the picture: which groups, and whether at all.

Every plan is empty once it has been carried out, so that asking them in turn comes to an end.
"""

from collections.abc import Callable, Sequence

import msgspec

from gpucheck.preflight.blame import rounds, ways
from gpucheck.preflight.blame.arms import Arm, course
from gpucheck.preflight.blame.causes import causes, scale
from gpucheck.preflight.blame.evidence import Picture, Trial
from gpucheck.preflight.blame.rounds import Pair, pair
from gpucheck.preflight.model import Kind

_WHOLES = 6
"""How often all that are left are tried together."""
_FEW, _SHIFTS = 5, 3
"""Up to so many nodes, or ranks of a node, meet each other even where nobody passes; of more each
meets so many others: when none of them passes, no pairs will tell who is bad."""
_PARTNERS, _ATTEMPTS = 8, 4
"""Rounds with proven-good partners; partners of one suspect."""
_RETESTS = 8
_ENOUGH = 7
"""Partners that a bad rank is tried with: all that it has on a node of eight."""
_RAILS = 8
"""Rounds of pairs across two nodes."""
_NARROW = 8
"""Nodes in a failing block whose pairs are all tried."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A step without its number and deadline; without groups there is nothing to do."""

    kind: Kind
    groups: list[tuple[int, ...]] = []
    repeats: bool = False
    arm: Arm | None = None


def _count(picture: Picture, kind: Kind) -> int:
    return sum(one.step.kind == kind for one in picture.history)


def together(picture: Picture, rest: tuple[int, ...]) -> Plan:
    """All that are not to blame: when they pass, everything that is wrong has been found."""
    if len(rest) < 2 or frozenset(rest) in picture.attempted:  # noqa: PLR2004  # a pair
        return Plan(kind="together")
    if _count(picture, "together") >= _WHOLES or picture.has_passed(rest):
        return Plan(kind="together")
    return Plan(kind="together", groups=[rest])


def inside(picture: Picture) -> Plan:
    """The ranks of each node among themselves, all nodes at once."""
    if len(picture.pool) < 2:  # noqa: PLR2004  # one node: all together was just that
        return Plan(kind="inside")
    return Plan(
        kind="inside",
        groups=[
            ranks
            for ranks in picture.pool.values()
            if len(ranks) > 1
            and frozenset(ranks) not in picture.attempted
            and not picture.has_passed(ranks)
        ],
    )


def _open_nodes(picture: Picture) -> list[int]:
    """Return the nodes that work within themselves, so that the network can be tested on them."""
    out = {*picture.guilty, *picture.bad_nodes}
    return [node for node in sorted(picture.pool) if node not in out]


def _untried(picture: Picture) -> Callable[[Pair], bool]:
    return lambda both: both not in picture.nodes.tried


def _both(picture: Picture, pairs: Sequence[Pair]) -> list[tuple[int, ...]]:
    """Return groups of all ranks of two nodes."""
    return [tuple(sorted(picture.pool[one] + picture.pool[other])) for one, other in pairs]


def node_pairs(picture: Picture) -> Plan:
    """Neighbouring nodes in pairs; one left over gets a proven-good partner next."""
    met = {node for both in picture.nodes.tried for node in both}
    new = [
        node
        for node in _open_nodes(picture)
        if node not in met and node not in picture.nodes.proven
    ]
    return Plan(kind="pairs", groups=_both(picture, rounds.adjacent(new)))


def node_partners(picture: Picture) -> Plan:
    """Suspects with proven-good partners; while there are none, with other neighbours."""
    nodes = _open_nodes(picture)
    proven = [node for node in nodes if node in picture.nodes.proven]
    suspects = [node for node in nodes if node not in picture.nodes.proven]
    if not proven:
        if _is_hopeless(suspects, picture.nodes.tried):
            return Plan(kind="pairs")
        pairs = rounds.next_round(suspects, _untried(picture))
        return Plan(kind="pairs", groups=_both(picture, pairs))
    if _count(picture, "partners") >= _PARTNERS:
        return Plan(kind="partners")
    tries = _tries(picture.nodes.tried)
    left = [node for node in suspects if tries.get(node, 0) < _ATTEMPTS]
    pairs = rounds.partners(left, proven, _untried(picture))
    return Plan(kind="partners", groups=_both(picture, pairs))


def _is_hopeless(units: Sequence[int], tried: set[Pair]) -> bool:
    """Whether units, none of which is proven good, have met enough others to say so."""
    tries = _tries(tried)
    return len(units) > _FEW and min(tries.get(unit, 0) for unit in units) >= _SHIFTS


def _tries(tried: set[Pair]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for both in tried:
        for unit in both:
            counts[unit] = counts.get(unit, 0) + 1
    return counts


def unmet(picture: Picture) -> Plan:
    """Nodes whose ranks never connected while others of their group did: the ways between them.

    There are few, and each pair ends soon: all together once more would take a whole time-out.
    """
    groups: list[tuple[int, ...]] = []
    for trial in picture.unexplained:
        wanted = _unmet_pairs(picture, trial) - picture.nodes.tried
        nodes = sorted({node for both in wanted for node in both})
        if len(nodes) <= _NARROW and set(nodes) <= set(_open_nodes(picture)):
            groups += _both(picture, rounds.next_round(nodes, wanted.__contains__))
    return Plan(kind="links", groups=rounds.disjoint(groups))


def _unmet_pairs(picture: Picture, trial: Trial) -> set[Pair]:
    """Return the pairs of nodes between which a failed group may have found no way.

    Who did not reach the store lacks the first rank of the group, and all others wait. Who is
    left over while it connects lacks another such rank; where all are, it is what they share.
    """
    known = trial.results.values()
    first = picture.node_of[trial.group[0]]
    outside = {picture.node_of[one.rank] for one in known if one.kind == "store-unreachable"}
    if outside:
        return {pair(first, node) for node in outside if node != first}
    stuck = {picture.node_of[one.rank] for one in known if one.phase == "connect"}
    if len(stuck) > _NARROW or not any(one.phase == "enter" for one in known):
        return set()
    return {(one, other) for one in stuck for other in stuck if one < other}


def gpu_pairs(picture: Picture) -> Plan:
    """Every pair of ranks in each node that fails within itself, all such nodes at once.

    A rank that is found bad goes on being tested, since it may only have several bad links.
    """
    done = {rank for rank in picture.bad_ranks if len(picture.ranks.good_partners(rank)) >= _ENOUGH}
    named = picture.told.keys() | picture.lost
    living = picture.nodes_of_job

    def is_wanted(both: Pair) -> bool:
        return both not in picture.ranks.tried and done.isdisjoint(both)

    groups: list[tuple[int, ...]] = []
    for node in sorted(picture.opened):
        ranks = [rank for rank in living.get(node, []) if rank not in named]
        if node not in picture.working and _is_hopeless(ranks, picture.ranks.tried):
            continue
        groups += rounds.next_round(ranks, is_wanted)
    return Plan(kind="gpu-pairs", groups=groups)


def gpu_partners(picture: Picture) -> Plan:
    """Ranks that their own node cannot clear, with proven-good ranks of other nodes."""
    if not picture.guilty or _count(picture, "partners") >= 2 * _PARTNERS:
        return Plan(kind="partners")
    nodes = _open_nodes(picture)
    good = [rank for node in nodes for rank in picture.pool[node] if rank in picture.ranks.proven]
    good.sort(key=lambda rank: rank not in picture.across)
    tries = _tries(picture.ranks.tried)
    suspects = [
        rank
        for node in picture.guilty
        for rank in picture.pool[node]
        if rank not in picture.ranks.proven
        and len(picture.ranks.good_partners(rank)) < 2  # noqa: PLR2004  # two tell
        and tries.get(rank, 0) < len(picture.pool[node]) + _ATTEMPTS
    ]
    pairs = rounds.partners(suspects, good, lambda both: both not in picture.ranks.tried)
    return Plan(kind="partners", groups=[*pairs])


def _scopes(picture: Picture, rest: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the sets that fail although no pair in them does: all together, or within a node."""
    failing = {rank for both in picture.ranks.failing for rank in both}
    sets = [rest] if not picture.nodes.failing else []
    sets += [
        picture.pool[node] for node in picture.guilty if failing.isdisjoint(picture.pool[node])
    ]
    return [one for one in sets if len(one) > 1 and picture.fails(one)]


def repeated(picture: Picture, rest: tuple[int, ...]) -> Plan:
    """What failed without naming anybody, once more: chance is no cause."""
    nodes = {picture.node_of[rank] for rank in rest}
    is_pair = len(nodes) == 2  # noqa: PLR2004  # then all together was the only pair
    if picture.fails(rest) == 1 and (is_pair or not picture.nodes.failing):
        return Plan(kind="together", groups=[rest], repeats=True)
    scopes = _scopes(picture, rest)
    groups = [
        ranks
        for ranks in (picture.pool[node] for node in picture.guilty)
        if picture.fails(ranks) == 1 and (len(ranks) == 2 or ranks in scopes)  # noqa: PLR2004
    ]
    return Plan(kind="inside", groups=groups, repeats=True)


def links_again(picture: Picture) -> Plan:
    """Failed pairs whose ends are both proven good, once more: what is left is the link."""
    groups: list[tuple[int, ...]] = [both for both in picture.links if picture.fails(both) == 1]
    for trial in picture.unexplained:
        is_link = tuple(sorted(trial.nodes)) in picture.node_links
        if is_link and picture.fails(trial.ranks) == 1:
            groups.append(trial.group)
    again = sum(one.step.kind == "links" and one.step.repeats for one in picture.history)
    if again >= _RETESTS:
        groups = []
    return Plan(kind="links", groups=rounds.disjoint(groups), repeats=True)


def rails(picture: Picture) -> Plan:
    """Pairs of ranks across two nodes that fail together: which adapter, which link.

    Neighbours of the same place first, then moved on by one, and further while all pass. Where a
    host was not reached at all, it is no matter of ranks.
    """
    couples = [(node, picture.nodes.good_partners(node)[0]) for node in picture.bad_nodes]
    couples += picture.node_links
    couples += [both for both in sorted(picture.nodes.failing) if len(picture.pool) == 2]  # noqa: PLR2004
    lost = {tuple(sorted(one.nodes)) for one in picture.unexplained if ways.unreached(one)}
    couples = [both for both in dict.fromkeys(couples) if pair(*both) not in lost]
    groups: list[tuple[int, ...]] = []
    for one, other in rounds.disjoint(couples):
        groups += _next_rail(picture, picture.pool.get(one, ()), picture.pool.get(other, ()))
    return Plan(kind="links", groups=groups)


def _next_rail(
    picture: Picture, left: tuple[int, ...], right: tuple[int, ...]
) -> list[tuple[int, ...]]:
    if max(len(left), len(right)) < 2 or not (left and right):  # noqa: PLR2004  # a pair is a rail
        return []
    failing = False
    for by in range(min(max(len(left), len(right)), _RAILS)):
        wanted = rounds.shifted(left, right, by)
        new = [both for both in wanted if both not in picture.ranks.tried]
        failing = failing or any(picture.fails(both) for both in wanted)
        if new and (by < 2 or not failing):  # noqa: PLR2004  # two partners for each
            return [*new]
    return []


def grow(picture: Picture, rest: tuple[int, ...]) -> Plan:
    """Blocks of 4, 8, 16 ... of what fails as a whole although every pair passes."""
    groups: list[tuple[int, ...]] = []
    for scope in _scopes(picture, rest):
        if picture.fails(scope) > 1:
            groups += _next_blocks(picture, scope)
    return Plan(kind="grow", groups=groups)


def _next_blocks(picture: Picture, scope: tuple[int, ...]) -> list[tuple[int, ...]]:
    by_node: dict[int, list[int]] = {}
    for rank in scope:
        by_node.setdefault(picture.node_of[rank], []).append(rank)
    nodes = sorted(by_node)
    units = [by_node[node] for node in nodes] if len(nodes) > 1 else [[rank] for rank in scope]
    size = 4
    while size < len(units):
        groups = [
            tuple(sorted(rank for at in block for rank in units[at]))
            for block in rounds.blocks(range(len(units)), size)
        ]
        if any(picture.fails(group) for group in groups):
            return []
        if new := [group for group in groups if frozenset(group) not in picture.attempted]:
            return new
        size *= 2
    return []


def narrow(picture: Picture) -> Plan:
    """Every pair of nodes in a small set that fails: a link that no round has met yet."""
    groups: list[tuple[int, ...]] = []
    for trial in picture.unexplained:
        is_sure = trial.kind == "grow" or picture.fails(trial.ranks) > 1
        if is_sure and 2 < len(trial.nodes) <= _NARROW + 1:  # noqa: PLR2004  # more than a pair
            nodes = [node for node in sorted(trial.nodes) if node in picture.pool]
            groups += _both(picture, rounds.next_round(nodes, _untried(picture)))
    return Plan(kind="links", groups=rounds.disjoint(groups))


def all_links(picture: Picture) -> Plan:
    """The next round in which nodes meet that have not met: every link between nodes, in time."""
    pairs = rounds.next_round(_open_nodes(picture), _untried(picture))
    return Plan(kind="links", groups=_both(picture, pairs))


def arms(picture: Picture) -> Plan:
    """The next control arm of the smallest sets that fail; sets that need the same one, at once."""
    groups = rounds.disjoint([one.group for one in (*causes(picture), *scale(picture))])
    upcoming = [(group, course(picture, group).upcoming) for group in groups]
    arm = next((arm for _, arm in upcoming if arm is not None), None)
    chosen = [group for group, wanted in upcoming if wanted is not None and wanted == arm]
    return Plan(kind="arms", groups=chosen, arm=arm, repeats=arm == Arm(env={}))
