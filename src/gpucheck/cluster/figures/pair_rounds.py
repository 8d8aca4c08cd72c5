"""Which pairs of nodes a job that works is measured in, to find a host behind a slow link.

A collective over all ranks is as slow as its slowest link, and says nothing about where that is. So
every node is measured with a neighbour, all pairs at once. Where a pair is slower than the others,
its nodes are measured with partners that are not. A job of two nodes is one pair: there is nothing
to compare it with.
"""

from collections.abc import Mapping, Sequence

from gpucheck.cluster.diagnose import rounds
from gpucheck.cluster.diagnose.rounds import Pair, pair
from gpucheck.cluster.figures import slow_links
from gpucheck.cluster.figures.bandwidth import Timed, timed
from gpucheck.cluster.figures.slow_links import Known
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.model import Backend, Step, StepResult

_FEWEST = 3
"""Nodes, and pairs: of two nobody knows which is the odd one."""
_ROUNDS = 4
"""Steps at most that look for partners of suspects."""
_PARTNERS = 2
_SIZES: Mapping[Backend, tuple[int, int]] = {"gloo": (1 << 20, 1 << 22), "nccl": (1 << 24, 1 << 27)}
"""Bytes of an all-reduce where the network is slow, and otherwise."""
_IS_SLOW = 0.5
"""Seconds of an all-reduce over the whole job from which on the smaller size is used."""
_TIMES_LONGER = 2.0
"""Two nodes may take so many times as long as the whole job did, for the same number of bytes."""


def next_step(history: Sequence[StepResult], known: Known, plan: JobPlan) -> Step | None:
    """Return the next step; None when all pairs are alike, or the suspects have met enough others.

    Only a job in which everything passed is measured: elsewhere the fault comes first.
    """
    nodes = known.roster.nodes()
    whole = next((one for one in timed(known.roster, history) if one.nodes == len(nodes)), None)
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
        groups=tuple(tuple(sorted(nodes[one] + nodes[other])) for one, other in pairs),
        backend=known.backend,
        seconds=max(plan.least_collective, min(plan.first_collective, seconds)),
        sizes=(size,),
        only_measures=is_first,
    )


def _passed(done: StepResult) -> bool:
    return all(one.passed for one in done.results.values())


def sizes_of(history: Sequence[StepResult], group: tuple[int, ...]) -> tuple[int, ...]:
    """Return the sizes with which a group was tested last, so that it is tested with them again."""
    return next((one.step.sizes for one in reversed(history) if group in one.step.groups), ())


class _Round:
    """The pairs of nodes that were measured, and which of them are slower than the others."""

    def __init__(self, history: Sequence[StepResult], known: Known) -> None:
        self.nodes = {
            node: ranks
            for node, ranks in known.roster.nodes().items()
            if known.late.isdisjoint(ranks)
        }
        self._measured: dict[Pair, Timed] = {}
        node_of = {one.rank: one.node for one in known.roster.ranks}
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
        for one in timed(known.roster, history):
            both = sorted({node_of[rank] for rank in one.group})
            if len(both) == 2 and pair(*both) in self._met:  # noqa: PLR2004  # a pair of nodes
                self._measured[pair(*both)] = one
        self._slow = {
            pair(*sorted({node_of[rank] for rank in group}))
            for group in slow_links.slow_once(history, known)
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
            fastest = max(self._measured.items(), key=lambda one: one[1].busbw, default=None)
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
        (first, one), (second, other) = self._measured.items()
        if one.likeness != other.likeness:
            return set()
        slower, faster = (
            ((first, one), other) if one.busbw < other.busbw else ((second, other), one)
        )
        return {slower[0]} if slow_links.is_slower(slower[1], faster) else set()
