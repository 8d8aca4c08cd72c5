"""What a supervisor saw of a worker that it ended: its form, and what is concluded from it."""

from collections.abc import Sequence
from typing import Any

import msgspec
from each import each
from fabric_support import Fabric, Results, hung, roster

from gpucheck.cluster.diagnose import direct_evidence
from gpucheck.cluster.diagnose import process_state as judged
from gpucheck.cluster.diagnose.localise import culprits, next_step
from gpucheck.cluster.job_plan import JobPlan
from gpucheck.cluster.model import Backend, Rank, RankResult, Roster, Step, StepResult
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.task_messages import Malformed
from gpucheck.cluster.task import rank_run
from gpucheck.facts import builtins
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.preflight import Look
from gpucheck.machine.worker_pool.look import Looks, ProcessLook

DUMP = """\
[W1122 ProcessGroupGloo.cpp:524] Warning: a line of before
RuntimeError: Unable to find address for: nope
Fatal Python error: Aborted

Thread 0x00007f0000000001 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 324 in wait

Current thread 0x00007f0000000002 (most recent call first):
  File "/home/anna/env/lib/python3.11/site-packages/torch/distributed/c10d.py", line 77 in wait
  File "/home/anna/gpucheck/worker/together.py", line 290 in _finish
  File "/home/anna/gpucheck/worker/together.py", line 280 in _do

Thread 0x00007f0000000003 (most recent call first):
  File "/usr/lib/python3.11/selectors.py", line 1 in other
"""


def taken(
    first: ProcessLook | None, last: ProcessLook | None, zygote: ProcessLook | None = None
) -> Looks:
    found = Looks()
    found.worker, found.zygote = (first, last), (zygote, zygote)
    return found


def one(state: str, cpu: float = 1.0, **more: Any) -> ProcessLook:  # noqa: ANN401  # fields
    return ProcessLook(state=state, cpu=cpu, **more)


def state_of(first: ProcessLook | None, last: ProcessLook | None) -> str | None:
    look = rank_run.seen(taken(first, last), "", killed=False)
    assert look is not None
    return look.state


@each(
    ("first", "last", "state"),
    [
        (one("T"), one("T"), "stopped"),
        (one("t"), one("t"), "traced"),
        (one("D"), one("D"), "uninterruptible"),
        (one("S", wchan="do_freezer_trap"), one("S", wchan="do_freezer_trap"), "frozen"),
        (one("S"), one("S"), "sleeping"),
        (one("R"), one("R"), "running"),
        (one("S", 1.0), one("S", 1.5), "running"),  # it polls
        (one("S"), one("D"), "sleeping"),  # for a moment only
        (one("T"), one("D"), "sleeping"),
        (None, one("T"), "sleeping"),  # seen once
        (one("S"), one("Z"), "sleeping"),
    ],
)
def test_a_state_that_holds_a_process_counts_if_it_was_so_twice(
    first: ProcessLook | None, last: ProcessLook, state: str
) -> None:
    assert state_of(first, last) == state


def test_the_stack_is_that_of_the_main_thread_without_the_home_of_the_user() -> None:
    assert rank_run.stack(DUMP) == (
        "distributed/c10d.py:77 wait",
        "worker/together.py:290 _finish",
        "worker/together.py:280 _do",
    )
    assert rank_run.last_error(DUMP) == "RuntimeError: Unable to find address for: nope"
    assert rank_run.stack("nothing of that kind") == ()
    assert rank_run.last_error("an Error: in the middle\n") == ""


def test_a_deep_stack_keeps_what_the_worker_was_about_to_do() -> None:
    deep = "".join(f'  File "/usr/lib/importlib.py", line {at} in call\n' for at in range(30))
    own = '  File "/home/anna/gpucheck/worker/{}.py", line 1 in {}\n'
    dump = f"Current thread 0x1 (most recent call first):\n{deep}{own.format('together', '_reach')}"
    stack = rank_run.stack(dump + own.format("zygote", "_fork") * 20)
    assert stack[:9] == (
        *(f"lib/importlib.py:{at} call" for at in range(8)), "worker/together.py:1 _reach",
    )  # fmt: skip
    assert len(stack) == 14


