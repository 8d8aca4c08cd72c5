"""A simulated cluster: groups fail by known faults, so that the localiser can be held to them."""

from collections.abc import Callable, Iterable, Sequence

import msgspec

from gpucheck.cluster.diagnose.localise import Conclusion, Sights, culprits, next_step
from gpucheck.cluster.diagnose.missing import lost_ranks
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.model import Rank, RankResult, Roster, Step, StepResult
from gpucheck.cluster.store.task_messages import Seen
from gpucheck.facts.preflight import Culprit

Results = dict[int, RankResult]
Behaviour = Callable[[Step, tuple[int, ...]], Results | None]
"""What becomes of a group; None leaves it to the next fault, and in the end it passes."""


def roster(*sizes: int) -> Roster:
    """Nodes with these numbers of ranks, each node with one task."""
    ranks: list[Rank] = []
    for node, size in enumerate(sizes):
        for local in range(size):
            one = Rank(
                rank=len(ranks), task=node, node=node, host=f"n{node}", local=local,
                device=f"cuda:{local}", gpu=local, pci=f"0000:{local:02x}:00.0",
                uuid=f"GPU-{node}-{local}",
            )  # fmt: skip
            ranks.append(one)
    return Roster(ranks=tuple(ranks))


def passed(group: Iterable[int]) -> Results:
    return {
        rank: RankResult(rank=rank, status="passed", collective=8, seconds=0.5) for rank in group
    }


def hung(group: Sequence[int], phase: str = "enter", collective: int = 1) -> Results:
    """Everybody entered, nobody left."""
    return {
        rank: RankResult(
            rank=rank, status="timed-out", phase=phase, collective=collective,  # type: ignore[arg-type]
            kind="collective-timeout", order=at,
        )
        for at, rank in enumerate(group, start=1)
    }  # fmt: skip


class Fabric:
    """A cluster with faults; counts the steps that it has done."""

    def __init__(self, of: Roster, *faults: Behaviour, sights: Sights | None = None) -> None:
        self.roster = of
        self.faults = faults
        self.history: list[StepResult] = []
        self._sights = sights

    def run(self, plan: JobPlan | None = None, most: int = 10_000) -> Conclusion:
        """Go through all steps and judge."""
        plan = plan or JobPlan()
        while (step := next_step(self.roster, self.history, plan)) is not None:
            self.do(step)
            assert len(self.history) <= most, self.kinds
        return culprits(self.roster, self.history, self._sights or self._nobody_reaches())

    def do(self, step: Step) -> None:
        """Do one step."""
        check_step(self.roster, step, len(self.history))
        results: Results = {}
        for group in step.groups:
            results.update(self._outcome(step, group))
        self.history.append(StepResult(step=step, results=results))
        lost = {rank for rank, one in results.items() if one.status == "lost"}
        self.roster = msgspec.structs.replace(self.roster, dead=self.roster.dead | lost)

    def _nobody_reaches(self) -> Sights:
        """Return what all others see of tasks that are not heard: nothing."""
        tasks = {one.rank: one.task for one in self.roster.ranks}
        silent = {tasks[rank] for rank in lost_ranks(self.history) | self.roster.absent}
        heard = {tasks[rank] for rank in self.roster.living}
        views: dict[int, Seen] = dict.fromkeys(heard, "unreachable")
        return Sights(seen=dict.fromkeys(silent, views))

    @property
    def kinds(self) -> list[str]:
        return [one.step.kind for one in self.history]

    def _outcome(self, step: Step, group: tuple[int, ...]) -> Results:
        for fault in self.faults:
            if (found := fault(step, group)) is not None:
                return found
        return passed(group)


def check_step(of: Roster, step: Step, number: int) -> None:
    """Hold a step to what every step must be."""
    members = [rank for group in step.groups for rank in group]
    assert step.number == number
    assert step.groups
    assert len(members) == len(set(members)), f"{step.kind}: a rank stands in two groups"
    assert set(members) <= set(of.living)
    if step.kind == "alone":
        assert all(len(group) == 1 for group in step.groups)
    else:
        assert all(len(group) > 1 for group in step.groups)
    assert step.seconds > 0


def bad_ranks(*ranks: int) -> Behaviour:
    """Ranks with which every collective hangs, and which pass alone."""
    bad = set(ranks)

    def fault(step: Step, group: tuple[int, ...]) -> Results | None:
        return None if step.kind == "alone" or bad.isdisjoint(group) else hung(group)

    return fault


def bad_links(*links: tuple[int, int], phase: str = "enter") -> Behaviour:
    """Pairs of ranks that hang whenever both are in a group."""

    def fault(_step: Step, group: tuple[int, ...]) -> Results | None:
        members = set(group)
        both = any(one in members and other in members for one, other in links)
        return hung(group, phase) if both else None

    return fault


def refuses(sharing: Iterable[int]) -> Behaviour:
    """NCCL over these ranks, which share a GPU: each of their group gets its error."""
    both = set(sharing)

    def fault(step: Step, group: tuple[int, ...]) -> Results | None:
        if step.backend != "nccl" or not both.issubset(group):
            return None
        said = "NCCL error in: NCCLUtils.cpp:93, invalid usage, NCCL version 2.28.9"
        return {
            rank: RankResult(
                rank=rank, status="failed", phase="enter", kind="nccl-error", detail=said, order=at,
                data={"nccl_result": ""},
            )
            for at, rank in enumerate(group, start=1)
        }  # fmt: skip

    return fault


