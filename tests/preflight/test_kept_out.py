"""Tasks that start and cannot take part: all say why, and no healthy host is called missing."""

import importlib.util
import os
import signal
import sys
import time
from pathlib import Path

import gate_runs
import pytest
from broken_torch import break_torch
from left_behind import alive
from three_tasks import SLACK, Job

pytestmark = [
    pytest.mark.gate,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
]
WRONG = ("--require", "nonsense=1")
FILES = ("--exclude-file", "bad")


def said(job: Job, task: int) -> str:
    return " ".join(job.tasks[task].communicate()[1].split())


def test_a_task_that_is_refused_says_why_to_all(job: Job) -> None:
    job.start(*FILES, own={1: WRONG})
    assert job.ends() == [4, 4, 4]
    report = job.report()
    (culprit,) = report["culprits"]
    assert (culprit["slug"], culprit["ranks"]) == ("ranks-heterogeneous", [1])
    assert culprit["hosts"] == [os.uname().nodename]
    assert "task 1 on host" in culprit["evidence"]
    assert "'nonsense' is not one of" in culprit["evidence"]
    assert report["class"] == "misconfiguration"
    assert (job.folder / "bad").read_text() == ""
    assert "it cannot take part: --require: 'nonsense'" in said(job, 1)


@pytest.mark.skipif(sys.platform != "linux", reason="a stopped task is continued on Linux only")
def test_a_refused_task_that_is_stopped_holds_no_launcher(job: Job) -> None:
    job.start(own={1: WRONG}, tasks=(1,), timeout=12.0)
    job.until(lambda: len(alive(job.mark)) == 2, "it has no waker")
    job.tasks[0].send_signal(signal.SIGSTOP)
    assert job.tasks[0].wait(12 + SLACK) == 2
    assert time.monotonic() - job.begun > 12, "it was never stopped"


def test_a_python_that_is_none_is_said_to_all(job: Job) -> None:
    job.start(own={2: ("--python", "/nowhere/python")})
    assert job.ends() == [4, 4, 4]
    assert "/nowhere/python" in job.report()["culprits"][0]["evidence"]


def test_a_task_0_that_is_refused_says_so_to_all(job: Job) -> None:
    job.start(own={0: WRONG}, env={1: {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}})
    assert job.ends() == [4, 4, 4]
    out = " ".join(job.tasks[1].communicate()[0].split())
    assert "task 0 on host" in out
    assert "'nonsense' is not one of" in out


def test_all_are_refused_alike(job: Job) -> None:
    job.start(*WRONG)
    assert job.ends() == [2, 2, 2]
    for task in range(3):
        assert "'nonsense' is not one of" in said(job, task)


def test_another_token_is_a_misconfiguration(job: Job) -> None:
    job.start(
        *FILES, timeout=25.0, env={
            task: {"GPUCHECK_PREFLIGHT_TOKEN": "abb"[task]} for task in range(3)
        },
    )  # fmt: skip
    assert job.ends() == [4, 4, 4]
    report = job.report()
    assert {one["slug"] for one in report["culprits"]} == {"ranks-heterogeneous"}
    ranks = [rank for one in report["culprits"] for rank in one["ranks"]]
    assert sorted(ranks) == [1, 2]
    assert "127.0.0.1 presented another token" in report["culprits"][0]["evidence"]
    assert (job.folder / "bad").read_text() == ""
    assert "another token" in job.tasks[1].communicate()[0]


def test_another_number_of_tasks_is_a_misconfiguration(job: Job) -> None:
    more = {"WORLD_SIZE": "5", "LOCAL_WORLD_SIZE": "5"}
    job.start(*FILES, timeout=25.0, env={2: {**more, "LOCAL_RANK": "0"}})
    assert job.ends() == [4, 4, 4]
    (culprit,) = job.report()["culprits"]
    assert (culprit["slug"], culprit["ranks"]) == ("ranks-heterogeneous", [2])
    assert "at 127.0.0.1 looked for a job of 5 tasks instead of 3" in culprit["evidence"]
    assert (job.folder / "bad").read_text() == ""
    assert "a job of 3 tasks with the same name" in " ".join(job.tasks[2].communicate()[0].split())


def test_a_rank_twice_is_a_misconfiguration(job: Job) -> None:
    job.start(*FILES, timeout=25.0, env={2: {"RANK": "1"}})
    assert job.ends() == [4, 4, 4]
    (culprit,) = job.report()["culprits"]
    assert (culprit["slug"], culprit["ranks"]) == ("ranks-heterogeneous", [2])
    assert "at 127.0.0.1, said that it is task 1" in culprit["evidence"]
    assert (job.folder / "bad").read_text() == ""


def test_two_jobs_with_one_master_port(job: Job, tmp_path: Path) -> None:
    """The second one does not open a store, and its tasks do not take part in the first one."""
    other = Job(tmp_path / "other")
    other.folder.mkdir()
    other.mark, other.port = job.mark, job.port
    over = tmp_path / "over"
    fault = f"while not os.path.exists({str(over)!r}): __import__('time').sleep(0.1)"
    site = break_torch(job.folder / "site", "RANK", "1", fault)
    path = gate_runs.environment(sys.executable, job.folder)["PYTHONPATH"]
    slow = {"PYTHONPATH": f"{site}{os.pathsep}{path}"}
    try:
        job.start(*FILES, env=dict.fromkeys(range(3), slow))  # it lasts longer than the second one
        job.until(lambda: len(job.zygotes()) == 3, "the first job did not start")
        same_key = {"XDG_STATE_HOME": str(job.folder / "state")}
        other.start(*FILES, timeout=20.0, env=dict.fromkeys(range(3), same_key))
        assert other.ends() == [4, 4, 4]
        over.touch()
        out = other.tasks[0].communicate()[0]
        assert "another job on this machine has the same name" in out
        assert "another process already is task 1" in other.tasks[1].communicate()[0]
        assert job.ends() == [0, 0, 0]
        assert job.report()["culprits"] == []
    finally:
        other.clear()


def test_jobs_of_different_sizes_share_a_master_port(job: Job, tmp_path: Path) -> None:
    other = Job(tmp_path / "other")
    other.folder.mkdir()
    other.mark, other.port = job.mark, job.port
    two = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    try:
        job.start()
        other.start(tasks=(0, 1), env={0: two, 1: two})
        assert [one.wait(90) for one in other.tasks] == [0, 0]
        assert job.ends() == [0, 0, 0]
    finally:
        other.clear()
