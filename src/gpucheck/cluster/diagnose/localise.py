"""The next step: the one that will be most informative after the outcomes so far.

Nothing is run here. ``next_step`` is asked again after each step until it returns None.
"""

from collections.abc import Iterator, Sequence

import msgspec

from gpucheck.cluster.diagnose import plans
from gpucheck.cluster.diagnose.culprits import Conclusion, culprits
from gpucheck.cluster.diagnose.evidence import Evidence
from gpucheck.cluster.diagnose.missing import Sights
from gpucheck.cluster.diagnose.plans import Plan
from gpucheck.cluster.diagnose.uncollected import uncollected
from gpucheck.cluster.model import Backend, Roster, Step, StepResult

__all__ = ["Conclusion", "Limits", "Sights", "culprits", "next_step"]

_MOST_STEPS = 100
"""A safety net beyond the rounds that full coverage needs."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What the steps may cost, and what is asked for; times in seconds."""

    backend: Backend
    tests: tuple[str, ...] = ()
    """The self-tests of ``alone``."""
    alone_seconds: float = 30.0
    first_seconds: float = 60.0
    """Deadline of a collective over all ranks, which sets everything up."""
    least_seconds: float = 15.0
    """Deadline in the rounds; five times the slowest group that passed, if that is longer."""
    links: bool = False
    """Whether to test every link between nodes: that takes one round for each node but one."""
    largest_world: int = 4000
    """With more ranks than this, pairs are tried before all together."""


@uncollected()
def next_step(roster: Roster, history: Sequence[StepResult], limits: Limits) -> Step | None:
    """Return the next step; None when nothing more can be learnt or is needed.

    A healthy job takes two steps: each rank alone, and all together. The number of steps is bounded
    whatever the results are, and does not grow with the number of nodes.
    """
    if not history:
        groups: list[tuple[int, ...]] = [(rank,) for rank in roster.living]
        return _step(0, Plan(kind="alone", groups=groups), limits, 0.0) if groups else None
    widest = max((len(ranks) for ranks in roster.nodes().values()), default=0)
    if len(history) >= _MOST_STEPS + widest + (len(roster.nodes()) if limits.links else 0):
        return None
    evidence = Evidence(roster, history)
    for plan in _plans(evidence, limits):
        if plan.groups:
            return _step(len(history), plan, limits, _slowest(evidence))
    return None


def _plans(evidence: Evidence, limits: Limits) -> Iterator[Plan]:
    """Yield the possible plans, the most telling first; the first with groups is carried out."""
    rest = evidence.rest()
    is_large = len(rest) > limits.largest_world
    if evidence.history[-1].step.kind in ("alone", "together") and not is_large:
        yield plans.together(evidence, rest)
    yield plans.gpu_pairs(evidence)
    yield plans.inside(evidence)
    yield plans.node_pairs(evidence)
    yield plans.node_partners(evidence)
    yield plans.gpu_partners(evidence)
    yield plans.unmet(evidence)
    yield plans.repeated(evidence, rest)
    yield plans.ways_in(evidence)
    yield plans.links_again(evidence)
    yield plans.rails(evidence)
    yield plans.grow(evidence, rest)
    yield plans.narrow(evidence)
    yield plans.together(evidence, rest)
    if limits.links:
        yield plans.all_links(evidence)
    if limits.backend == "nccl":
        yield plans.control_runs(evidence)


def _step(number: int, plan: Plan, limits: Limits, slowest: float) -> Step:
    seconds = max(limits.least_seconds, 5 * slowest)
    if plan.kind == "alone":
        seconds = limits.alone_seconds
    elif plan.kind == "together":
        seconds = max(limits.first_seconds, seconds)
    return Step(
        number=number,
        kind=plan.kind,
        groups=tuple(plan.groups),
        backend=plan.control_run.backend if plan.control_run else limits.backend,
        seconds=seconds,
        env=dict(plan.control_run.env) if plan.control_run else {},
        tests=limits.tests if plan.kind == "alone" else (),
        repeats=plan.repeats,
    )


def _slowest(evidence: Evidence) -> float:
    """Return the seconds of the slowest group that passed."""
    passed = (trial for trial in evidence.plain() if trial.passed)
    return max((one.seconds for trial in passed for one in trial.results.values()), default=0.0)
