"""From what was heard to the verdict."""

from typing import Any

import fabric_support
import msgspec
import pytest

from gpucheck.cluster import launcher
from gpucheck.cluster.attendance import Heard
from gpucheck.cluster.job_plan import JobPlan, parse_drill
from gpucheck.cluster.judgement import Judgement
from gpucheck.cluster.model import Rank, RankResult, Roster, Step, StepResult, TaskFacts
from gpucheck.cluster.use_case import roots
from gpucheck.facts import builtins
from gpucheck.facts.preflight import HeldUp, Look
from gpucheck.facts.selftests import Level
from gpucheck.facts.snapshot import ProbeRuns, Snapshot
from gpucheck.facts.torch import TorchBuild
from gpucheck.interface.requirements import Requirements
from gpucheck.tables import Tables, tables_dir

RANKS = 4


@pytest.fixture
def tables() -> Tables:
    return Tables(tables_dir(None))


def judgement(tables: Tables, local: Snapshot | None = None, **more: Any) -> Judgement:  # noqa: ANN401
    plan = more.pop("plan", JobPlan())
    return Judgement(
        plan, launcher.alone({}), tables, local=lambda: local, clock=lambda: 12.5, **more
    )


def heard(*history: StepResult, **more: Any) -> Heard:  # noqa: ANN401  # fields of Heard
    ranks = tuple(Rank(rank=at, task=at, node=0, host="a", local=at) for at in range(RANKS))
    facts = {at: TaskFacts(task=at, host="a", torch="2.13.0", devices=[]) for at in range(RANKS)}
    return Heard(
        **{"roster": Roster(ranks=ranks), "facts": facts, "history": list(history), **more}
    )


def alone(number: int, repeats: bool = False, **rates: float) -> StepResult:  # noqa: FBT001, FBT002
    step = Step(
        number=number, kind="alone", groups=tuple((at,) for at in range(RANKS)), backend="gloo",
        seconds=30, repeats=repeats,
    )  # fmt: skip
    results = {
        at: RankResult(
            rank=at,
            status="passed",
            measurements={"fp32 TFLOP/s": rates.get(f"r{at}", 1.0)},
        )
        for at in range(RANKS)
    }
    return StepResult(step=step, results=results)


def together(number: int, *ranks: int, wrong: int | None = None) -> StepResult:
    step = Step(number=number, kind="together", groups=(ranks,), backend="gloo", seconds=30)
    bad = {"status": "failed", "kind": "wrong-value", "data": {"rank": wrong, "fault": "missing"}}
    results = {
        at: RankResult(rank=at, phase="done", order=at + 1, **bad)  # type: ignore[arg-type]
        if wrong is not None
        else RankResult(rank=at, status="passed")
        for at in ranks
    }
    return StepResult(step=step, results=results)


def test_all_is_well(tables: Tables) -> None:
    judge = judgement(tables)
    found = heard(alone(0), together(1, 0, 1, 2, 3))
    assert judge.next_step(found) is None
    told = judge.finish(found)
    assert (told.exit, told.exit_class, told.culprits) == (0, "healthy", ())
    assert judge.result is not None
    assert judge.result.report.verdict == "healthy"
    assert judge.result.preflight.steps == ["alone", "together"]
    assert judge.result.preflight.seconds == 12.5


def test_a_rank_that_waited_and_then_passed_says_where_it_was_held_up(tables: Tables) -> None:
    judge = judgement(tables)
    waited = together(1, 0, 1, 2, 3)
    for rank in (0, 1, 2):
        waited.results[rank] = RankResult(
            rank=rank, status="stopped", phase="enter", phase_seconds={"enter": 30.0}
        )
    waited.results[3] = RankResult(
        rank=3, status="timed-out", phase="connect", order=1, phase_seconds={"connect": 29.5}
    )
    judge.finish(heard(alone(0), waited, together(2, 0, 1, 2)))
    assert judge.result is not None
    ranks = judge.result.preflight.ranks or []
    assert ranks[0].status == "passed"
    held_up = HeldUp(step=1, phase="enter", phase_seconds={"enter": 30.0})
    assert [one.held_up for one in ranks[:3]] == [held_up] * 3
    assert ranks[3].held_up == HeldUp(step=1, phase="connect", phase_seconds={"connect": 29.5})


def test_a_rank_whose_first_bad_step_nobody_timed_is_held_up_nowhere(tables: Tables) -> None:
    judge = judgement(tables)
    lost, later = together(1, 0, 1, 2, 3), together(2, 0, 1, 2, 3)
    lost.results[3] = RankResult(rank=3, status="lost", phase="start", order=1)
    later.results[3] = RankResult(
        rank=3, status="timed-out", phase="enter", order=2, phase_seconds={"enter": 9.0}
    )
    judge.finish(heard(alone(0), lost, later))
    assert judge.result is not None
    assert [one.held_up for one in judge.result.preflight.ranks or ()] == [None] * 4


