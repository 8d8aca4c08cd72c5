"""The next step: the one that will be most informative after the outcomes so far.

Nothing is run here. ``next_step`` is asked again after each step until it returns None.
"""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from gpucheck.cluster.diagnose import rounds, sentences
from gpucheck.cluster.diagnose.control_runs import ControlRun, course
from gpucheck.cluster.diagnose.culprits import Conclusion, culprits
from gpucheck.cluster.diagnose.evidence import Evidence, Trial, uncollected
from gpucheck.cluster.diagnose.missing import Sights
from gpucheck.cluster.diagnose.rounds import Pair, pair
from gpucheck.cluster.diagnose.sentences import causes, scale
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.model import Kind, Roster, Step, StepResult

_WHOLES = 6
"""How often all remaining ranks are tried together."""
_FEW, _SHIFTS = 5, 3
"""Up to ``_FEW`` nodes, or ranks of a node, all meet each other even if nobody passes. In larger
sets each meets ``_SHIFTS`` others: if none of those pairs passes, more pairs will not help."""
_PARTNERS, _ATTEMPTS = 8, 4
"""Rounds with proven-good partners; partners of one suspect."""
_RETESTS = 8
"""Rounds in which links are repeated. Chosen: each costs a step of the job."""
_ENOUGH = 7
"""Partners that a bad rank is tried with: all that it has on a node of eight."""
_RAILS = 8
"""Rounds of pairs across two nodes."""
_NARROW = 8
"""Up to this many nodes in a failing block, all pairs are tried."""
__all__ = ["Conclusion", "Sights", "culprits", "next_step"]
_MOST_STEPS = 100
"""A safety net beyond the rounds that full coverage needs."""


class NextStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step without its number and deadline; without groups it is not carried out."""

    kind: Kind
    groups: list[tuple[int, ...]] = []
    repeats: bool = False
    control_run: ControlRun | None = None


def _count(evidence: Evidence, kind: Kind) -> int:
    return sum(done.step.kind == kind for done in evidence.history)


def together(evidence: Evidence, rest: tuple[int, ...]) -> NextStep:
    """Test all ranks together that are not blamed. If they pass, every fault has been found."""
    if len(rest) < 2 or frozenset(rest) in evidence.attempted:  # noqa: PLR2004  # a pair
        return NextStep(kind="together")
    if _count(evidence, "together") >= _WHOLES or evidence.has_passed(rest):
        return NextStep(kind="together")
    return NextStep(kind="together", groups=[rest])


def inside(evidence: Evidence) -> NextStep:
    """Test the ranks of each node among themselves, all nodes at once."""
    if len(evidence.pool) < 2:  # noqa: PLR2004  # one node: all together was just that
        return NextStep(kind="inside")
    return NextStep(
        kind="inside",
        groups=[
            ranks
            for ranks in evidence.pool.values()
            if len(ranks) > 1
            and frozenset(ranks) not in evidence.attempted
            and not evidence.has_passed(ranks)
        ],
    )


def _open_nodes(evidence: Evidence) -> list[int]:
    """Return the nodes that work within themselves: on these the network can be tested."""
    out = {*evidence.guilty, *evidence.bad_nodes}
    return [node for node in sorted(evidence.pool) if node not in out]


def _untried(evidence: Evidence) -> Callable[[Pair], bool]:
    return lambda both: both not in evidence.nodes.tried


def _both(evidence: Evidence, pairs: Sequence[Pair]) -> list[tuple[int, ...]]:
    """Return groups of all ranks of two nodes."""
    return [tuple(sorted(evidence.pool[first] + evidence.pool[other])) for first, other in pairs]


def node_pairs(evidence: Evidence) -> NextStep:
    """Test neighbouring nodes in pairs; a node left over gets a proven-good partner next."""
    met = {node for both in evidence.nodes.tried for node in both}
    new = [
        node
        for node in _open_nodes(evidence)
        if node not in met and node not in evidence.nodes.proven
    ]
    return NextStep(kind="pairs", groups=_both(evidence, rounds.adjacent(new)))


def node_partners(evidence: Evidence) -> NextStep:
    """Test suspects with proven-good partners; as long as there are none, with other neighbours."""
    nodes = _open_nodes(evidence)
    proven = [node for node in nodes if node in evidence.nodes.proven]
    suspects = [node for node in nodes if node not in evidence.nodes.proven]
    if not proven:
        if _is_hopeless(suspects, evidence.nodes.tried):
            return NextStep(kind="pairs")
        pairs = rounds.next_round(suspects, _untried(evidence))
        return NextStep(kind="pairs", groups=_both(evidence, pairs))
    if _count(evidence, "partners") >= _PARTNERS:
        return NextStep(kind="partners")
    tries = _tries(evidence.nodes.tried)
    left = [node for node in suspects if tries.get(node, 0) < _ATTEMPTS]
    pairs = rounds.partners(left, proven, _untried(evidence))
    return NextStep(kind="partners", groups=_both(evidence, pairs))


def _is_hopeless(units: Sequence[int], tried: set[Pair]) -> bool:
    """Whether enough pairs of these units were tried to expect no pass: none is proven good."""
    tries = _tries(tried)
    return len(units) > _FEW and min(tries.get(unit, 0) for unit in units) >= _SHIFTS


def _tries(tried: set[Pair]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for both in tried:
        for unit in both:
            counts[unit] = counts.get(unit, 0) + 1
    return counts


def unmet(evidence: Evidence) -> NextStep:
    """Test the pairs of nodes whose ranks never connected while others of their group did.

    There are few of them, and each pair ends soon. Another step with all ranks would take a whole
    time-out.
    """
    groups: list[tuple[int, ...]] = []
    for trial in evidence.unexplained:
        wanted = _unmet_pairs(evidence, trial) - evidence.nodes.tried
        nodes = sorted({node for both in wanted for node in both})
        if len(nodes) <= _NARROW and set(nodes) <= set(_open_nodes(evidence)):
            groups += _both(evidence, rounds.next_round(nodes, wanted.__contains__))
    return NextStep(kind="links", groups=rounds.disjoint(groups))


def _unmet_pairs(evidence: Evidence, trial: Trial) -> set[Pair]:
    """Return the pairs of nodes between which a failed group may have found no route.

    A rank that did not reach the group's store lacks a route to the group's first rank, and all
    others wait. Ranks that are stuck while they connect lack a route to each other; if all are
    stuck, the cause is shared.
    """
    known = trial.results.values()
    first = evidence.node_of[trial.group[0]]
    outside = {
        evidence.node_of[result.rank] for result in known if result.kind == "store-unreachable"
    }
    if outside:
        return {pair(first, node) for node in outside if node != first}
    stuck = {evidence.node_of[result.rank] for result in known if result.phase == "connect"}
    if len(stuck) > _NARROW or not any(result.phase == "enter" for result in known):
        return set()
    return {(first, other) for first in stuck for other in stuck if first < other}


def gpu_pairs(evidence: Evidence) -> NextStep:
    """Test every pair of ranks in each node that fails within itself, all such nodes at once.

    A rank that was found bad is still tested, because it may only have several bad links.
    """
    done = {
        rank for rank in evidence.bad_ranks if len(evidence.ranks.good_partners(rank)) >= _ENOUGH
    }
    named = evidence.direct.keys() | evidence.lost
    living = evidence.nodes_of_job

    def is_wanted(both: Pair) -> bool:
        return both not in evidence.ranks.tried and done.isdisjoint(both)

    groups: list[tuple[int, ...]] = []
    for node in sorted(evidence.opened):
        ranks = [rank for rank in living.get(node, []) if rank not in named]
        if node not in evidence.working and _is_hopeless(ranks, evidence.ranks.tried):
            continue
        groups += rounds.next_round(ranks, is_wanted)
    return NextStep(kind="gpu-pairs", groups=groups)


def gpu_partners(evidence: Evidence) -> NextStep:
    """Test ranks that their own node cannot clear with proven-good ranks of other nodes."""
    if not evidence.guilty or _count(evidence, "partners") >= 2 * _PARTNERS:
        return NextStep(kind="partners")
    nodes = _open_nodes(evidence)
    good = [rank for node in nodes for rank in evidence.pool[node] if rank in evidence.ranks.proven]
    good.sort(key=lambda rank: rank not in evidence.across)
    tries = _tries(evidence.ranks.tried)
    suspects = [
        rank
        for node in evidence.guilty
        for rank in evidence.pool[node]
        if rank not in evidence.ranks.proven
        and len(evidence.ranks.good_partners(rank)) < 2  # noqa: PLR2004  # two tell
        and tries.get(rank, 0) < len(evidence.pool[node]) + _ATTEMPTS
    ]
    pairs = rounds.partners(suspects, good, lambda both: both not in evidence.ranks.tried)
    return NextStep(kind="partners", groups=[*pairs])


def _scopes(evidence: Evidence, rest: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return the sets that fail although no pair in them does: all together, or within a node."""
    failing = {rank for both in evidence.ranks.failing for rank in both}
    sets = [rest] if not evidence.nodes.failing else []
    sets += [
        evidence.pool[node] for node in evidence.guilty if failing.isdisjoint(evidence.pool[node])
    ]
    return [ranks for ranks in sets if len(ranks) > 1 and evidence.fails(ranks)]


