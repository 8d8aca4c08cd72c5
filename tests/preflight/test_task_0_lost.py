"""Task 0 of a real job dies or stops at some moment: the others name its host, and nobody else."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import gate_runs
import net_hosts
import net_jobs
import pytest
from broken_torch import break_torch
from left_behind import MARK, wait_until
from outside_faults import zygotes
from three_tasks import LIMIT, Job

pytestmark = [
    pytest.mark.gate,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
    pytest.mark.skipif(sys.platform != "linux", reason="what a process does is read from /proc"),
]
HERE = os.uname().nodename
FILES = ("--exclude-file", "bad", "--status-file", "status", "--out-dir", "all")
OWN_REPORT: dict[int, tuple[str, ...]] = {1: ("--format", "json", "-o", "report.json")}
"""Task 1 takes over, and writes where task 0 would have written."""
HOW = {signal.SIGKILL: "has ended", signal.SIGSTOP: "is stopped"}


def in_a_step(job: Job) -> None:
    """Start a job whose rank 1 waits before an all-reduce, and wait until it does."""
    mark = job.folder / "in-a-step"
    fault = f"open({str(mark)!r}, 'w').close(); __import__('time').sleep(600)"
    site = break_torch(job.folder / "site", "RANK", "1", fault)
    path = gate_runs.environment(sys.executable, job.folder)["PYTHONPATH"]
    env = {task: {"PYTHONPATH": f"{site}{os.pathsep}{path}"} for task in range(3)}
    job.start(*FILES, env=env, own=OWN_REPORT)
    job.until(mark.exists, "no rank came so far")


def importing(job: Job, timeout: float = LIMIT) -> None:
    """Start a job, and wait until its tasks import torch."""
    job.start(*FILES, own=OWN_REPORT, timeout=timeout)
    job.until(lambda: len(job.zygotes()) == 3, "the zygotes did not start")
    time.sleep(0.5)


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("begin", [importing, in_a_step])
def test_the_others_name_its_host(job: Job, how: signal.Signals, begin: object) -> None:
    assert callable(begin)
    begin(job)
    job.tasks[0].send_signal(how)
    lost = time.monotonic()
    assert job.ends([1, 2]) == [1, 1], [one.communicate() for one in job.tasks[1:]]
    assert time.monotonic() - lost < (10 if how == signal.SIGKILL else 40)
    said = [one.communicate()[0] for one in job.tasks[1:]]
    assert not any(said), "the report is in its file, and one task of a node speaks"
    report = job.report()
    (culprit,) = report["culprits"]
    assert (culprit["slug"], culprit["confidence"]) == ("rank-missing", "certain")
    assert culprit["hosts"] == [HERE]
    assert culprit["ranks"] == ([0] if begin is in_a_step else [])
    assert HOW[how] in culprit["evidence"]
    assert "while 2 other tasks were connected" in culprit["evidence"]
    assert (report["exit"], report["class"]) == (1, "culprit")
    assert (job.folder / "bad").read_text() == f"{HERE}\n"
    assert (job.folder / "status").read_text() == "1\n"
    assert (job.folder / "all" / "bad-hosts").read_text() == f"{HERE}\n"
    written = (job.folder / "all" / "status").stat()
    if how == signal.SIGSTOP:
        job.tasks[0].send_signal(signal.SIGCONT)
        assert job.ends([0]) == [3]
        assert (job.folder / "status").read_text() == "1\n", "the others had the last word"
        assert (job.folder / "all" / "status").stat() == written
    assert len((job.folder / "all" / "runs.jsonl").read_text().splitlines()) == 1


def test_it_dies_before_all_have_come(job: Job) -> None:
    job.start(*FILES, own=OWN_REPORT, tasks=(0, 1))
    job.until(lambda: len(job.zygotes()) == 2, "the zygotes did not start")
    time.sleep(0.5)
    job.tasks[0].kill()
    assert job.tasks[1].wait(LIMIT) == 1
    assert job.report()["culprits"][0]["hosts"] == [HERE]


def test_it_dies_once_it_has_judged(job: Job) -> None:
    """Everybody has the verdict: nothing is lost."""
    job.start(*FILES)
    report = job.folder / "report.json"
    job.until(lambda: report.exists() and report.stat().st_size > 0, "there was no report")
    job.tasks[0].kill()
    assert job.ends([1, 2]) == [0, 0]
    assert job.report()["culprits"] == []


def test_a_short_stop_accuses_nobody(job: Job) -> None:
    importing(job)
    job.tasks[0].send_signal(signal.SIGSTOP)
    time.sleep(6.0)
    job.tasks[0].send_signal(signal.SIGCONT)
    assert job.ends() == [0, 0, 0]
    assert (job.folder / "bad").read_text() == ""


def test_all_stop_and_go_on_accuses_nobody(job: Job) -> None:
    """As when a virtual machine is moved: nobody waited longer than anybody else."""
    importing(job, timeout=85.0)
    for one in job.tasks:
        one.send_signal(signal.SIGSTOP)
    time.sleep(18.0)
    for one in job.tasks:
        one.send_signal(signal.SIGCONT)
    assert job.ends() == [0, 0, 0], job.report()["why"]
    assert (job.folder / "bad").read_text() == ""


def test_a_launcher_that_ends_all_tasks_accuses_nobody(job: Job) -> None:
    importing(job)
    for one in job.tasks:
        one.terminate()
    assert job.ends() == [3, 3, 3]
    assert not (job.folder / "bad").exists() or (job.folder / "bad").read_text() == ""


def test_torchrun_ends_the_others_when_it_dies(tmp_path: Path) -> None:
    """They have only seconds, in which they write what is known."""
    gate = tmp_path / "gate.sh"
    gate.write_text(
        '#!/bin/sh\ncd "$GATE_FOLDER"\necho $$ > pid.$RANK\n'
        'exec "$GATE_PYTHON" -m gpucheck preflight --device cpu --exclude-file bad '
        "--status-file status --drill absent:rank=2\n"
    )
    gate.chmod(0o755)
    mark = str(tmp_path)
    env = {**gate_runs.environment(sys.executable, tmp_path), MARK: mark}
    command = [*gate_runs.TORCHRUN, "--nproc-per-node=3", "--master-port=29681", str(gate)]
    job = subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        here = lambda: all(zygotes(mark, task) for task in (0, 1))  # noqa: E731
        assert wait_until(here, LIMIT), "task 1 did not register"
        time.sleep(1.0)
        os.kill(int((tmp_path / "pid.0").read_text()), signal.SIGKILL)
        said, _ = job.communicate(timeout=LIMIT)
    finally:
        job.kill()
    assert (tmp_path / "status").exists(), said
    assert (tmp_path / "status").read_text() == "1\n", said
    assert "its process has ended without a verdict" in " ".join(said.split())


@pytest.mark.parametrize("task", [1, 2])
def test_torchrun_ends_all_when_another_task_dies(tmp_path: Path, task: int) -> None:
    """The answer is the task whose connection broke, not that task 0 was told to end."""
    gate = tmp_path / "gate.sh"
    gate.write_text(
        '#!/bin/sh\ncd "$GATE_FOLDER"\necho $$ > pid.$RANK\n'
        'exec "$GATE_PYTHON" -m gpucheck preflight --device cpu --format json -o report.json '
        "--exclude-file bad --status-file status --drill hang:rank=0\n"
    )
    gate.chmod(0o755)
    mark = str(tmp_path)
    env = {**gate_runs.environment(sys.executable, tmp_path), MARK: mark}
    command = [
        *gate_runs.TORCHRUN,
        "--nproc-per-node=3",
        f"--master-port={29683 + task}",
        str(gate),
    ]
    job = subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        here = lambda: all(zygotes(mark, task) for task in range(3))  # noqa: E731
        assert wait_until(here, LIMIT), "a task did not register"
        time.sleep(1.0)
        os.kill(int((tmp_path / f"pid.{task}").read_text()), signal.SIGKILL)
        said, _ = job.communicate(timeout=LIMIT)
    finally:
        job.kill()
    assert (tmp_path / "status").read_text() == "1\n", said
    (culprit,) = json.loads((tmp_path / "report.json").read_text())["culprits"]
    assert (culprit["slug"], culprit["ranks"]) == ("rank-missing", [task]), culprit
    assert "was closed without a word" in culprit["evidence"]


@pytest.fixture
def net() -> Iterator[net_hosts.Hosts]:
    if why := net_hosts.missing():
        pytest.skip(why)
    with net_hosts.hosts(4) as some:
        yield some


def on_hosts(net: net_hosts.Hosts, folder: Path) -> net_jobs.Job:
    """Start a job, each task in a folder of its own, whose rank 1 waits in a step."""
    mark = folder / "in-the-middle"
    fault = f"open({str(mark)!r}, 'w').close(); __import__('time').sleep(600)"
    site = break_torch(folder / "site", "RANK", "1", fault)
    around = {}
    for host in range(len(net.names)):
        (folder / str(host)).mkdir()
        around[host] = ("sh", "-c", 'cd "$0" && exec "$@"', str(folder / str(host)))
    job = net_jobs.Job(net, "--timeout", "150", *FILES, site=site, around=around)
    job.wait_for(mark)
    return job


@pytest.mark.netns
def test_its_host_loses_its_power(net: net_hosts.Hosts, tmp_path: Path) -> None:
    job = on_hosts(net, tmp_path)
    net.power_off(0)
    off = time.monotonic()
    statuses, _, said = job.end(160)
    assert statuses[1:] == [1] * 3, said
    assert time.monotonic() - off < 60
    for host, words in enumerate(said[1:], 1):
        assert f"task 0 on host {net.names[0]} stopped answering" in words
        assert "3 other hosts do not reach its host any more" in words
        assert (tmp_path / str(host) / "bad").exists() is (host == 1)
    assert (tmp_path / "1" / "bad").read_text() == f"{net.names[0]}\n"


@pytest.mark.netns
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_its_process_dies_on_a_host_that_runs(
    net: net_hosts.Hosts, tmp_path: Path, how: signal.Signals
) -> None:
    job = on_hosts(net, tmp_path)
    job.signal(0, how)
    if how == signal.SIGSTOP:
        time.sleep(40)
        job.signal(0, signal.SIGKILL)
    statuses, _, said = job.end(160)
    assert statuses[1:] == [1] * 3, said
    seen = {signal.SIGKILL: "refuses connections", signal.SIGSTOP: "does not answer"}[how]
    assert seen in said[1], said
    assert (tmp_path / "1" / "bad").read_text() == f"{net.names[0]}\n"


@pytest.mark.netns
def test_it_is_cut_off_from_all_others(net: net_hosts.Hosts, tmp_path: Path) -> None:
    """The majority names its host; task 0 excludes nobody."""
    job = on_hosts(net, tmp_path)
    for host in (1, 2, 3):
        net.cut(0, host)
    statuses, report, said = job.end(160)
    assert statuses[1:] == [1] * 3, said
    assert (tmp_path / "1" / "bad").read_text() == f"{net.names[0]}\n"
    assert {one["confidence"] for one in report["culprits"]} == {"possible"}, report
    assert (tmp_path / "0" / "bad").read_text() == ""


@pytest.mark.netns
def test_the_half_without_it_names_nobody(net: net_hosts.Hosts, tmp_path: Path) -> None:
    job = on_hosts(net, tmp_path)
    for one in (0, 1):
        for other in (2, 3):
            net.cut(one, other)
    statuses, report, said = job.end(160)
    assert statuses[2:] == [3, 3], said
    assert statuses[:2] == [1, 1], said
    assert "cut off" in said[2]
    # Two halves: the hosts of the other one are as good, so task 0 is sure of none either.
    assert {one["confidence"] for one in report["culprits"]} == {"possible"}, report["culprits"]
    assert (tmp_path / "0" / "bad").read_text() == ""
    assert not (tmp_path / "2" / "bad").exists()
