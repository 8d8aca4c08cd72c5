"""TaskPlace and store under real launchers: all tasks of a job find one another."""

import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import meet_script
import net_hosts
import pytest
from slurm_cluster import Cluster

pytestmark = pytest.mark.gate

SCRIPT = (sys.executable, meet_script.__file__)
TORCHRUN = (sys.executable, "-m", "torch.distributed.run")
mpirun = pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun: Open MPI is missing")


def environment() -> dict[str, str]:
    """What finds this gpucheck; what an outer launcher may have left is taken out."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "OMPI_", "PMI"))}
    return {**kept, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def roll(out: str) -> list[dict[str, Any]]:
    """What task 0 printed of all tasks."""
    lines = [line for line in out.splitlines() if line.startswith("[{")]
    assert len(lines) == 1, out
    told: list[dict[str, Any]] = json.loads(lines[0])
    return told


def launch(*command: str, folder: Path, env: dict[str, str] | None = None) -> list[dict[str, Any]]:
    done = subprocess.run(
        command, env={**environment(), **(env or {})}, cwd=folder, capture_output=True, text=True,
        timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return roll(done.stdout)


def each(told: list[dict[str, Any]], *fields: str) -> list[tuple[Any, ...]]:
    return [tuple(one[field] for field in fields) for one in told]


@pytest.mark.slurm
@pytest.mark.parametrize(
    ("options", "places"),
    [
        (("-N4", "--ntasks-per-node=2"), [(t, t // 2, t % 2, 2) for t in range(8)]),
        (("-N4", "-n4"), [(t, t, 0, 1) for t in range(4)]),
        (("-w", "gate01,gate02", "-n3"), [(0, 0, 0, 2), (1, 0, 1, 2), (2, 1, 0, 1)]),
        (
            ("-w", "gate01,gate02", "-n3", "-m", "cyclic"),
            [(0, 0, 0, 2), (1, 1, 0, 1), (2, 0, 1, 2)],
        ),
        (("-w", "gate01", "-n1"), [(0, 0, 0, 1)]),
    ],
)
def test_srun(slurm: Cluster, options: tuple[str, ...], places: list[tuple[int, ...]]) -> None:
    done = slurm.run("srun", *options, *SCRIPT, env={"PYTHONPATH": environment()["PYTHONPATH"]})
    assert done.returncode == 0, done.stderr + slurm.logs()
    told = roll(done.stdout)
    assert {one["launcher"] for one in told} == {"slurm"}
    assert each(told, "task", "node", "local", "local_tasks") == places
    hosts = [f"gate0{node + 1}" for _, node, _, _ in places]
    assert [one["hosts"] for one in told] == [hosts] * len(told)
    assert [one["host"] for one in told] == hosts
    assert len({(one["run"], one["master_port"]) for one in told}) == 1


@pytest.mark.slurm
def test_a_batch_script_is_alone_and_its_steps_are_not(slurm: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "gate.sh"
    line = " ".join(SCRIPT)
    script.write_text(
        f"#!/bin/bash\nexport MASTER_ADDR=elsewhere\n{line}\n"
        f"srun -N3 -n3 -w gate01,gate02,gate03 {line}\n"
    )
    tmp_path.chmod(0o755)
    state, out = slurm.job(script, "-N4", "-n8", f"--export=PYTHONPATH={os.pathsep.join(sys.path)}")
    assert state == "COMPLETED", out
    alone, step = out.splitlines()
    assert each(roll(alone), "launcher", "tasks") == [("local", 1)]
    assert each(roll(step), "launcher", "host") == [("slurm", f"gate0{n}") for n in (1, 2, 3)]


@pytest.mark.slurm
@pytest.mark.mpi
@mpirun
def test_mpirun_in_a_job_of_slurm(slurm: Cluster, tmp_path: Path) -> None:
    script = tmp_path / "mpi.sh"
    script.write_text(
        "#!/bin/bash\nexport PATH OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1\n"
        f"mpirun --oversubscribe -np 3 {' '.join(SCRIPT)} --master gate01\n"
    )
    state, out = slurm.job(
        script, "-N3", "-n3", f"--export=PATH,PYTHONPATH={os.pathsep.join(sys.path)}"
    )
    assert state == "COMPLETED", out
    assert each(roll(out), "launcher", "task", "tasks") == [("openmpi", t, 3) for t in range(3)]


@pytest.mark.mpi
@mpirun
def test_mpirun_on_one_host(tmp_path: Path) -> None:
    told = launch(
        "mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "4", *SCRIPT, folder=tmp_path
    )
    assert each(told, "launcher", "task", "local", "local_tasks", "nodes") == [
        ("openmpi", task, task, 4, 1) for task in range(4)
    ]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here")
def test_torchrun(tmp_path: Path) -> None:
    token = {"GPUCHECK_PREFLIGHT_TOKEN": "s3cret"}
    told = launch(
        *TORCHRUN, "--nproc-per-node", "3", "--no-python", *SCRIPT, folder=tmp_path, env=token
    )
    assert each(told, "launcher", "task", "local", "local_tasks", "node", "one_gpu") == [
        ("torchrun", task, task, 3, 0, True) for task in range(3)
    ]


@pytest.mark.mpi
@mpirun
def test_two_jobs_of_mpirun_at_the_same_time_keep_apart(tmp_path: Path) -> None:
    command = ("mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2", *SCRIPT)
    start = functools.partial(
        subprocess.Popen, command, env=environment(), cwd=tmp_path, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    both = [start(), start()]
    rolls = [roll(one.communicate(timeout=100)[0]) for one in both]
    assert [each(told, "task", "tasks") for told in rolls] == [[(0, 2), (1, 2)]] * 2
    assert len({one["pid"] for told in rolls for one in told}) == 4
    assert len({one["run"] for told in rolls for one in told}) == 2


@pytest.fixture(scope="module")
def net() -> Any:  # noqa: ANN401  # an iterator of hosts
    if why := net_hosts.missing():
        pytest.skip(why)
    with net_hosts.hosts(3) as some:
        yield some


def on_hosts(net: net_hosts.Hosts, variables: list[dict[str, str]]) -> list[dict[str, Any]]:
    running = [
        net.start(host, SCRIPT, {**environment(), **mine}) for host, mine in enumerate(variables)
    ]
    said = [one.communicate(timeout=100) for one in running]
    assert [one.returncode for one in running] == [0] * len(running), said
    return roll(said[0][0])


@pytest.mark.netns
def test_hosts_by_hand(net: net_hosts.Hosts) -> None:
    told = on_hosts(
        net,
        [{"RANK": str(n), "WORLD_SIZE": "3", "MASTER_ADDR": net.names[0]} for n in range(3)],
    )
    assert each(told, "launcher", "task", "here", "address") == [
        ("env", n, net.names[n], net.addresses[n]) for n in range(3)
    ]


@pytest.mark.netns
def test_pods_of_an_indexed_job(net: net_hosts.Hosts) -> None:
    told = on_hosts(
        net,
        [
            {
                "JOB_COMPLETION_INDEX": str(n), "HOSTNAME": f"host-{n}", "NODES": "3",
                "MASTER_ADDR": net.names[0],
            }
            for n in range(3)
        ],
    )  # fmt: skip
    assert each(told, "launcher", "task", "node", "nodes", "address") == [
        ("kubernetes", n, n, 3, net.addresses[n]) for n in range(3)
    ]
    assert told[0]["hosts"] == ["host-0", "host-1", "host-2"]


@pytest.mark.netns
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here")
def test_torchrun_on_several_hosts(net: net_hosts.Hosts) -> None:
    running = [
        net.start(
            host,
            [
                *TORCHRUN, "--nnodes=3", "--nproc-per-node=2", f"--node-rank={host}",
                f"--master-addr={net.names[0]}", "--master-port=29400", "--no-python", *SCRIPT,
            ],
            environment(),
        )
        for host in range(3)
    ]  # fmt: skip
    said = [one.communicate(timeout=100) for one in running]
    assert [one.returncode for one in running] == [0, 0, 0], said
    assert each(roll(said[0][0]), "task", "node", "nodes", "here") == [
        (task, task // 2, 3, net.names[task // 2]) for task in range(6)
    ]