def repeated(evidence: Evidence, rest: tuple[int, ...]) -> NextStep:
    """Repeat what failed without naming anybody: it may have been chance."""
    nodes = {evidence.node_of[rank] for rank in rest}
    is_pair = len(nodes) == 2  # noqa: PLR2004  # then all together was the only pair
    if evidence.fails(rest) == 1 and (is_pair or not evidence.nodes.failing):
        return NextStep(kind="together", groups=[rest], repeats=True)
    scopes = _scopes(evidence, rest)
    groups = [
        ranks
        for ranks in (evidence.pool[node] for node in evidence.guilty)
        if evidence.fails(ranks) == 1 and (len(ranks) == 2 or ranks in scopes)  # noqa: PLR2004
    ]
    return NextStep(kind="inside", groups=groups, repeats=True)


def routes_in(evidence: Evidence) -> NextStep:
    """Have another node reach a node whose port one did not reach, and nobody else was seen to.

    A host that refuses what comes in looks like a broken link to the one that tried it first.
    """
    groups: list[tuple[int, ...]] = []
    for node, trials in sorted(evidence.unreached.items()):
        if node in evidence.entered or len(trials) > 1 or node not in evidence.pool:
            continue
        first = evidence.pool[node][0]  # who stands first in a group opens its store
        groups += [
            (first, rank)
            for other in _open_nodes(evidence)
            if other in evidence.nodes.proven and other != node and other not in trials
            for rank in evidence.pool[other]
            if frozenset((first, rank)) not in evidence.attempted
        ][:1]
    return NextStep(kind="links", groups=rounds.disjoint(groups))


def links_again(evidence: Evidence) -> NextStep:
    """Repeat failed pairs whose ends are both proven good: what remains is the link."""
    groups: list[tuple[int, ...]] = [both for both in evidence.links if evidence.fails(both) == 1]
    for trial in evidence.unexplained:
        is_link = tuple(sorted(trial.nodes)) in evidence.node_links
        if is_link and evidence.fails(trial.ranks) == 1:
            groups.append(trial.group)
    again = sum(done.step.kind == "links" and done.step.repeats for done in evidence.history)
    if again >= _RETESTS:
        groups = []
    return NextStep(kind="links", groups=rounds.disjoint(groups), repeats=True)


def rails(evidence: Evidence) -> NextStep:
    """Test pairs of ranks across two nodes that fail together: which adapter, which link.

    Ranks with the same place on their nodes come first, then one node's ranks are shifted by one,
    and further while all pass. Where a host was not reached at all, ranks do not matter.
    """
    couples = [(node, evidence.nodes.good_partners(node)[0]) for node in evidence.bad_nodes]
    couples += evidence.node_links
    couples += [both for both in sorted(evidence.nodes.failing) if len(evidence.pool) == 2]  # noqa: PLR2004
    lost = {
        tuple(sorted(trial.nodes)) for trial in evidence.unexplained if sentences.unreached(trial)
    }
    couples = [both for both in dict.fromkeys(couples) if pair(*both) not in lost]
    groups: list[tuple[int, ...]] = []
    for first, other in rounds.disjoint(couples):
        groups += _next_rail(evidence, evidence.pool.get(first, ()), evidence.pool.get(other, ()))
    return NextStep(kind="links", groups=groups)


def _next_rail(
    evidence: Evidence, left: tuple[int, ...], right: tuple[int, ...]
) -> list[tuple[int, ...]]:
    if max(len(left), len(right)) < 2 or not (left and right):  # noqa: PLR2004  # a pair is a rail
        return []
    failing = False
    for by in range(min(max(len(left), len(right)), _RAILS)):
        wanted = rounds.shifted(left, right, by)
        new = [both for both in wanted if both not in evidence.ranks.tried]
        failing = failing or any(evidence.fails(both) for both in wanted)
        if new and (by < 2 or not failing):  # noqa: PLR2004  # two partners for each
            return [*new]
    return []


def grow(evidence: Evidence, rest: tuple[int, ...]) -> NextStep:
    """Test blocks of 4, 8, 16 ... of a set that fails as a whole although every pair passes."""
    groups: list[tuple[int, ...]] = []
    for scope in _scopes(evidence, rest):
        if evidence.fails(scope) > 1:
            groups += _next_blocks(evidence, scope)
    return NextStep(kind="grow", groups=groups)