def test_what_the_kernel_shows_is_kept_in_a_bounded_form() -> None:
    kernel = "\n".join(f"[<0>] function_{at}+0x1/0x2" for at in range(30)) + "\n[<0>] \x1b[31m+0x0"
    last = one("D", wchan="\x1b]0;x", syscall="56 0x4011 0x0", kernel=kernel, files=7, file_limit=9)
    look = rank_run.seen(taken(last, last), DUMP * 50, killed=True)
    assert look is not None
    assert (look.wchan, look.syscall, look.killed) == ("", 56, True)
    assert look.kernel == tuple(f"function_{at}" for at in range(8))
    assert (look.files, look.file_limit) == (7, 9)
    assert rank_run.seen(taken(None, None), "", killed=False) is None
    running = one("R", syscall="running")
    seen = rank_run.seen(taken(running, running), "", killed=False)
    assert seen is not None
    assert seen.syscall is None


def test_what_a_worker_prints_always_makes_a_record_that_task_0_takes() -> None:
    wild = (
        'Current thread 0x1 (most recent call first):\n  File "' + "é/" * 3000 + '", line 1 in f\n'
    )
    look = rank_run.seen(taken(one("S"), one("S")), wild + "xError: " + "\x07" * 5000, killed=False)
    result = RankResult(rank=1, status="timed-out", look=look)
    said = messages.StepResults(results=(result,))
    text = msgspec.json.encode(said)
    assert messages.RESULTS.read(text) == said


@each(
    "forged",
    [
        {"state": "broken"},
        {"wchan": "a b"},
        {"wchan": "x" * 65},
        {"kernel": ["f"] * 17},
        {"kernel": ["\x1b[2J"]},
        {"python": ["x" * 301]},
        {"python": ["x"] * 17},
        {"syscall": 10**9},
        {"cpu_seconds": -1},
        {"error": "x" * 301},
        {"more": 1},
    ],
)
def test_a_forged_look_is_not_believed(forged: dict[str, object]) -> None:
    result = {"rank": 1, "status": "timed-out", "look": forged}
    text = msgspec.json.encode({"message": "results", "results": [result]})
    assert isinstance(messages.RESULTS.read(text), Malformed)


def stopped_once(rank: int, look: Look, *, kind: str = "together") -> Any:  # noqa: ANN401
    """A rank that is held the first time it is in a step of this kind, and healthy afterwards."""
    seen: list[Step] = []

    def fault(step: Step, group: tuple[int, ...]) -> Results | None:
        if step.kind != kind or rank not in group or any(one is not step for one in seen):
            return None
        seen.append(step)
        results = hung(group)
        return {**results, rank: msgspec.structs.replace(results[rank], look=look)}

    return fault


@each("shape", [(4,), (2, 2), (1, 1), (1, 1, 1)])
@each("kind", ["alone", "together"])
def test_a_rank_that_was_stopped_once_is_named_for_certain(
    shape: tuple[int, ...], kind: str
) -> None:
    fabric = Fabric(roster(*shape), stopped_once(1, Look(state="stopped"), kind=kind))
    done = fabric.run()
    [entry] = done.culprits
    assert (entry.slug, entry.ranks, entry.confidence) == ("rank-hangs", (1,), Confidence.CERTAIN)
    assert (entry.severity, done.inconclusive) == (Severity.ERROR, "")
    assert "stopped" in entry.evidence
    assert "GPU is not to blame" in builtins(entry.data)["fixes"][0]["text"]


def test_it_is_named_although_it_passed_when_that_was_repeated() -> None:
    of = roster(2, 2)
    step = Step(number=0, kind="together", groups=((0, 1, 2, 3),), backend="gloo", seconds=5)
    results = hung(step.groups[0])
    held = msgspec.structs.replace(results[2], look=Look(state="stopped"))
    passed = {rank: RankResult(rank=rank, status="passed") for rank in range(4)}
    history = [
        StepResult(step=step, results={**results, 2: held}),
        StepResult(step=msgspec.structs.replace(step, number=1, repeats=True), results=passed),
    ]
    done = culprits(of, history)
    [entry] = done.culprits
    assert (entry.ranks, entry.severity, entry.confidence) == (
        (2,), Severity.ERROR, Confidence.CERTAIN,
    )  # fmt: skip
    assert "it passed when that was repeated" in entry.evidence
    assert done.inconclusive == ""


def known(*seen: Look | None, phase: str = "enter", collective: int = 3) -> list[RankResult]:
    return [
        RankResult(
            rank=at, status="timed-out", phase=phase, collective=collective, look=look,  # type: ignore[arg-type]
        )
        for at, look in enumerate(seen)
    ]  # fmt: skip


def sure(found: Sequence[Any]) -> list[tuple[int, str]]:
    return [(one.rank, one.confidence.value) for one in found]


def test_uninterruptible_is_certain_only_if_sigkill_was_needed() -> None:
    waits, d = Look(state="sleeping"), Look(state="uninterruptible")
    killed = msgspec.structs.replace(d, killed=True)
    assert sure(judged.held(known(waits, killed, waits))) == [(1, "certain")]
    assert sure(judged.held(known(waits, d, waits))) == [(1, "likely")]
    assert sure(judged.held(known(killed, killed, waits))) == [(0, "possible"), (1, "possible")]


