"""What the steps so far show: which ranks and nodes are good, which fail, and with whom.

A group passes only when every rank in it, and every link that it uses, works. So a pass proves its
ranks good, and a failure accuses nobody by itself. A unit is blamed when it fails with two
different partners that are proven good. A link is blamed when both its ends are proven good. A
failure that includes somebody already blamed is explained and accuses nobody else.
"""

import contextlib
import gc
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import msgspec

from gpucheck.cluster.diagnose import direct_evidence, process_state
from gpucheck.cluster.diagnose.rounds import Pair, pair
from gpucheck.cluster.model import Backend, Kind, RankResult, Roster, StepResult

PHASES = direct_evidence.PHASES
_STORE = PHASES.index("store")
Ranks = frozenset[int]
_NOBODY: Ranks = frozenset()


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Search for no circles of garbage meanwhile; nested, the outermost counts.

    The collector would walk through all living objects again and again: with 100,000 ranks that
    takes as long as the judgement itself.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One group in one step. ``passed`` is None when it was not run, or was cut short."""

    kind: Kind
    group: tuple[int, ...]
    ranks: Ranks
    nodes: frozenset[int]
    backend: Backend
    env: dict[str, str]
    passed: bool | None
    results: dict[int, RankResult]


class Level:
    """Nodes, or ranks, that were tested in pairs: which work, and which fail with which."""

    def __init__(self, proven: set[int], failing: set[Pair], tried: set[Pair]) -> None:
        self.proven = proven
        self.failing = failing
        self.tried = tried
        self.partners: dict[int, set[int]] = {}
        for first, other in failing:
            self.partners.setdefault(first, set()).add(other)
            self.partners.setdefault(other, set()).add(first)

    def good_partners(self, unit: int) -> list[int]:
        """Return the proven-good partners that it fails with."""
        return sorted(self.partners.get(unit, set()) & self.proven)

    def bad(self) -> list[int]:
        """Return the units that fail with two proven-good partners and pass with nobody."""
        return [
            unit
            for unit in sorted(self.partners)
            if unit not in self.proven and len(self.good_partners(unit)) > 1
        ]

    def links(self) -> list[Pair]:
        """Return the failing pairs both of whose ends are proven good."""
        return sorted(
            both for both in self.failing if both[0] in self.proven and both[1] in self.proven
        )


class Evidence:
    """Everything that follows from the steps so far, for planning and for the verdict alike.

    Attributes:
        trials: every group of every step that communicates, in order.
        unexplained: failed trials that no rank or link blamed so far explains, one of each group.
        transients: trials that failed and passed when they were repeated exactly.
        nodes_of_job: the ranks of each node that take part.
        attempted: the groups that were tested as configured, whatever came of it.
        direct: who was named by a step itself, by rank.
        slow: ranks that ran out of time alone because their host was too busy.
        lost: ranks that took part and whose supervisor fell silent.
        ranks, nodes: what pairs of ranks, of nodes, have shown.
        bad_ranks, bad_nodes: who fails with two proven-good partners.
        working: nodes in which some ranks passed among themselves.
        unreached: nodes whose ports ranks of other nodes did not reach: the trials, by those nodes.
        entered: nodes whose port a rank of another node has reached.
        closed: nodes whose ports nobody reached, of two other nodes at least.
        bad_ports: ranks that work within their node and fail with others.
        opened: nodes in which more than two ranks failed together and nobody was named by that.
        bad_node_count: nodes that are bad, or not cleared.
        fails_within: how often groups within a node failed, unexplained.
        guilty: nodes that fail inside, unexplained by a rank or link of theirs.
        links, node_links: pairs that fail although both ends are good.
        pool: the ranks of each node that are not to blame themselves.
    """

    def __init__(self, roster: Roster, history: Sequence[StepResult]) -> None:
        self.roster = roster
        self.history = history
        self.node_of = {rank.rank: rank.node for rank in roster.ranks}
        self.host_of = {rank.node: rank.host for rank in roster.ranks}
        self.backend = next(
            (done.step.backend for done in history if done.step.kind not in ("alone", "arms")), None
        )
        self.trials = list(self._trials())
        self._plain = [
            trial
            for trial in self.trials
            if trial.kind != "arms" or (not trial.env and trial.backend == self.backend)
        ]
        self._passes: dict[Ranks, int] = {}
        self._fails: dict[Ranks, int] = {}
        for trial in self.plain():
            count = self._passes if trial.passed else self._fails
            if trial.passed is not None:
                count[trial.ranks] = count.get(trial.ranks, 0) + 1
        self._passing = [trial for trial in self.plain() if trial.passed]
        self._first: dict[Ranks, Trial] = {}
        for trial in self.plain():
            self._first.setdefault(trial.ranks, trial)
        self.attempted = set(self._first)
        self._under_control: dict[Ranks, list[Trial]] = {}
        for trial in self.trials:
            if trial.kind == "arms":
                self._under_control.setdefault(trial.ranks, []).append(trial)
        self.transients = [
            trial for trial in self.plain() if trial.passed is False and trial.ranks in self._passes
        ]
        self.nodes_of_job = roster.nodes()
        self._passing_of: dict[int, list[Ranks]] = {}
        for trial in self._passing:
            for node in trial.nodes:
                self._passing_of.setdefault(node, []).append(trial.ranks)
        self.lost = {
            rank
            for done in history
            for rank, result in done.results.items()
            if result.status == "lost" and rank in self.node_of
        }
        self.direct = self._named_directly()
        self.slow = {
            result.rank: result
            for done in history
            if done.step.kind == "alone"
            for result in done.results.values()
            if result.rank in self.node_of
            and result.rank not in self.direct
            and process_state.lacked_processor(result)
        }
        self._judge_routes()
        self._judge_ranks()
        self.unexplained = [
            trial
            for ranks, trial in self._first.items()
            if self.fails(ranks) and not self.is_explained(ranks)
        ]
        self._judge_nodes()

    def plain(self) -> list[Trial]:
        """Return the trials that were run as configured, not under a control run."""
        return self._plain

    def times(self, group: Iterable[int]) -> int:
        """Return how often exactly these ranks were tested, as configured, with an outcome."""
        ranks = frozenset(group)
        return self._passes.get(ranks, 0) + self._fails.get(ranks, 0)

    def fails(self, group: Iterable[int]) -> int:
        """Return how often exactly these ranks failed; 0 once they have passed."""
        ranks = frozenset(group)
        return 0 if ranks in self._passes else self._fails.get(ranks, 0)

    def has_passed(self, group: Iterable[int]) -> bool:
        """Whether these ranks passed together, alone or with others."""
        ranks = frozenset(group)
        node = self.node_of[min(ranks)]
        return any(ranks <= passed for passed in self._passing_of.get(node, ()))

    def is_explained(self, ranks: Ranks) -> bool:
        """Whether a member of this group is already blamed."""
        if not ranks.isdisjoint(self._blamed):
            return True
        if len(self.links) < len(ranks):
            return any(first in ranks and other in ranks for first, other in self.links)
        return any(not self._linked.get(rank, _NOBODY).isdisjoint(ranks) for rank in ranks)

    def first(self, group: Iterable[int]) -> Trial:
        """Return the first trial of exactly these ranks, as configured; there must be one."""
        return self._first[frozenset(group)]

    def under_control(self, group: Iterable[int]) -> tuple[Trial, ...]:
        """Return the trials of exactly these ranks under control runs, in order."""
        return tuple(self._under_control.get(frozenset(group), ()))

    def is_accounted(self, trial: Trial) -> bool:
        """Whether a rank, a node or a pair in this trial is known to fail by itself."""
        if self.is_explained(trial.ranks):
            return True
        if not trial.nodes.isdisjoint({*self.guilty, *self.bad_nodes}):
            return True
        return any(
            first in trial.nodes and other in trial.nodes for first, other in self.nodes.failing
        )

    def _trials(self) -> Iterator[Trial]:
        for done in self.history:
            if done.step.kind == "alone":
                continue
            for group in done.step.groups:
                known = {rank: done.results[rank] for rank in group if rank in done.results}
                ranks = frozenset(group)
                if len(ranks) > 1 and ranks <= self.node_of.keys():
                    yield Trial(
                        kind=done.step.kind,
                        group=group,
                        ranks=ranks,
                        nodes=frozenset(map(self.node_of.__getitem__, group)),
                        backend=done.step.backend,
                        env=done.step.env,
                        passed=done.passed(group) or _outcome(known),
                        results=known,
                    )

    def _named_directly(self) -> dict[int, direct_evidence.DirectEvidence]:
        """Collect the ranks that a step named itself, each by the first step that did."""
        found: dict[int, direct_evidence.DirectEvidence] = {}
        for done in self.history:
            if done.step.kind == "alone":
                # CPU ranks do the same work; GPUs and their drivers differ.
                is_same = done.step.backend == "gloo"
                others = (
                    [result for result in done.results.values() if result.passed] if is_same else []
                )
                for rank, result in done.results.items():
                    if rank in done.good or rank not in self.node_of:
                        continue
                    if direct := direct_evidence.alone(result, others):
                        found.setdefault(rank, direct)
        for trial in self.plain():
            if trial.passed is False:
                for direct in direct_evidence.together(trial.group, trial.results, trial.backend):
                    found.setdefault(direct.rank, direct)
        return found

    def _judge_routes(self) -> None:
        """Judge the nodes by whether others reach the ports that their ranks open."""
        self.unreached: dict[int, dict[int, Trial]] = {}
        self.entered: set[int] = set()
        for trial in self.plain():
            if len(trial.nodes) == 1:
                continue
            first = self.node_of[trial.group[0]]
            for result in trial.results.values():
                node = self.node_of[result.rank]
                if node == first:
                    continue
                if result.kind == "store-unreachable":
                    self.unreached.setdefault(first, {}).setdefault(node, trial)
                elif PHASES.index(result.phase) > _STORE:
                    self.entered.add(first)
        self.closed = [
            node
            for node, trials in sorted(self.unreached.items())
            if len(trials) > 1 and node not in self.entered
        ]

    def _judge_ranks(self) -> None:
        """Judge the ranks by their pairs, within a node and across nodes."""
        self._blamed: set[int] = (
            set(self.direct) | set(self.slow) | self.lost | self.roster.dead | self.roster.absent
        )
        self._blamed |= {rank for rank, node in self.node_of.items() if node in self.closed}
        if any(done.step.backend == "nccl" for done in self.history):
            # NCCL refuses two ranks on one GPU: only the first of them can be tested with others.
            self._blamed |= {rank for ranks in self.roster.sharing() for rank in ranks[1:]}
        proven = {rank for trial in self._passing for rank in trial.ranks}
        tried, failing = set(), set()
        for trial in self.plain():
            if len(trial.ranks) == 2:  # noqa: PLR2004  # a pair
                both = pair(*sorted(trial.ranks))
                tried.add(both)
                if self.fails(trial.ranks) and self._blamed.isdisjoint(trial.ranks):
                    failing.add(both)
        self.ranks = Level(proven, failing, tried)
        self.across = {
            rank for trial in self._passing if len(trial.nodes) > 1 for rank in trial.ranks
        }
        self.working = {min(trial.nodes) for trial in self._passing if len(trial.nodes) == 1}
        self.bad_ranks = self.ranks.bad()
        self.bad_ports = self._bad_ports()
        self._blamed |= {*self.bad_ranks, *self.bad_ports}
        self.links = [
            both
            for both in self.ranks.links()
            if self._blamed.isdisjoint(both)
            and (self._reach(both) if self._is_far(*both) else self._has_others(both))
        ]
        self._linked: dict[int, set[int]] = {}
        for first, other in self.links:
            self._linked.setdefault(first, set()).add(other)
            self._linked.setdefault(other, set()).add(first)
        self.opened = {
            self.node_of[trial.group[0]]
            for trial in self.plain()
            if len(trial.nodes) == 1
            and len(trial.ranks) > 2  # noqa: PLR2004  # more than a pair
            and self.fails(trial.ranks)
            and trial.ranks.isdisjoint(self.direct.keys() | self.lost)
        }

    def _has_others(self, both: Pair) -> bool:
        """Whether other pairs of the node pass, or there are none; else they share the fault."""
        node = self.node_of[both[0]]
        good = [
            rank
            for rank in self.nodes_of_job.get(node, ())
            if rank in self.ranks.proven and rank not in self._blamed
        ]
        return len(good) <= 2 or node in self.working  # noqa: PLR2004  # a pair

    def _reach(self, both: Pair) -> bool:
        return both[0] in self.across and both[1] in self.across

    def _bad_ports(self) -> list[int]:
        """Return the ranks that fail with other nodes only, while a neighbour of theirs does not.

        Such a rank works within its node, so its way out is broken: the adapter that it uses.
        """
        reaching = {self.node_of[rank] for rank in self.across}
        return [
            rank
            for rank, partners in sorted(self.ranks.partners.items())
            if rank in self.ranks.proven
            and rank not in self.across
            and self.node_of[rank] in reaching
            and len({partner for partner in partners & self.across if self._is_far(rank, partner)})
            > 1
        ]

    def _is_far(self, first: int, other: int) -> bool:
        return self.node_of[first] != self.node_of[other]

    def _judge_nodes(self) -> None:
        """Judge the nodes by their pairs: groups of all unblamed ranks of two nodes."""
        self.pool: dict[int, tuple[int, ...]] = {}
        for node, ranks in self.nodes_of_job.items():
            if left := tuple(rank for rank in ranks if rank not in self._blamed):
                self.pool[node] = left
        proven: set[int] = set()
        for trial in self._passing:
            if len(trial.nodes) > 1:
                proven.update(
                    node for node in trial.nodes if trial.ranks.issuperset(self._left(node))
                )
        tried = {
            pair(*sorted(trial.nodes))
            for trial in self.plain()
            if len(trial.nodes) == 2  # noqa: PLR2004  # a pair
        }
        failing: set[Pair] = set()
        guilty: set[int] = set()
        self.fails_within: dict[int, int] = {}
        for trial in self.unexplained:
            if len(trial.nodes) == 1:
                node = min(trial.nodes)
                guilty.add(node)
                times = self.fails_within.get(node, 0)
                self.fails_within[node] = times + self.fails(trial.ranks)
            elif len(trial.nodes) == 2:  # noqa: PLR2004  # a pair
                failing.add(pair(*sorted(trial.nodes)))
        self.guilty = sorted(guilty & self.pool.keys())
        failing = {both for both in failing if guilty.isdisjoint(both)}
        self.nodes = Level(proven, failing, tried)
        self.bad_nodes = [node for node in self.nodes.bad() if node in self.pool]
        self.node_links = self.nodes.links()
        single = {self.node_of[rank] for rank in self.bad_ranks}
        suspects = {node for both in failing for node in both} - proven
        bad = {node for node in single if len(self.nodes_of_job[node]) == 1}
        self.bad_node_count = len({*bad, *suspects, *self.bad_nodes, *self.guilty})

    def _left(self, node: int) -> tuple[int, ...]:
        """Return a node's unblamed ranks; an impossible one if none is left."""
        return self.pool.get(node, (-1,))

    def rest(self) -> tuple[int, ...]:
        """Return the ranks that should work together: nobody blamed, one end of each bad link.

        Where some nodes are proven good in pairs, the others are left out.
        """
        ends = {other for _, other in self.links}
        far = {other for _, other in self.node_links}
        out = {*self.guilty, *self.bad_nodes, *far}
        if any(self.nodes.failing):
            suspects = {node for both in self.nodes.failing for node in both}
            if self.nodes.proven:
                out |= suspects - self.nodes.proven
        return tuple(
            sorted(
                rank
                for node, ranks in self.pool.items()
                if node not in out
                for rank in ranks
                if rank not in ends
            )
        )


def _outcome(known: dict[int, RankResult]) -> Literal[False] | None:
    """Return that a group failed; None when it was not run, or nobody in it failed."""
    return False if any(map(direct_evidence.went_wrong, known.values())) else None