def _next_blocks(evidence: Evidence, scope: tuple[int, ...]) -> list[tuple[int, ...]]:
    by_node: dict[int, list[int]] = {}
    for rank in scope:
        by_node.setdefault(evidence.node_of[rank], []).append(rank)
    nodes = sorted(by_node)
    units = [by_node[node] for node in nodes] if len(nodes) > 1 else [[rank] for rank in scope]
    size = 4
    while size < len(units):
        groups = [
            tuple(sorted(rank for at in block for rank in units[at]))
            for block in rounds.blocks(range(len(units)), size)
        ]
        if any(evidence.fails(group) for group in groups):
            return []
        if new := [group for group in groups if frozenset(group) not in evidence.attempted]:
            return new
        size *= 2
    return []


def narrow(evidence: Evidence) -> NextStep:
    """Test every pair of nodes in a small failing set: a bad link may not have been tried yet."""
    groups: list[tuple[int, ...]] = []
    for trial in evidence.unexplained:
        is_sure = trial.kind == "grow" or evidence.fails(trial.ranks) > 1
        if is_sure and 2 < len(trial.nodes) <= _NARROW + 1:  # noqa: PLR2004  # more than a pair
            nodes = [node for node in sorted(trial.nodes) if node in evidence.pool]
            groups += _both(evidence, rounds.next_round(nodes, _untried(evidence)))
    return NextStep(kind="links", groups=rounds.disjoint(groups))


def all_links(evidence: Evidence) -> NextStep:
    """Test nodes that have not met yet: in time, every link between nodes."""
    pairs = rounds.next_round(_open_nodes(evidence), _untried(evidence))
    return NextStep(kind="links", groups=_both(evidence, pairs))


def control_runs(evidence: Evidence) -> NextStep:
    """Run the next control run of the smallest failing sets; those that need the same, at once."""
    groups = rounds.disjoint([cause.group for cause in (*causes(evidence), *scale(evidence))])
    upcoming = [(group, course(evidence, group).upcoming) for group in groups]
    run = next((run for _, run in upcoming if run is not None), None)
    chosen = [group for group, wanted in upcoming if wanted is not None and wanted == run]
    return NextStep(kind="arms", groups=chosen, control_run=run, repeats=run == ControlRun(env={}))


@uncollected()
def next_step(roster: Roster, history: Sequence[StepResult], job: JobPlan) -> Step | None:
    """Return the next step; None when nothing more can be learnt or is needed.

    A healthy job takes two steps: each rank alone, and all together. The number of steps is bounded
    whatever the results are, and does not grow with the number of nodes.
    """
    if not history:
        groups: list[tuple[int, ...]] = [(rank,) for rank in roster.living]
        return _step(0, NextStep(kind="alone", groups=groups), job, 0.0) if groups else None
    widest = max((len(ranks) for ranks in roster.nodes().values()), default=0)
    if len(history) >= _MOST_STEPS + widest + (len(roster.nodes()) if job.links else 0):
        return None
    evidence = Evidence(roster, history)
    for plan in _plans(evidence, job):
        if plan.groups:
            return _step(len(history), plan, job, _slowest(evidence))
    return None


def _plans(evidence: Evidence, job: JobPlan) -> Iterator[NextStep]:
    """Yield the possible plans, the most telling first; the first with groups is carried out."""
    rest = evidence.rest()
    is_large = len(rest) > job.largest_world
    if evidence.history[-1].step.kind in ("alone", "together") and not is_large:
        yield together(evidence, rest)
    yield gpu_pairs(evidence)
    yield inside(evidence)
    yield node_pairs(evidence)
    yield node_partners(evidence)
    yield gpu_partners(evidence)
    yield unmet(evidence)
    yield repeated(evidence, rest)
    yield routes_in(evidence)
    yield links_again(evidence)
    yield rails(evidence)
    yield grow(evidence, rest)
    yield narrow(evidence)
    yield together(evidence, rest)
    if job.links:
        yield all_links(evidence)
    if job.backend == "nccl":
        yield control_runs(evidence)


def _step(number: int, plan: NextStep, job: JobPlan, slowest: float) -> Step:
    seconds = max(job.least_collective, 5 * slowest)
    if plan.kind == "alone":
        seconds = job.alone
    elif plan.kind == "together":
        seconds = max(job.first_collective, seconds)
    return Step(
        number=number,
        kind=plan.kind,
        groups=tuple(plan.groups),
        backend=plan.control_run.backend if plan.control_run else job.backend,
        seconds=seconds,
        env=dict(plan.control_run.env) if plan.control_run else {},
        tests=job.tests if plan.kind == "alone" else (),
        repeats=plan.repeats,
    )


def _slowest(evidence: Evidence) -> float:
    """Return the seconds of the slowest group that passed."""
    passed = (trial for trial in evidence.plain() if trial.passed)
    return max(
        (result.seconds for trial in passed for result in trial.results.values()), default=0.0
    )