def test_a_stopped_zygote_names_the_rank() -> None:
    [found] = judged.held(known(None, Look(state="sleeping", zygote="stopped"), None))
    assert (found.rank, found.confidence.value) == (1, "certain")
    assert "forks its workers" in found.evidence


@each(
    ("look", "is_held"),
    [
        (Look(state="sleeping", zygote="stopped"), True),
        (Look(state="sleeping", zygote="frozen"), True),
        (Look(state="stopped", zygote="sleeping"), False),
        (Look(state="sleeping", zygote="uninterruptible"), False),
        (None, False),
    ],
)
def test_a_zygote_that_was_held_counts_although_torch_had_answered(
    look: Look | None, *, is_held: bool
) -> None:
    assert rank_run.zygote_is_held(look) is is_held


def test_waiting_and_computing_name_nobody() -> None:
    assert judged.held(known(Look(state="sleeping"), Look(state="running"), Look(), None)) == []


WAITS = Look(state="sleeping", python=("c10d.py:7 wait", "worker/together.py:290 _finish"))
BEGINS = Look(state="sleeping", python=("site.py:9 hook", "worker/together.py:280 _all_reduce"))


def test_one_that_had_not_begun_what_all_others_wait_for_is_likely() -> None:
    assert sure(judged.not_begun(known(WAITS, WAITS, BEGINS))) == [(2, "likely")]


@each(
    "seen",
    [
        (WAITS, WAITS, WAITS),
        (WAITS, BEGINS),  # a single witness
        (WAITS, WAITS, BEGINS, BEGINS),  # the two ends of a link
        (WAITS, WAITS, Look(state="sleeping")),  # without a stack nothing is known
        (WAITS, WAITS, BEGINS, None),
    ],
)
def test_it_takes_one_against_all_others(seen: tuple[Look | None, ...]) -> None:
    assert judged.not_begun(known(*seen)) == []


LOOPS = Look(
    state="sleeping", python=("site/hook.py:10 hang", "worker/together.py:297 _finish", "a.py:1 b")
)
INSIDE = Look(state="sleeping", python=("worker/together.py:297 _finish", "a.py:2 b"))


def behind(look: Look, collective: int) -> list[RankResult]:
    """Three ranks wait in collective 3, and one is where it was seen, as a real job left it."""
    *waiting, last = known(INSIDE, INSIDE, INSIDE, look)
    return [*waiting, msgspec.structs.replace(last, collective=collective)]


def test_one_that_stands_still_behind_an_earlier_collective_is_likely() -> None:
    assert sure(judged.not_begun(behind(LOOPS, 2))) == [(3, "likely")]
    assert sure(judged.not_begun(behind(BEGINS, 2))) == [(3, "likely")]


def test_one_that_waits_in_an_earlier_collective_may_have_a_broken_link() -> None:
    assert judged.not_begun(behind(INSIDE, 2)) == []


def test_one_that_has_begun_the_collective_is_not_named() -> None:
    assert judged.not_begun(behind(LOOPS, 3)) == []


def test_one_that_got_no_processor_is_not_named() -> None:
    busy = msgspec.structs.replace(LOOPS, wait_seconds=20.0, cpu_seconds=1.9)
    assert judged.not_begun(behind(busy, 2)) == []
    loops = msgspec.structs.replace(busy, cpu_seconds=9.0)
    assert sure(judged.not_begun(behind(loops, 2))) == [(3, "likely")]


def test_one_that_lost_a_peer_at_the_deadline_had_waited() -> None:
    lost = RankResult(rank=4, status="failed", phase="enter", collective=3, kind="peer-lost")
    assert sure(judged.not_begun([*behind(LOOPS, 2), lost])) == [(3, "likely")]
    two, *_rest, last = behind(LOOPS, 2)
    assert sure(judged.not_begun([two, lost, last])) == [(3, "likely")]
    assert judged.not_begun([lost, last]) == [], "a single witness"
    assert judged.not_begun([two, msgspec.structs.replace(lost, collective=2), last]) == []


def test_a_hundred_thousand_that_lost_a_peer_are_no_square() -> None:
    two, *_rest, last = behind(LOOPS, 2)
    lost = RankResult(rank=4, status="failed", phase="enter", collective=3, kind="peer-lost")
    many = [msgspec.structs.replace(lost, rank=rank) for rank in range(10, 100_010)]
    assert sure(judged.not_begun([two, *many, last])) == [(3, "likely")]