def test_two_faults_at_once_are_both_named_whoever_measures_again(tables: Tables) -> None:
    judge = judgement(tables)
    steps = [alone(0, r3=0.2), together(1, 0, 1, 2, 3, wrong=1), together(2, 0, 2, 3)]
    again = judge.next_step(heard(*steps))
    assert again is not None
    assert (again.kind, again.repeats) == ("alone", True)
    told = judge.finish(heard(*steps, alone(3, repeats=True, r3=0.2)))
    assert {(one.slug, one.ranks) for one in told.culprits} == {
        ("gpu-slow", (3,)), ("wrong-result", (1,)),
    }  # fmt: skip
    assert told.exit == 1


def test_who_was_slow_once_only_is_not_accused(tables: Tables) -> None:
    told = judgement(tables).finish(
        heard(alone(0, r3=0.2), together(1, 0, 1, 2, 3), alone(2, repeats=True))
    )
    assert told.exit == 0


def test_who_only_waited_is_not_shown_as_bad(tables: Tables) -> None:
    judge = judgement(tables)
    judge.finish(heard(alone(0), together(1, 0, 1, 2, 3, wrong=1), together(2, 0, 2, 3)))
    assert judge.result is not None
    ranks = judge.result.preflight.ranks or []
    assert [one.status for one in ranks] == ["passed", "failed", "passed", "passed"]


def test_an_end_without_a_culprit_is_inconclusive(tables: Tables) -> None:
    judge = judgement(tables)
    told = judge.finish(heard(alone(0), stopped_because="the time limit of the run was reached"))
    assert (told.exit, told.exit_class) == (3, "inconclusive")
    assert "time limit" in told.why
    assert judge.result is not None
    assert judge.result.report.verdict == "unknown"
    assert judge.result.report.open_questions


def test_who_came_late_is_not_called_missing(tables: Tables) -> None:
    roster = Roster(ranks=heard().roster.ranks, absent=frozenset({3}))
    told = judgement(tables).finish(heard(alone(0), together(1, 0, 1, 2), roster=roster, late=(3,)))
    assert told.exit == 3
    assert told.culprits == ()
    assert "rank 3 came after the ranks were assigned" in told.why


def test_nobody_at_all_is_inconclusive_or_missing_but_never_fine(tables: Tables) -> None:
    roster = Roster(ranks=heard().roster.ranks, absent=frozenset({1, 2, 3}))
    told = judgement(tables).finish(heard(roster=roster, facts={}, stopped_because="it was told"))
    assert told.exit == 1
    assert told.culprits[0].slug == "rank-missing"


def test_a_task_0_that_lost_its_own_store_accuses_nobody(tables: Tables) -> None:
    """It was starved: whoever had not come, fell silent or took too long may be well."""
    roster = Roster(ranks=heard().roster.ranks, absent=frozenset({2, 3}))
    step = alone(0)
    step.results[1] = RankResult(rank=1, status="lost", kind="silent")
    known = heard(
        step, roster=roster, is_blind=True, awaited=frozenset({2, 3}),
        stopped_because="task 0 lost its own store",
    )  # fmt: skip
    judge = judgement(tables)
    told = judge.finish(known)
    assert (told.exit, told.culprits) == (3, ())
    assert told.why == "task 0 lost its own store"
    assert judge.result is not None
    assert judge.result.hears_few, "what others have written is better founded"


@pytest.mark.parametrize(("silent", "few"), [((), False), ((3,), False), ((2, 3), True)])
def test_a_task_0_that_hears_half_of_the_hosts_knows_it(
    tables: Tables,
    silent: tuple[int, ...],
    few: bool,  # noqa: FBT001  # a column of the table
) -> None:
    fabric = fabric_support.Fabric(fabric_support.roster(1, 1, 1, 1), fabric_support.lost(*silent))
    fabric.run()
    judge = judgement(tables)
    judge.finish(Heard(roster=fabric.roster, facts={}, history=fabric.history))
    assert judge.result is not None
    assert judge.result.hears_few is few


def test_of_two_hosts_one_that_is_known_to_be_dead_leaves_no_doubt(tables: Tables) -> None:
    fabric = fabric_support.Fabric(fabric_support.roster(1, 1), fabric_support.lost(1))
    fabric.run()
    judge = judgement(tables)
    judge.finish(
        Heard(
            roster=fabric.roster, facts={}, history=fabric.history, seen={1: {0: "refused"}},
            closed=frozenset({1}),
        )
    )  # fmt: skip
    assert judge.result is not None
    assert not judge.result.hears_few


def test_who_had_time_to_come_left_is_not_missing(tables: Tables) -> None:
    """The launcher ends the job while its tasks come."""
    roster = Roster(ranks=heard().roster.ranks, absent=frozenset({3}))
    told = judgement(tables).finish(
        heard(roster=roster, awaited=frozenset({3}), stopped_because="it was told to end")
    )
    assert (told.exit, told.culprits) == (3, ())


