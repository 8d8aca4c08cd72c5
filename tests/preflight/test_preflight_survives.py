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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import gate_runs
import msgspec
import pytest
from left_behind import MARK, alive, wait_until

import gpucheck
from gpucheck.cluster.coordinator.coordinator import Heard
from gpucheck.cluster.diagnose.localise import Limits, next_step
from gpucheck.cluster.drill import parse
from gpucheck.cluster.launchers import entrance
from gpucheck.cluster.session import Policy, Session, Settings
from gpucheck.cluster.store import messages
from gpucheck.cluster.store.messages import Verdict
from gpucheck.machine import LiveHost

pytestmark = [
    pytest.mark.gate,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
]
TASKS = 3
LIMIT = 60.0
SLACK = 30.0
"""What a busy machine may take beyond the time limit, to start and to end processes."""


class Job:
    """Three tasks of a pre-flight."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = str(folder)
        self.port = 30000 + os.getpid() % 20000
        self.tasks: list[subprocess.Popen[str]] = []
        self.begun = time.monotonic()

    def start(
        self, *options: str, timeout: float = LIMIT, env: dict[int, dict[str, str]] | None = None
    ) -> "Job":
        for rank in range(TASKS):
            variables = {
                **gate_runs.environment(sys.executable, self.folder),
                "RANK": str(rank), "WORLD_SIZE": str(TASKS), "LOCAL_RANK": str(rank),
                "LOCAL_WORLD_SIZE": str(TASKS), "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(self.port), MARK: self.mark, **(env or {}).get(rank, {}),
            }  # fmt: skip
            command = [
                sys.executable, "-m", "gpucheck", "preflight", "--device", "cpu",
                "--timeout", str(timeout), *options,
            ]  # fmt: skip
            if rank == 0:
                command += ["--format", "json", "-o", str(self.folder / "report.json")]
            self.tasks.append(
                subprocess.Popen(
                    command, env=variables, cwd=self.folder, text=True, start_new_session=True,
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                )
            )  # fmt: skip
        return self

    def until(self, there: Callable[[], bool], what: str) -> None:
        assert wait_until(there, LIMIT + SLACK), what

    def zygotes(self) -> list[int]:
        return [pid for pid in alive(self.mark) if _is_zygote(pid)]

    def ends(self, tasks: Sequence[int] = range(TASKS)) -> list[int]:
        """Wait for the ends of tasks; return their statuses."""
        left = self.begun + LIMIT + SLACK
        return [self.tasks[task].wait(max(1.0, left - time.monotonic())) for task in tasks]

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "report.json").read_text())
        return found

    def culprits(self) -> list[tuple[str, list[int]]]:
        return [(one["slug"], one["ranks"]) for one in self.report()["culprits"]]

    def clear(self) -> None:
        for one in self.tasks:
            one.kill()
            one.communicate()


def _is_zygote(pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"zygote" in words


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    """A job whose processes are gone after the test, whatever it did to them."""
    made = Job(tmp_path)
    yield made
    made.clear()
    assert wait_until(lambda: not alive(made.mark)), "processes were left behind"


def test_all_is_well(job: Job) -> None:
    job.start("--each", str(job.folder / "each"))
    assert job.ends() == [0, 0, 0]
    report = job.report()
    assert (report["exit"], report["class"], report["culprits"]) == (0, "healthy", [])
    assert [one["status"] for one in report["ranks"]] == ["passed"] * TASKS
    assert sorted(file.name for file in (job.folder / "each").iterdir()) == [
        f"rank-{rank}.json" for rank in range(TASKS)
    ]


def test_a_lost_rank_0_is_said_by_the_others(job: Job) -> None:
    job.start("--drill", "hang:rank=2")
    job.until(lambda: len(job.zygotes()) == TASKS, "the zygotes did not start")
    job.tasks[0].kill()
    assert job.ends([1, 2]) == [3, 3]
    said = [one.communicate()[0] for one in job.tasks[1:]]
    assert not any(said), "task 0 has another place on the node: the lowest one there speaks"


def test_the_lowest_task_of_a_node_speaks_when_rank_0_is_gone(job: Job) -> None:
    job.start("--drill", "hang:rank=2", env={1: {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}})
    job.until(lambda: len(job.zygotes()) == TASKS, "the zygotes did not start")
    job.tasks[0].kill()
    assert job.ends([1, 2]) == [3, 3]
    said, _err = job.tasks[1].communicate()
    assert "rank 0" in said
    assert said.count("\n") == 1


def test_a_stopped_rank_0_is_given_up_on(job: Job) -> None:
    job.start("--drill", "hang:rank=2")
    job.until(lambda: len(job.zygotes()) == TASKS, "the zygotes did not start")
    job.tasks[0].send_signal(signal.SIGSTOP)
    assert job.ends([1, 2]) == [3, 3]


def test_a_killed_supervisor_is_named(job: Job) -> None:
    job.start("--drill", "hang:rank=0")
    job.until(lambda: len(job.zygotes()) == TASKS, "the zygotes did not start")
    job.tasks[1].kill()
    assert job.ends([0, 2]) == [1, 1]
    assert [1] in [ranks for _slug, ranks in job.culprits()]


@pytest.mark.parametrize("task", [0, 1])
def test_a_stopped_supervisor_holds_no_launcher(job: Job, task: int) -> None:
    """Nobody continues it but its own waker, once its time is over."""
    job.start("--drill", "hang:rank=2", timeout=30.0)
    job.until(lambda: len(job.zygotes()) == TASKS, "the zygotes did not start")
    job.tasks[task].send_signal(signal.SIGSTOP)
    assert job.ends([task]) == [3]
    assert time.monotonic() - job.begun < 30 + SLACK
    others = [one for one in range(TASKS) if one != task]
    assert job.ends(others) == ([3, 3] if task == 0 else [1, 1])
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
    assert set(statuses) <= {1, 3}


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


def test_another_token_finds_no_store(job: Job) -> None:
    job.start(
        timeout=20.0,
        env={task: {"GPUCHECK_PREFLIGHT_TOKEN": "abc"[task]} for task in range(TASKS)},
    )
    statuses = job.ends()
    assert statuses[1:] == [3, 3]
    assert statuses[0] == 1
    assert {tuple(one["ranks"]) for one in job.report()["culprits"]} == {(1,), (2,)} or {
        tuple(one["ranks"]) for one in job.report()["culprits"]
    } == {(1, 2)}


def test_only_the_faulted_worker_knows_of_the_drill(tmp_path: Path) -> None:
    heard: list[Heard] = []

    def finish(found: Heard) -> Verdict:
        heard.append(found)
        return Verdict(exit=1, exit_class="culprit")

    begun = time.monotonic()
    settings = Settings(
        python=sys.executable, cuda=False, timeout=LIMIT, begun=begun, ranks=3,
        drill=parse(["hang:rank=2"]),
    )  # fmt: skip
    limits = Limits(backend="gloo", first_seconds=8.0, least_seconds=5.0)
    policy = Policy(
        lambda found: next_step(found.roster, found.history, limits), finish, lambda _snapshot: []
    )
    place = entrance.Entrance(launcher="local", task=0, tasks=1, run=str(tmp_path))
    session = Session(LiveHost(""), place, settings, policy, lambda _what: None)
    try:
        assert session.run().reason == "verdict"
        assert session._store is not None  # noqa: SLF001
        texts = session._store.under("")  # noqa: SLF001
    finally:
        session.close()
    assert heard[0].history[1].results[2].status == "timed-out"
    store = b"".join(text for key, text in texts.items() if key != messages.VERDICT.name)
    everything = store.decode() + json.dumps(msgspec.to_builtins(heard[0], str_keys=True))
    for word in ("drill", "fault", "hang:"):
        assert word not in everything
