"""Whatever happens to one of them, every task ends in time and says what is known.

Tasks are started by hand (RANK, WORLD_SIZE, MASTER_ADDR), each in a session of its own, so that a
test can stop, kill and starve them; all torch is real, over gloo.
"""

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gate_runs
import msgspec
import pytest
from left_behind import MARK, alive
from three_tasks import LIMIT, SLACK, TASKS, Job

import gpucheck
from gpucheck.cluster import launcher
from gpucheck.cluster.attendance import Heard
from gpucheck.cluster.diagnose.localise import next_step
from gpucheck.cluster.job_plan import JobPlan, parse_drill
from gpucheck.cluster.session import Policy, Session
from gpucheck.cluster.store import task_messages as messages
from gpucheck.cluster.store.task_messages import Verdict
from gpucheck.language import plain
from gpucheck.machine import LiveHost

pytestmark = [
    pytest.mark.gate,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
]


def test_all_is_well(job: Job) -> None:
    job.start("--each", str(job.folder / "each"))
    assert job.ends() == [0, 0, 0]
    report = job.report()
    assert (report["exit"], report["class"], report["culprits"]) == (0, "healthy", [])
    assert [one["status"] for one in report["ranks"]] == ["passed"] * TASKS
    assert sorted(file.name for file in (job.folder / "each").iterdir()) == [
        f"rank-{rank}.json" for rank in range(TASKS)
    ]


def test_a_killed_supervisor_is_named(job: Job) -> None:
    job.start("--drill", "hang:rank=0")
    job.until(lambda: len(job.zygotes()) == TASKS, "the zygotes did not start")
    job.tasks[1].kill()
    assert job.ends([0, 2]) == [1, 1]
    assert [1] in [ranks for _slug, ranks in job.culprits()]


@pytest.mark.parametrize("task", [0, 1])
def test_a_stopped_supervisor_holds_no_launcher(job: Job, task: int) -> None:
    """Nobody continues it but its own waker, once its time is over."""
    job.start("--drill", "hang:rank=2", "--status-file", "status", timeout=40.0)
    job.until(lambda: len(job.zygotes()) == TASKS, "the zygotes did not start")
    time.sleep(1.0)  # until all have registered: before that nobody knows who takes over
    job.tasks[task].send_signal(signal.SIGSTOP)
    assert job.ends([task]) == [3]
    assert time.monotonic() - job.begun < 40 + SLACK
    others = [one for one in range(TASKS) if one != task]
    assert job.ends(others) == [1, 1]
    assert (job.folder / "status").read_text() == "1\n", "the others had the last word"
    if task:
        assert [task] in [ranks for _slug, ranks in job.culprits()]


def test_a_stopped_zygote_is_found_and_costs_no_more_than_its_deadline(job: Job) -> None:
    job.start()
    job.until(lambda: len(job.zygotes()) == TASKS, "the zygotes did not start")
    stopped = job.zygotes()[0]
    os.kill(stopped, signal.SIGSTOP)
    statuses = job.ends()
    assert len(set(statuses)) == 1
    assert statuses[0] in (1, 3, 4), job.report()
    assert not alive(job.mark)


@pytest.mark.parametrize("task", [0, 1])
def test_being_told_to_end_it_ends_within_ten_seconds(job: Job, task: int) -> None:
    job.start("--drill", "hang:rank=2")
    job.until(lambda: len(job.zygotes()) == TASKS, "the zygotes did not start")
    told = time.monotonic()
    job.tasks[task].terminate()
    assert job.tasks[task].wait(LIMIT) == 3
    assert time.monotonic() - told < 10 + SLACK / 3
    job.ends()
    if task == 0:
        assert "told to end" in json.dumps(job.report())


def test_who_has_no_torch_is_named_with_the_reason(job: Job) -> None:
    empty = job.folder / "empty"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", empty], check=True)
    ours = str(Path(gpucheck.__file__).parent.parent)
    job.start(env={1: {"GPUCHECK_PYTHON": str(empty / "bin/python"), "PYTHONPATH": ours}})
    statuses = job.ends()
    assert statuses == [4, 4, 4], job.report()
    (culprit,) = job.report()["culprits"]
    assert (culprit["slug"], culprit["ranks"]) == ("torch-missing", [1])
    assert "PyTorch" in culprit["evidence"]


def test_a_torch_that_hangs_at_its_import_is_named(job: Job) -> None:
    folder = job.folder / "slow"
    folder.mkdir()
    (folder / "torch.py").write_text("import time\ntime.sleep(600)\n")
    path = gate_runs.environment(sys.executable, job.folder)["PYTHONPATH"]
    job.start(env={2: {"PYTHONPATH": f"{folder}{os.pathsep}{path}"}})
    statuses = job.ends()
    assert len(set(statuses)) == 1
    assert statuses[0] in (1, 4), job.report()
    assert {tuple(one["ranks"]) for one in job.report()["culprits"]} == {(2,)}


