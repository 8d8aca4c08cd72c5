"""How long the analysis of a pre-flight takes: every step and the verdict, of 10,000 ranks.

    PYTHON benchmarks/preflight_analysis.py [--nodes 1250] [--gpus 8]

Simulated: ranks on as many nodes as a quarter may be are bad, each hanging every collective that
it is in. What is timed, in seconds of CPU, is what the analysis itself does: to plan each step from
the results so far, to name who is to blame, and the whole judgement with drift, limits, figures and
rules, half of the nodes having another torch. Budget: 2 s for each.
"""

import argparse
import sys
import time

from gpucheck.cluster import launcher
from gpucheck.cluster.attendance import Heard
from gpucheck.cluster.diagnose.localise import culprits, next_step
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.judgement import Judgement
from gpucheck.cluster.model import Rank, RankResult, Roster, Step, StepResult, TaskFacts
from gpucheck.tables import Tables, tables_dir

_BUDGET = 2.0


def _roster(nodes: int, gpus: int) -> Roster:
    ranks = (
        Rank(rank=node * gpus + gpu, task=node, node=node, host=f"n{node}", local=gpu, gpu=gpu)
        for node in range(nodes)
        for gpu in range(gpus)
    )
    return Roster(ranks=tuple(ranks))


def _done(step: Step, bad: set[int]) -> StepResult:
    results = {}
    for group in step.groups:
        fails = step.kind != "alone" and not bad.isdisjoint(group)
        for rank in group:
            results[rank] = RankResult(
                rank=rank,
                status="timed-out" if fails else "passed",
                phase="enter" if fails else "done",
                collective=1,
                order=1 if fails else 0,
            )
    return StepResult(step=step, results=results)


def _measure(roster: Roster, bad: set[int]) -> bool:
    history: list[StepResult] = []
    slowest = 0.0
    while True:
        start = time.process_time()
        step = next_step(roster, history, JobPlan())
        slowest = max(slowest, time.process_time() - start)
        if step is None:
            break
        history.append(_done(step, bad))
    start = time.process_time()
    conclusion = culprits(roster, history)
    verdict = time.process_time() - start
    named = {rank for one in conclusion.culprits for rank in one.ranks}
    judged = _judge(roster, history)
    print(
        f"{len(roster.ranks):6} ranks, {len(bad):4} bad: {len(history):3} steps, the slowest "
        f"planned in {slowest:.2f} s, the culprits in {verdict:.2f} s, all judged in {judged:.2f} s"
    )
    if named != bad:
        print(f"wrong: {len(named - bad)} good ranks named, {len(bad - named)} bad ones not")
    return named == bad and max(slowest, verdict, judged) < _BUDGET


def _judge(roster: Roster, history: list[StepResult]) -> float:
    """Return how long the whole judgement takes."""
    tables = Tables(tables_dir(None))
    half = len(roster.ranks) // 2
    facts = {
        one.task: TaskFacts(task=one.task, host=one.host, torch=f"2.{one.rank // half}.0")
        for one in roster.ranks
    }
    judgement = Judgement(
        JobPlan(), launcher.alone({}), tables, local=lambda: None, clock=lambda: 1.0
    )
    judgement.finish(Heard(roster=roster, facts=facts, history=[]))  # rules are imported, once
    start = time.process_time()
    judgement.finish(Heard(roster=roster, facts=facts, history=history))
    return time.process_time() - start


def main() -> int:
    """Measure; return 1 where a budget is not kept, or who is named is not who is bad."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1250)
    parser.add_argument("--gpus", type=int, default=8)
    given = parser.parse_args()
    roster = _roster(given.nodes, given.gpus)
    most = given.nodes // 4
    good = [
        _measure(roster, {(node * 4) * given.gpus + node % given.gpus for node in range(count)})
        for count in (0, 1, 2, most)
    ]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
