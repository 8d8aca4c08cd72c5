"""The recipes for mpirun, torchrun and Ray, run as they are written on CPU ranks over gloo."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import slurm_cluster
from recipe_support import put_on_path

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
_AGENT = """\
#!/bin/sh
host=$1
shift
exec unshare --uts sh -c 'hostname "$0" && eval "$1"' "$host" "$*"
"""
pytestmark = [
    pytest.mark.gate,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
]


def ran(command: list[str], folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    outer = ("SLURM_", "OMPI_", "PMI", "TORCHELASTIC_", "RANK", "WORLD_SIZE", "MASTER_", "LOCAL_")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(outer)}
    return subprocess.run(
        command, cwd=folder, env={**kept, **env}, capture_output=True, text=True, timeout=280,
        check=False,
    )  # fmt: skip


# mpirun


@pytest.fixture
def hosts(tmp_path: Path) -> Path:
    """A hostfile of two hosts, which are host names of their own on this machine."""
    if not shutil.which("mpirun") or os.geteuid() != 0:
        pytest.skip("needs Open MPI and root")
    agent = tmp_path / "agent.sh"
    agent.write_text(_AGENT)
    agent.chmod(0o755)
    file = tmp_path / "hosts"
    file.write_text("# the hosts\n\nmpi0 slots=2\nmpi1 slots=2\n")
    return file


def mpi_gate(hosts: Path, path: str, *command: str) -> subprocess.CompletedProcess[str]:
    mca = f"--allow-run-as-root --mca plm rsh --mca plm_rsh_agent {hosts.with_name('agent.sh')}"
    with slurm_cluster.names_of(("mpi0", "mpi1")):
        return ran(
            [str(EXAMPLES / "mpi" / "gate.sh"), str(hosts), *command], hosts.parent,
            PATH=path, GATE_MPIRUN=mca,
        )  # fmt: skip


@pytest.mark.mpi
def test_mpirun_starts_the_job_after_a_pass(hosts: Path) -> None:
    path = put_on_path(hosts.parent)
    done = mpi_gate(hosts, path, "-np", "4", "sh", "-c", "echo trained on $(hostname)")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = sorted(line for line in done.stdout.splitlines() if line.startswith("trained"))
    assert lines == [f"trained on mpi{node}" for node in (0, 0, 1, 1)]
    (report,) = hosts.parent.glob("gpucheck-*.txt")
    assert "HEALTHY  4 ranks on 2 nodes" in report.read_text()


@pytest.mark.mpi
def test_mpirun_starts_nothing_without_a_pass(hosts: Path) -> None:
    path = put_on_path(hosts.parent, "--drill crash:rank=3")
    done = mpi_gate(hosts, path, "-np", "4", "sh", "-c", "echo trained")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "trained" not in done.stdout
    assert "gate: status 1" in done.stdout


@pytest.mark.mpi
@pytest.mark.parametrize(
    ("verdict", "own", "status"), [("0", "137", 0), ("4", "4", 4), ("", "143", 3), ("", "2", 2)]
)
def test_the_gate_of_mpirun_reads_the_verdict_of_task_0(
    hosts: Path, verdict: str, own: str, status: int
) -> None:
    tool = hosts.parent / "bin" / "gpucheck"
    tool.parent.mkdir()
    write = f'[ "$1" != --status-file ] || [ -z "{verdict}" ] || echo "{verdict}" >"$2"; shift'
    tool.write_text(f"#!/bin/sh\nwhile [ $# -gt 0 ]; do {write}; done\nexit {own}\n")
    tool.chmod(0o755)
    done = mpi_gate(hosts, f"{tool.parent}:{os.environ['PATH']}", "-np", "1", "echo", "trained")
    assert done.returncode == status, done.stdout + done.stderr
    assert ("trained" in done.stdout.splitlines()) is (status == 0)


# torchrun


def test_torchrun_tests_the_gpus_before_each_start(tmp_path: Path) -> None:
    """The training fails once; torchrun starts it again, and the gate has run twice."""
    train = tmp_path / "train.py"
    train.write_text(
        "import os, pathlib, sys\n"
        "start = os.environ['TORCHELASTIC_RESTART_COUNT']\n"
        "pathlib.Path(f\"trained-{start}-{os.environ['RANK']}\").touch()\n"
        "sys.exit(start == '0' and os.environ['RANK'] == '1')\n"
    )
    path = put_on_path(tmp_path, ranks=1)
    path = f"{Path(sys.executable).parent}:{path}"
    tools = str(tmp_path / "bin")
    done = ran(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
            "--max-restarts=2", "--no-python", str(EXAMPLES / "torchrun" / "gate_and_train.sh"),
            "train.py",
        ],
        tmp_path, PATH=f"{tools}:{path}",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(file.name for file in tmp_path.glob("trained-*")) == [
        f"trained-{start}-{rank}" for start in (0, 1) for rank in (0, 1)
    ]
    reports = sorted(tmp_path.glob("gpucheck-*.txt"))
    assert [re.findall(r"\.(\d)\.txt$", file.name) for file in reports] == [["0"], ["1"]]
    assert all("HEALTHY  2 ranks" in file.read_text() for file in reports)


def test_torchrun_trains_nothing_without_a_pass(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("open('trained', 'w')\n")
    path = put_on_path(tmp_path, "--drill wrong:rank=1", ranks=1)
    done = ran(
        [
            sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
            "--no-python", str(EXAMPLES / "torchrun" / "gate_and_train.sh"), "train.py",
        ],
        tmp_path, PATH=path,
    )  # fmt: skip
    assert done.returncode == 1
    assert not (tmp_path / "trained").exists()


# Ray


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="no Ray here")
def test_ray_tests_all_nodes_together(tmp_path: Path) -> None:
    path = put_on_path(tmp_path)
    script = tmp_path / "cluster.py"
    script.write_text(
        "import subprocess, sys\n"
        "from ray.cluster_utils import Cluster\n"
        "cluster = Cluster()\n"
        "for _ in range(2):\n"
        "    cluster.add_node(num_cpus=2, num_gpus=0)\n"
        "cluster.wait_for_nodes()\n"
        "done = subprocess.run([sys.executable, *sys.argv[1:]],\n"
        "                      env={**__import__('os').environ, 'RAY_ADDRESS': cluster.address})\n"
        "cluster.shutdown()\n"
        "sys.exit(done.returncode)\n"
    )
    gate = str(EXAMPLES / "ray" / "ray_gate.py")
    options = ("--gpus", "0", "--cpus", "2", "--timeout", "60")
    done = ran([sys.executable, str(script), gate, *options], tmp_path, PATH=path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "HEALTHY  4 ranks" in done.stdout