def cut_off(of: Roster, one: int, other: int) -> Behaviour:
    """Two nodes that find no way to each other; whoever else is in their group waits for them."""
    told = {"address": "10.77.0.2", "port": 41083, "error": "timed out"}

    def fault(_step: Step, group: tuple[int, ...]) -> Results | None:
        ends = {node: [r for r in group if of.ranks[r].node == node] for node in (one, other)}
        if not all(ends.values()):
            return None
        first = of.ranks[group[0]].node
        if first not in ends:
            return {**hung(group), **hung([*ends[one], *ends[other]], "connect", 0)}
        outside = ends[other if first == one else one]
        waiting = [
            RankResult(rank=rank, status="stopped", phase="connect", order=len(group))
            for rank in group
        ]
        failed = [
            RankResult(
                rank=rank, status="failed", phase="store", kind="store-unreachable",
                detail="10.77.0.2 port 41083: timed out", data=told, order=at,
            )
            for at, rank in enumerate(outside, start=1)
        ]  # fmt: skip
        return {result.rank: result for result in (*waiting, *failed)}

    return fault


def lets_nobody_in(of: Roster, node: int) -> Behaviour:
    """A node that reaches all others, and whose ports nobody reaches.

    In a pair whose first rank is elsewhere it passes; in a larger group some have to connect to it.
    """
    told = {"address": "10.77.0.9", "port": 41083, "error": "timed out"}

    def fault(_step: Step, group: tuple[int, ...]) -> Results | None:
        own = [rank for rank in group if of.ranks[rank].node == node]
        far = [rank for rank in group if of.ranks[rank].node != node]
        if not own or not far:
            return None
        if of.ranks[group[0]].node == node:
            failed = {
                rank: RankResult(
                    rank=rank, status="failed", phase="store", kind="store-unreachable",
                    detail="10.77.0.9 port 41083: timed out", data=told, order=at,
                )
                for at, rank in enumerate(far, start=1)
            }  # fmt: skip
            waiting = {
                rank: RankResult(rank=rank, status="stopped", phase="connect", order=len(group))
                for rank in own
            }
            return {**waiting, **failed}
        after = [rank for rank in far if rank > own[0]]
        return {**hung(group), **hung([*own, *after], "connect", 0)} if after else None

    return fault


def never_enters(rank: int, phase: str = "connect") -> Behaviour:
    """A rank that others wait for, in the first collective."""

    def fault(step: Step, group: tuple[int, ...]) -> Results | None:
        if step.kind == "alone" or rank not in group:
            return None
        results = hung(group)
        late = msgspec.structs.replace(results[rank], phase=phase, collective=0)
        return {**results, rank: late}

    return fault


def crashes(rank: int) -> Behaviour:
    """A rank that dies of a signal; the others lose it, some of them are heard of earlier."""

    def fault(step: Step, group: tuple[int, ...]) -> Results | None:
        if step.kind == "alone" or rank not in group:
            return None
        results = {
            one: RankResult(
                rank=one, status="failed", phase="enter", collective=1, kind="peer-lost", order=at
            )
            for at, one in enumerate(group, start=1)
        }
        results[rank] = RankResult(
            rank=rank, status="crashed", phase="enter", collective=1, kind="signal",
            detail="killed by signal 11 (SIGSEGV)", data={"signal": 11}, order=len(group) + 1,
        )  # fmt: skip
        return results

    return fault


def wrong_sums(rank: int, *, named: bool = True) -> Behaviour:
    """A rank whose contribution is lost; ``named``: it can be told from the sums."""

    def fault(step: Step, group: tuple[int, ...]) -> Results | None:
        if step.kind == "alone" or rank not in group:
            return None
        data = {"rank": rank, "fault": "missing"} if named else {}
        return {
            one: RankResult(
                rank=one, status="failed", phase="done", collective=8, kind="wrong-value",
                data=dict(data), order=at,
            )
            for at, one in enumerate(group, start=1)
        }  # fmt: skip

    return fault


def lost(*ranks: int) -> Behaviour:
    """Ranks whose supervisor falls silent in the first collective."""

    def fault(step: Step, group: tuple[int, ...]) -> Results | None:
        gone = set(ranks).intersection(group)
        if step.kind == "alone" or not gone:
            return None
        silent = {
            rank: RankResult(rank=rank, status="lost", phase="connect", kind="silent")
            for rank in gone
        }
        return {**hung(group), **silent}

    return fault


def needs(least: int, only: Iterable[int] = ()) -> Behaviour:
    """A fault by which groups of at least this many ranks hang, or of this many of some ranks."""
    these = set(only)

    def fault(step: Step, group: tuple[int, ...]) -> Results | None:
        count = len(these.intersection(group)) if these else len(group)
        return hung(group) if step.kind != "alone" and count >= least else None

    return fault


def passes_with(variable: str, behaviour: Behaviour) -> Behaviour:
    """A fault that is gone with this variable, or over gloo where NCCL is at fault."""

    def fault(step: Step, group: tuple[int, ...]) -> Results | None:
        passes = variable in step.env or (step.kind == "arms" and step.backend == "gloo")
        return None if passes else behaviour(step, group)

    return fault


def at_times(times: Iterable[int], behaviour: Behaviour) -> Behaviour:
    """A fault that shows in these steps only, by their number."""
    steps = set(times)

    def fault(step: Step, group: tuple[int, ...]) -> Results | None:
        return behaviour(step, group) if step.number in steps else None

    return fault


def blamed(conclusion: Conclusion) -> list[tuple[str, tuple[int, ...]]]:
    """Who is named, as slug and ranks."""
    return [(one.slug, one.ranks) for one in conclusion.culprits]


def sure(conclusion: Conclusion) -> list[Culprit]:
    """The culprits that are named with more than ``possible``."""
    return [one for one in conclusion.culprits if one.confidence.value != "possible"]