def test_a_way_that_was_not_found_has_both_addresses(tables: Tables) -> None:
    of = fabric_support.roster(1, 1, 1, 1)
    facts = {at: TaskFacts(task=at, host=f"n{at}", address=f"10.77.0.{at + 1}") for at in range(4)}
    fabric = fabric_support.Fabric(of, fabric_support.cut_off(of, 1, 2))
    fabric.run()
    judge = judgement(tables)
    told = judge.finish(Heard(roster=of, facts=facts, history=fabric.history))
    assert (told.exit, told.exit_class) == (4, "misconfiguration")
    (one,) = told.culprits
    assert (one.slug, one.hosts) == ("nccl-network-interface", ("n1", "n2"))
    assert builtins(one.data)["way"] == {
        "from": "n2", "from_address": "10.77.0.3", "to": "n1", "address": "10.77.0.2",
        "port": 41083,
    }  # fmt: skip
    assert judge.result is not None
    fix = judge.result.report.standing[0].fixes[0]
    assert fix.text.startswith("Find out what keeps n2 (10.77.0.3) from n1 (10.77.0.2): ")
    assert "ip route get 10.77.0.2  # on n2" in fix.commands
    notes = judge.result.preflight.step_notes
    assert len(notes) == len(judge.result.preflight.steps or ())
    assert notes[1].startswith("1 group of 4 ranks; 0 passed; 1 did not; timed-out")


def test_another_nodes_own_cause_is_the_finding_with_its_fixes(tables: Tables) -> None:
    fixes = [{"text": "Install it.", "commands": ["pip install torch"], "verify": "gpucheck"}]
    own = [
        {
            "slug": "torch-missing", "headline": "PyTorch is not installed in /v/bin/python",
            "confidence": "certain", "fixes": fixes,
        }
    ]  # fmt: skip
    step = alone(0)
    step.results[2] = RankResult(
        rank=2, status="failed", phase="import", kind="import-failed",
        detail="No module named 'torch'", data={"roots": own},
    )  # fmt: skip
    judge = judgement(tables)
    told = judge.finish(heard(step, together(1, 0, 1, 3)))
    assert told.exit == 4
    assert judge.result is not None
    (finding,) = judge.result.report.standing
    assert finding.slug == "torch-missing"
    assert [command for fix in finding.fixes for command in fix.commands] == ["pip install torch"]


def test_a_demand_that_is_not_met_and_one_that_cannot_be_judged(tables: Tables) -> None:
    wanted = Requirements(min_torch="2.14")
    told = judgement(tables, requirements=wanted).finish(heard(alone(0), together(1, 0, 1, 2, 3)))
    assert told.exit == 4
    unknown = judgement(tables, requirements=Requirements(min_nccl="2.20")).finish(
        heard(alone(0), together(1, 0, 1, 2, 3))
    )
    assert unknown.exit == 3
    assert "nccl" in unknown.why.lower()


def test_a_drill_never_ends_well(tables: Tables) -> None:
    told = judgement(tables, plan=JobPlan(drill=parse_drill(["hang:rank=2"]))).finish(
        heard(alone(0), together(1, 0, 1, 2, 3))
    )
    assert told.exit == 3


def test_the_errors_of_a_node_are_told_root_cause_first(tables: Tables) -> None:
    missing = TorchBuild(installed=False, sources={"*": "site-packages"})
    snapshot = Snapshot(
        {TorchBuild.name: missing}, ProbeRuns(()), tables=tables.version, origin="live"
    )
    (found,) = roots(snapshot, tables)
    assert found.slug == "torch-missing"
    assert found.fixes


@pytest.mark.parametrize("is_stopped", [False, True])
def test_lost_packets_account_for_what_nobody_else_explains(
    tables: Tables,
    is_stopped: bool,  # noqa: FBT001  # both
) -> None:
    ranks = tuple(Rank(rank=at, task=at, node=at, host=f"n{at}", local=0) for at in range(RANKS))
    results = fabric_support.hung(range(RANKS))
    for one in range(RANKS):
        rows = [
            (f"10.0.0.{one}", f"10.0.0.{other}", 400, 90 if {one, other} == {1, 2} else 0, 1)
            for other in range(RANKS)
        ]
        results[one].data["lost_packets"] = rows
    if is_stopped:
        look = Look(state="stopped")
        results[3] = msgspec.structs.replace(results[3], look=look)
    step = Step(
        number=1, kind="together", groups=(tuple(range(RANKS)),), backend="gloo", seconds=25.0
    )
    done = StepResult(step=step, results=results)
    told = judgement(tables).finish(heard(alone(0), done, roster=Roster(ranks=ranks)))
    named = [(one.slug, one.ranks) for one in told.culprits]
    assert named == ([("rank-hangs", (3,))] if is_stopped else [("link-slow", (1, 2))])
    assert told.exit == (1 if is_stopped else 3)


def test_a_test_alone_has_as_long_as_its_level_takes(tables: Tables) -> None:
    """The worker was told 30 s at every level; the supervisor waited for minutes."""
    place = launcher.alone({})
    levels: dict[Level, float] = {"quick": 30.0, "standard": 120.0, "stress": 300.0}
    for level, seconds in levels.items():
        plan = JobPlan(level=level, timeout=3600.0).within(place)
        step = judgement(tables, plan=plan).next_step(heard())
        assert step is not None
        assert (step.kind, step.seconds) == ("alone", seconds)
