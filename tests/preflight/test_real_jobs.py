"""A whole pre-flight under each launcher: healthy, and with a rank that crashes in a collective."""

import importlib.util
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gate_runs
import left_behind
import outside_faults
import pytest
from slurm_cluster import Cluster

import gpucheck

pytestmark = [
    pytest.mark.gate,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
]
mpirun = pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun: Open MPI is missing")
TORCHRUN = (sys.executable, "-m", "torch.distributed.run")
CRASH = ("--drill", "crash:rank=3")
LIMIT = 150
STOPPED, SLACK = 40.0, 30.0
"""The time limit of a job with a stopped task, and what a busy launcher may take beyond it."""


def environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "OMPI_", "PMI"))}
    return {**kept, "PYTHONPATH": str(Path(gpucheck.__file__).parents[1])}


def preflight(folder: Path, *options: str) -> tuple[str, ...]:
    """The command of each task."""
    command = folder / "task.sh"
    words = " ".join(options)
    command.write_text(
        f"#!/bin/sh\nexec {sys.executable} -m gpucheck preflight --device cpu --timeout {LIMIT} "
        f"--python {sys.executable} --format json -o {folder}/report.json --each {folder}/each "
        f"{words}\n"
    )
    command.chmod(0o755)
    folder.chmod(0o755)
    return (str(command),)


def judged(folder: Path, ranks: int, launcher: str, *, is_drill: bool) -> dict[str, Any]:
    """Hold rank 0's report and what each rank wrote against what was to be found."""
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    assert report["exit"] == (1 if is_drill else 0), report
    assert report["launcher"] == launcher
    culprits = [(one["slug"], one["rank"]) for one in report["culprits"]]
    assert culprits == ([("rank-crashed", 3)] if is_drill else [])
    each = [json.loads(file.read_text()) for file in (folder / "each").iterdir()]
    assert sorted(one["rank"] for one in each) == list(range(ranks))
    assert {one["verdict"]["exit"] for one in each} == {report["exit"]}
    assert [one["rank"] for one in each if one["is_culprit"]] == ([3] if is_drill else [])
    return report


def launch(
    *command: str, folder: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env={**environment(), **(env or {})}, cwd=folder, capture_output=True, text=True,
        timeout=LIMIT + 60, check=False,
    )  # fmt: skip


DRILLS = pytest.mark.parametrize("drill", [(), CRASH], ids=["healthy", "crash"])


@DRILLS
def test_torchrun(tmp_path: Path, drill: tuple[str, ...]) -> None:
    command = preflight(tmp_path, *drill)
    done = launch(*TORCHRUN, "--nproc-per-node", "4", "--no-python", *command, folder=tmp_path)
    judged(tmp_path, 4, "torchrun", is_drill=bool(drill))
    if drill:
        told = re.findall(r"exitcode +: (-?\d+)", done.stderr)
        assert told == ["1"] * 4, "no rank was still there to be ended by torchrun"
    assert done.returncode == (1 if drill else 0), done.stderr


def in_time(folder: Path) -> tuple[str, ...]:
    """The command of each task, with a short time limit."""
    command = folder / "task.sh"
    command.write_text(
        f"#!/bin/sh\nexec {sys.executable} -m gpucheck preflight --device cpu --timeout {STOPPED} "
        f"--python {sys.executable} --format json -o {folder}/report.json\n"
    )
    command.chmod(0o755)
    folder.chmod(0o755)
    return (str(command),)


@pytest.mark.parametrize("rank", [0, 2])
def test_a_stopped_task_does_not_hold_torchrun(tmp_path: Path, rank: int) -> None:
    mark, begun = secrets.token_hex(6), time.monotonic()
    with outside_faults.signalled(mark, rank, signal.SIGSTOP, 0.5) as done:
        launch(
            *TORCHRUN, "--nproc-per-node", "4", "--no-python", *in_time(tmp_path),
            folder=tmp_path, env={left_behind.MARK: mark},
        )  # fmt: skip
    assert time.monotonic() - begun < STOPPED + SLACK
    assert len(done) == 1
    assert left_behind.wait_until(lambda: not left_behind.alive(mark))


@pytest.mark.slurm
@pytest.mark.parametrize("rank", [0, 2])
def test_a_stopped_task_does_not_hold_srun(slurm: Cluster, tmp_path: Path, rank: int) -> None:
    mark, begun = secrets.token_hex(6), time.monotonic()
    with outside_faults.signalled(mark, rank, signal.SIGSTOP, 0.5) as done:
        slurm.run(
            "srun", "-N4", "-n4", *in_time(tmp_path), seconds=STOPPED + 2 * SLACK,
            env={**environment(), left_behind.MARK: mark},
        )  # fmt: skip
    assert time.monotonic() - begun < STOPPED + SLACK
    assert len(done) == 1
    assert left_behind.wait_until(lambda: not left_behind.alive(mark))


@pytest.mark.mpi
@mpirun
@DRILLS
def test_mpirun(tmp_path: Path, drill: tuple[str, ...]) -> None:
    start = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "4")
    done = launch(*start, *preflight(tmp_path, *drill), folder=tmp_path)
    judged(tmp_path, 4, "openmpi", is_drill=bool(drill))
    assert done.returncode == (1 if drill else 0), done.stderr


@pytest.mark.mpi
@mpirun
@pytest.mark.skipif(os.geteuid() != 0, reason="host names of one's own need root")
@DRILLS
def test_mpirun_on_several_hosts(tmp_path: Path, drill: tuple[str, ...]) -> None:
    options = ["--timeout", str(LIMIT), *drill]
    gate = gate_runs.run("mpirun", gate_runs.Shape(2, 2), options, tmp_path)
    assert gate.statuses == dict.fromkeys(range(4), 1 if drill else 0), gate.said
    assert gate.culprits == ([("rank-crashed", (3,))] if drill else [])
    assert [one["host"] for one in gate.report["ranks"]] == ["mpi0", "mpi0", "mpi1", "mpi1"]


@pytest.mark.slurm
@DRILLS
@pytest.mark.parametrize(
    ("start", "options"),
    [(("-N4", "-n4"), ("--ranks", "2")), (("-w", "gate01,gate02", "-n5"), ())],
    ids=["task-per-node", "uneven"],
)
def test_srun(
    slurm: Cluster, tmp_path: Path, drill: tuple[str, ...], start: tuple[str, ...],
    options: tuple[str, ...],
) -> None:  # fmt: skip
    command = preflight(tmp_path, *options, *drill)
    done = slurm.run("srun", *start, *command, seconds=LIMIT + 60, env=environment())
    report = judged(tmp_path, 8 if options else 5, "slurm", is_drill=bool(drill))
    assert done.returncode == (1 if drill else 0), done.stderr + slurm.logs()
    hosts = [one["host"] for one in report["ranks"]]
    if options:
        assert hosts == [f"gate0{rank // 2 + 1}" for rank in range(8)]
    else:
        assert set(hosts) == {"gate01", "gate02"}
    if drill:
        assert report["culprits"][0]["host"] == hosts[3]
