"""Who makes the others wait, and who does not although it looks like that."""

import time

import msgspec
from each import each
from fabric_support import roster
from preflight_facts import facts

from gpucheck.cluster.figures import slow
from gpucheck.cluster.model import Pace, RankResult, Roster, Step, StepResult, Throttling
from gpucheck.facts import builtins
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Culprit

TIMES = 12
ROSTER = roster(2, 2)


def paced(
    late: dict[int, float], *, times: int = TIMES, of: int = TIMES, delayed: float = 0.0,
    job: Roster = ROSTER,
) -> list[StepResult]:  # fmt: skip
    """A step in which some ranks came so many seconds late, in so many of its collectives."""
    group = tuple(one.rank for one in job.ranks)
    latest = max(late.values(), default=0.0)
    results = {}
    for rank in group:
        own = [0.001 + (late.get(rank, 0.0) if at < times else 0.0) for at in range(of)]
        waited = [0.002 + (latest - late.get(rank, 0.0) if at < times else 0.0) for at in range(of)]
        pace = Pace(
            own=tuple(own), waited=tuple(waited),
            delayed=tuple(min(delayed, one) for one in own),
        )  # fmt: skip
        results[rank] = RankResult(rank=rank, status="passed", collective=of, pace=pace)
    step = Step(number=1, kind="together", groups=(group,), backend="gloo", seconds=60)
    return [StepResult(step=step, results=results)]


def found(history: list[StepResult], job: Roster = ROSTER) -> list[Culprit]:
    return slow.slowed(job, history)


@each("rank", range(4))
def test_a_rank_that_is_late_to_every_collective(rank: int) -> None:
    (one,) = found(paced({rank: 3.0}))
    assert (one.slug, one.ranks, one.confidence) == ("rank-slow", (rank,), Confidence.CERTAIN)
    assert one.severity is Severity.ERROR
    assert "made the others wait 3.0 s in each of 12 collectives (12 were" in one.evidence


def test_of_two_ranks_the_late_one_is_named() -> None:
    two = roster(1, 1)
    (one,) = found(paced({1: 3.0}, job=two), two)
    assert one.ranks == (1,)


def test_the_late_ranks_of_a_host_are_one_cause() -> None:
    job = roster(2, 2, 2)
    (one,) = found(paced({2: 3.0, 3: 2.9}, job=job), job)
    assert one.ranks == (2, 3)


def test_ranks_of_two_hosts_are_two() -> None:
    job = roster(1, 1, 1, 1, 1, 1)
    assert [one.ranks for one in found(paced({1: 3.0, 4: 2.0}, job=job), job)] == [(1,), (4,)]


def test_a_rank_that_is_a_little_late_is_a_warning() -> None:
    (one,) = found(paced({2: 0.3}))
    assert one.severity is Severity.WARNING
    assert found(paced({2: 0.1})) == []


def test_time_without_a_processor_accuses_nobody() -> None:
    assert found(paced({2: 3.0}, delayed=2.9)) == []
    assert len(found(paced({2: 3.0}, delayed=1.0))) == 1


def test_who_is_late_some_of_the_times_is_not_named() -> None:
    assert found(paced({2: 3.0}, times=9)) == []
    assert len(found(paced({2: 3.0}, times=10))) == 1


def test_a_few_collectives_say_nothing() -> None:
    assert found(paced({2: 3.0}, of=4)) == []


def test_where_most_are_late_nobody_is() -> None:
    assert found(paced({0: 3.0, 1: 3.0, 2: 3.0})) == []


def test_others_that_did_not_wait_accuse_nobody() -> None:
    """Nobody waits for a rank that is slow between the collectives of other groups."""
    (done,) = paced({2: 3.0})
    results = {
        rank: msgspec.structs.replace(
            one, pace=msgspec.structs.replace(one.pace, waited=(0.001,) * TIMES)
        )
        for rank, one in done.results.items()
        if one.pace is not None
    }
    assert found([msgspec.structs.replace(done, results=results)]) == []


def test_a_group_that_failed_names_nobody_here() -> None:
    (done,) = paced({2: 3.0})
    broken = msgspec.structs.replace(done.results[0], status="failed")
    assert found([msgspec.structs.replace(done, results={**done.results, 0: broken})]) == []


def test_ranks_without_a_pace_are_left_out() -> None:
    (done,) = paced({2: 3.0})
    results = {rank: msgspec.structs.replace(one, pace=None) for rank, one in done.results.items()}
    assert found([msgspec.structs.replace(done, results=results)]) == []


def held(periods: int, count: int, processors: float = 0.1) -> Throttling:
    return Throttling(periods=periods, throttled=count, processors=processors)


@each(
    ("limits", "named"),
    [
        ({1: held(124, 119)}, [("n1", Severity.ERROR)]),
        ({1: held(124, 119, 1.0)}, [("n1", Severity.WARNING)]),
        ({1: held(124, 40)}, []),
        ({1: held(15, 15)}, []),
        ({at: held(124, 119) for at in range(4)}, []),
        ({at: held(124, 119) for at in range(3)}, []),
        ({at: held(124, 30) for at in (0, 2, 3)} | {1: held(124, 119)}, []),
        ({}, []),
    ],
)
def test_a_limit_on_processor_time(
    limits: dict[int, Throttling], named: list[tuple[str, Severity]]
) -> None:
    job = roster(1, 1, 1, 1)
    said = {
        task: msgspec.structs.replace(one, host=f"n{task}", throttling=limits.get(task))
        for task, one in facts(job).items()
    }
    entries = slow.throttled(job, said)
    assert [(one.host, one.severity) for one in entries] == named
    for one in entries:
        assert "in 119 of 124 periods" in one.evidence
        assert builtins(one.data)["fixes"]


def test_of_thousands_of_ranks_a_fifth_is_late() -> None:
    job = roster(*[10] * 200)
    late = {rank: 3.0 for rank in range(2000) if rank // 10 % 5 == 0}
    history = paced(late, of=64, times=64, job=job)
    begun = time.process_time()
    causes = found(history, job)
    assert time.process_time() - begun < 3
    assert sorted(rank for one in causes for rank in one.ranks) == sorted(late)