@each(
    "python",
    [
        ("worker/channel.py:64 plain", "worker/channel.py:28 send", "worker/trial.py:71 run"),
        ("errors.py:32 explain", "worker/together.py:346 meaning", "worker/trial.py:67 run"),
        ("worker/trial.py:66 run", "worker/process.py:127 _be_worker"),
    ],
)
def test_one_that_was_about_to_say_why_it_left_had_waited(python: tuple[str, ...]) -> None:
    first, *rest = behind(LOOPS, 2)
    left = msgspec.structs.replace(first, look=Look(state="sleeping", python=python))
    assert sure(judged.not_begun([left, *rest])) == [(3, "likely")]
    assert judged.not_begun([left, rest[-1]]) == [], "a single witness"


def test_one_that_stands_still_before_a_collective_has_not_left_it() -> None:
    held = ("worker/channel.py:28 send", "worker/together.py:142 check", "worker/trial.py:61 run")
    first, *rest = behind(LOOPS, 2)
    also = msgspec.structs.replace(first, look=Look(state="sleeping", python=held))
    assert judged.not_begun([also, *rest]) == [], "two are elsewhere"


def test_witnesses_that_wait_in_different_collectives_say_nothing() -> None:
    first, *rest = behind(LOOPS, 2)
    assert judged.not_begun([msgspec.structs.replace(first, collective=2), *rest]) == []


def test_the_ranks_are_told_in_groups() -> None:
    step = Step(number=0, kind="together", groups=(tuple(range(32)),), backend="gloo", seconds=5)
    results = hung(step.groups[0])
    for rank, one_result in results.items():
        look = Look(state="stopped") if rank == 7 else WAITS
        results[rank] = msgspec.structs.replace(one_result, look=look)
    assert judged.in_groups([StepResult(step=step, results=results)]) == [
        "Ranks that a signal had stopped: 1 (7)",
        "Ranks that waited in the collective: 31 (0-6, 8-31)",
    ]
    assert judged.in_groups([]) == []
    many = {rank: one_result for rank, one_result in results.items() if rank % 2}
    [_, said] = judged.in_groups([StepResult(step=step, results=many)])
    assert said.endswith("23, 25, ...)")


def slow(wait: float | None, cpu: float | None, **more: Any) -> RankResult:  # noqa: ANN401  # fields
    state = more.pop("state", "running")
    look = Look(state=state, wait_seconds=wait, cpu_seconds=cpu)
    said: dict[str, Any] = {
        "rank": 0, "status": "timed-out", "phase": "import", "kind": "timed-out",
        "detail": "no end of import torch after 60 s", "look": look, **more,
    }  # fmt: skip
    return RankResult(**said)


@each(
    ("result", "is_slow"),
    [
        (slow(58.0, 2.0), True),
        (slow(58.0, 2.0, state="sleeping"), True),
        (slow(31.0, 29.0, phase="alone"), True),
        (slow(20.0, 40.0), False),  # it had a processor most of the time
        (slow(0.2, 1.0), False),  # it waited for something else
        (slow(None, None), False),
        (slow(58.0, 2.0, state="stopped"), False),
        (slow(58.0, 2.0, status="failed"), False),
        (slow(58.0, 2.0, look=None), False),
    ],
)
def test_a_rank_that_got_no_processor_is_slow_and_not_broken(
    result: RankResult, *, is_slow: bool
) -> None:
    assert judged.lacked_processor(result) == is_slow
    named = direct_evidence.alone(result)
    assert (named is None) == is_slow


def passed_in(*seconds: float) -> list[RankResult]:
    """Ranks that passed alone, and needed so many seconds of processor time."""
    return [
        RankResult(rank=9, status="passed", phase="done", data={"cpu_seconds": one})
        for one in seconds
    ]


@each(
    ("result", "others", "is_named"),
    [
        (slow(15.7, 4.4, phase="alone"), passed_in(0.2, 0.3, 1.1), True),
        (slow(17.5, 2.3, phase="start"), passed_in(0.2, 0.3), True),
        (slow(15.7, 4.4, phase="alone"), passed_in(0.2, 0.3, 1.2), False),  # it may be slow
        (slow(15.7, 1.9, phase="alone"), passed_in(0.1, 0.1), False),
        (slow(15.7, 4.4, phase="alone"), passed_in(0.1), False),  # a single witness
        (slow(15.7, 4.4, phase="alone"), passed_in(0.0, 0.0), False),  # nobody measured it
        (slow(15.7, 4.4, phase="import"), passed_in(0.1, 0.1), False),  # other work
    ],
)
def test_one_that_runs_in_circles_on_a_busy_host_is_likely(
    result: RankResult, others: list[RankResult], *, is_named: bool
) -> None:
    named = direct_evidence.alone(result, others)
    assert [(one.slug, one.confidence.value) for one in [named] if one] == (
        [("rank-hangs", "likely")] if is_named else []
    )


