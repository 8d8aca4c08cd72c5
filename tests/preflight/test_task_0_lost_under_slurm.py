"""Task 0 of a job of a real Slurm is killed: the others name its host, whatever srun does then."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import gate_runs
import msgspec
import pytest
from broken_torch import break_torch
from left_behind import wait_until
from slurm_cluster import Cluster

pytestmark = [
    pytest.mark.gate,
    pytest.mark.slurm,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
]
LIMIT = 90.0
_OTHERS = (1, 2, 3)
# Task 0 is gpucheck itself, as in a job; of the others the shell notes the status.
_GATE = """\
#!/bin/sh
cd "$GATE_FOLDER"
set -- "$GATE_PYTHON" -m gpucheck preflight --device cpu --timeout 120 \\
    --exclude-file bad --status-file status "$@"
if [ "$SLURM_PROCID" = 0 ]; then
    echo $$ > pid.0
    exec "$@"
fi
trap : TERM  # srun tells this shell as well
"$@" > out.$SLURM_PROCID 2>&1
status=$?
echo $status > status.$SLURM_PROCID
exit $status
"""


class Ended(msgspec.Struct, frozen=True):
    """What came of a job whose task 0 was killed."""

    status: int
    said: str
    """By srun."""
    seconds: float
    """From the end of task 0 to that of srun."""


def killed_in_a_step(slurm: Cluster, folder: Path, *options: str) -> Ended:
    """Kill task 0 while rank 3 waits before an all-reduce: two tasks on each of two nodes."""
    mark = folder / "in-a-step"
    fault = f"open({str(mark)!r}, 'w').close(); __import__('time').sleep(600)"
    site = break_torch(folder / "site", "SLURM_PROCID", "3", fault)
    env = gate_runs.environment(sys.executable, folder)
    env["PYTHONPATH"] = f"{site}{os.pathsep}{env['PYTHONPATH']}"
    gate = folder / "gate.sh"
    gate.write_text(_GATE)
    gate.chmod(0o755)
    job = subprocess.Popen(
        ["srun", "-N2", "--ntasks-per-node=2", "--overcommit", "-w", "gate01,gate02", *options,
         str(gate)],
        env={**env, **{name: slurm.env[name] for name in ("SLURM_CONF", "PATH")}},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder,
    )  # fmt: skip
    try:
        assert wait_until(mark.exists, LIMIT), slurm.logs()
        os.kill(int((folder / "pid.0").read_text()), signal.SIGKILL)
        lost = time.monotonic()
        said, _ = job.communicate(timeout=LIMIT)
        return Ended(job.returncode, said, time.monotonic() - lost)
    finally:
        job.kill()
        job.wait()


@pytest.mark.parametrize(
    "options",
    [
        ("--kill-on-bad-exit=0",),  # the others go on for as long as they want
        ("--kill-on-bad-exit=0", "--wait=90"),  # as in docs/examples/slurm/gate.sbatch
        ("--kill-on-bad-exit=0", "--wait=2"),
        ("--kill-on-bad-exit=1",),  # SIGTERM to the others at once, SIGKILL after KillWait
    ],
)
def test_the_others_name_its_host(slurm: Cluster, tmp_path: Path, options: tuple[str, ...]) -> None:
    """The nodes share a kernel, so every task sees that the process has ended."""
    tmp_path.chmod(0o755)
    ended = killed_in_a_step(slurm, tmp_path, *options)
    assert ended.seconds < 30, ended
    said = {task: (tmp_path / f"out.{task}").read_text() for task in _OTHERS}
    assert [(tmp_path / f"status.{task}").read_text() for task in _OTHERS] == ["1\n"] * 3, said
    assert (tmp_path / "bad").read_text() == "gate01\n"
    assert (tmp_path / "status").read_text() == "1\n"
    why = " ".join(said[2].split())
    assert "BROKEN rank 0 = host gate01: task 0 on host gate01 stopped answering" in why
    assert "its process has ended without a verdict" in why
    assert "[rank-missing]" in why
    assert "task 0 on host gate01 stopped answering" in said[1], "one line of the other node"
    assert said[3] == ""
    # What srun itself says and returns: the signal of task 0, and not the verdict.
    assert ended.status == 137
    assert "gate01: task 0: Killed" in ended.said
    assert ("Terminating StepId" in ended.said) is ("--kill-on-bad-exit=1" in options)