def test_the_time_limit_holds_even_when_it_is_too_short_to_learn_anything(job: Job) -> None:
    job.start("--drill", "hang:rank=1", timeout=10.0)
    begun = time.monotonic()
    statuses = job.ends()
    assert time.monotonic() - begun < 10 + SLACK
    assert set(statuses) <= {1, 3}, job.report()["culprits"]


def test_a_baseline_is_saved_and_dated(job: Job) -> None:
    command = [
        sys.executable, "-m", "gpucheck", "preflight", "--device", "cpu", "--ranks", "1",
        "--baseline", "save",
    ]  # fmt: skip
    state = job.folder / "state"
    env = {
        **gate_runs.environment(sys.executable, job.folder),
        "XDG_STATE_HOME": str(state), MARK: job.mark,
    }  # fmt: skip
    done = subprocess.run(
        command, env=env, cwd=job.folder, timeout=LIMIT + SLACK, check=False, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    saved = json.loads((state / "gpucheck" / "baseline.json").read_text())
    assert saved["schema"] == "gpucheck.baseline/1"
    assert (state / "gpucheck" / ".baseline.lock").exists()  # other tasks may save at once


@pytest.mark.parametrize("where", ["/dev/full", None])
def test_output_that_cannot_be_written_changes_no_status(job: Job, where: str | None) -> None:
    options = ["-o", where] if where else []
    command = [
        sys.executable, "-m", "gpucheck", "preflight", "--device", "cpu", "--ranks", "2",
        "--drill", "crash:rank=1", "--each", "/proc/nowhere", "--metrics", "/dev/full",
        *options,
    ]  # fmt: skip
    env = {**gate_runs.environment(sys.executable, job.folder), MARK: job.mark}
    one = subprocess.Popen(
        command, env=env, cwd=job.folder, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    if where is None:
        assert one.stdout is not None
        one.stdout.close()
        one.stdout = None
    _out, said = one.communicate(timeout=LIMIT + SLACK)
    assert one.returncode == 1, said
    assert "Traceback" not in said
    assert "--each" in said


def test_a_reader_that_never_reads_does_not_hold_it_beyond_its_time(job: Job) -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writing, b"x" * 4096):
            pass
    os.set_blocking(writing, True)
    command = [
        sys.executable, "-m", "gpucheck", "preflight", "--device", "cpu", "--ranks", "1",
        "--timeout", "15", "--format", "json",
    ]  # fmt: skip
    env = {**gate_runs.environment(sys.executable, job.folder), MARK: job.mark}
    begun = time.monotonic()
    one = subprocess.Popen(command, env=env, cwd=job.folder, stdout=writing)
    assert one.wait(15 + SLACK) in (0, 3)  # 3: a busy machine had no time left for a step
    assert time.monotonic() - begun < 15 + SLACK
    os.close(reading)
    os.close(writing)


def test_a_drill_of_a_rank_that_is_not_there_is_refused(job: Job) -> None:
    command = [
        sys.executable, "-m", "gpucheck", "preflight", "--device", "cpu", "--ranks", "2",
        "--drill", "hang:rank=99",
    ]  # fmt: skip
    env = gate_runs.environment(sys.executable, job.folder)
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "rank 99" in done.stderr


def test_only_the_faulted_worker_knows_of_the_drill(tmp_path: Path) -> None:
    heard: list[Heard] = []

    def finish(found: Heard) -> Verdict:
        heard.append(found)
        return Verdict(exit=1, exit_class="culprit")

    begun = time.monotonic()
    place = launcher.TaskPlace(launcher="local", task=0, tasks=1, run=str(tmp_path))
    plan = JobPlan(
        tasks=1,
        cuda=False,
        begun=begun,
        python=sys.executable,
        timeout=LIMIT,
        drill=parse_drill(["hang:rank=2"]),
    ).within(place, ranks=3)
    plan = msgspec.structs.replace(plan, first_collective=8.0, least_collective=5.0)
    policy = Policy(
        lambda found: next_step(found.roster, found.history, plan), finish, lambda _snapshot: [],
        lambda _loss, _found: Verdict(exit=3, exit_class="inconclusive"),
    )  # fmt: skip
    session = Session(LiveHost(""), place, plan, policy, lambda _what: None)
    try:
        assert session.run().reason == "verdict"
        assert session._store is not None  # noqa: SLF001
        texts = session._store.under("")  # noqa: SLF001
    finally:
        session.close()
    assert heard[0].history[1].results[2].status == "timed-out"
    store = b"".join(text for key, text in texts.items() if key != messages.VERDICT.name)
    told = msgspec.to_builtins(heard[0], str_keys=True, enc_hook=plain)
    everything = store.decode() + json.dumps(told)
    for word in ("drill", "fault", "hang:"):
        assert word not in everything