@each(("backend", "is_named"), [("gloo", True), ("nccl", False)])
def test_only_cpu_ranks_are_compared_by_their_processor_time(
    backend: Backend, *, is_named: bool
) -> None:
    step = Step(
        number=0, kind="alone", groups=tuple((at,) for at in range(4)), backend=backend,
        seconds=30.0,
    )  # fmt: skip
    results = {at: msgspec.structs.replace(passed_in(0.2)[0], rank=at) for at in range(4)}
    results[1] = msgspec.structs.replace(slow(15.7, 4.4, phase="alone"), rank=1)
    done = culprits(roster(2, 2), [StepResult(step=step, results=results)])
    assert [one.ranks for one in done.culprits] == ([(1,)] if is_named else [])
    assert bool(done.inconclusive) is not is_named


def test_many_tasks_on_few_processors_name_nobody() -> None:
    ranks = tuple(Rank(rank=at, task=at, node=0, host="n0", local=at) for at in range(64))
    step = Step(
        number=0, kind="alone", groups=tuple((at,) for at in range(64)), backend="gloo",
        seconds=30.0,
    )  # fmt: skip
    every = {at: msgspec.structs.replace(slow(57.0, 2.0), rank=at) for at in range(64)}
    history = [StepResult(step=step, results=every)]
    found = culprits(Roster(ranks=ranks), history)
    assert found.culprits == []
    assert found.inconclusive.startswith("ranks 0-63 ran out of time because their hosts were too ")
    assert next_step(Roster(ranks=ranks), history, JobPlan()) is None
    one = {at: RankResult(rank=at, status="passed") for at in range(63)} | {63: every[63]}
    later = next_step(Roster(ranks=ranks), [StepResult(step=step, results=one)], JobPlan())
    assert later is not None
    assert later.groups == (tuple(range(63)),), "the others are tested without it"


def lost_by(look: Look, collective: int) -> list[RankResult]:
    """One rank's time was over first, and three lost it in collective 3, as a real job left it."""
    (one,) = known(look)
    others = [
        RankResult(rank=at, status="failed", phase="enter", collective=3, kind="peer-lost")
        for at in range(1, 4)
    ]
    return [msgspec.structs.replace(one, collective=collective), *others]


def test_one_that_all_others_have_lost_is_likely_if_it_did_not_wait() -> None:
    assert sure(judged.not_begun(lost_by(LOOPS, 2))) == [(0, "likely")]
    assert sure(judged.not_begun(lost_by(BEGINS, 3))) == [(0, "likely")]


@each(
    ("look", "collective"),
    [
        (INSIDE, 2),  # its link may be broken
        (WAITS, 2),
        (LOOPS, 3),  # it has begun
        (Look(state="sleeping"), 2),
        (msgspec.structs.replace(LOOPS, wait_seconds=20.0, cpu_seconds=1.9), 2),  # a busy host
    ],
)
def test_one_that_all_others_have_lost_may_have_waited(look: Look, collective: int) -> None:
    assert judged.not_begun(lost_by(look, collective)) == []


def test_those_who_lost_it_in_another_collective_are_no_witnesses() -> None:
    first, second, *rest = lost_by(LOOPS, 2)
    earlier = msgspec.structs.replace(second, collective=2)
    assert judged.not_begun([first, earlier, *rest]) == []
    assert judged.not_begun([first, second]) == [], "a single witness"


def finished_without(look: Look) -> list[RankResult]:
    """Three ranks finished, and one's time was over in the last collective."""
    (one,) = known(look)
    others = [RankResult(rank=at, status="passed", phase="done") for at in range(1, 4)]
    return [one, *others]


def test_one_that_stands_still_where_all_others_have_finished_is_likely() -> None:
    [found] = judged.not_begun(finished_without(LOOPS))
    assert (found.rank, found.confidence) == (0, Confidence.LIKELY)
    assert "3 other ranks had finished" in found.evidence
    assert judged.not_begun(finished_without(INSIDE)) == [], "its link may be broken"
    assert judged.not_begun(finished_without(WAITS)) == []
    assert judged.not_begun(finished_without(LOOPS)[:2]) == [], "a single witness"
    some = [*finished_without(LOOPS), *lost_by(LOOPS, 2)[1:2]]
    assert judged.not_begun(some) == []
