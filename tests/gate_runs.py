"""Pre-flights under real launchers, on CPU ranks over gloo: what each task ended with and said."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from slurm_cluster import Cluster

Launcher = Literal["alone", "torchrun", "srun", "mpirun"]
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--no-python")
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none")
# What mpirun takes for ssh: a host is a host name of its own on this machine.
_AGENT = """\
#!/bin/sh
host=$1
shift
exec unshare --uts sh -c 'hostname "$0" && eval "$1"' "$host" "$*"
"""

# Every task leaves its own status: torchrun returns 1 whatever its ranks return.
_GATE = """\
#!/bin/sh
task=${SLURM_PROCID:-${OMPI_COMM_WORLD_RANK:-${RANK:-0}}}
cd "$GATE_FOLDER"
"$GATE_PYTHON" -m gpucheck preflight --device cpu --format json -o report.json "$@" \\
    > out.$task 2> err.$task
echo $? > status.$task
"""


class Shape(msgspec.Struct, frozen=True):
    """So many nodes with so many ranks each."""

    nodes: int
    ranks: int

    @property
    def world(self) -> int:
        """All ranks."""
        return self.nodes * self.ranks

    def __str__(self) -> str:
        return f"{self.nodes}x{self.ranks}"


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a pre-flight: the statuses of its tasks, its report, and how long it took."""

    statuses: dict[int, int]
    report: dict[str, Any]
    seconds: float
    said: str

    @property
    def status(self) -> int | None:
        """The status of all tasks; None when they differ, or one left none."""
        return (
            next(iter(set(self.statuses.values())))
            if len(set(self.statuses.values())) == 1
            else None
        )

    @property
    def culprits(self) -> list[tuple[str, tuple[int, ...]]]:
        """Slug and ranks of each, as the report has them."""
        return [
            (culprit["slug"], tuple(culprit["ranks"]))
            for culprit in self.report.get("culprits") or ()
        ]

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The culprits that are errors."""
        return [
            culprit
            for culprit in self.report.get("culprits") or ()
            if culprit["severity"] == "error"
        ]


def environment(python: str, folder: Path) -> dict[str, str]:
    """What finds this gpucheck and these files; what an outer launcher has left is taken out."""
    outer = ("SLURM_", "OMPI_", "PMI", "TORCHELASTIC_", "RANK", "WORLD_SIZE", "MASTER_", "LOCAL_")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(outer)}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "XDG_STATE_HOME": str(folder / "state"),  # not the home folder of whoever runs the tests
        "GATE_FOLDER": str(folder),
        "GATE_PYTHON": sys.executable,
        "GPUCHECK_PYTHON": python,
        "OMP_NUM_THREADS": "1",
    }


def commands(
    launcher: Launcher, shape: Shape, gate: Path, options: Sequence[str], port: int
) -> list[list[str]]:
    """Return what is started, on this machine, for all nodes."""
    command = [str(gate), *options]
    if launcher == "alone":
        return [[*command, "--ranks", str(shape.world)]]
    if launcher == "mpirun":
        there = [*_hosts(shape, gate), "-np", str(shape.world)]
        where = ["--master", f"127.0.0.1:{port}"] if shape.nodes > 1 else []
        return [[*MPIRUN, *there, *command, *where]]
    if launcher == "srun":
        spread = [f"-N{shape.nodes}", f"--ntasks-per-node={shape.ranks}", "--overcommit"]
        return [["srun", *spread, *command]]
    return [
        [
            *TORCHRUN, f"--nnodes={shape.nodes}", f"--nproc-per-node={shape.ranks}",
            f"--node-rank={node}", "--master-addr=127.0.0.1", f"--master-port={port}", *command,
        ]
        for node in range(shape.nodes)
    ]  # fmt: skip


def _hosts(shape: Shape, gate: Path) -> list[str]:
    """Return the options that spread the ranks over hosts, which one node does without."""
    if shape.nodes == 1:
        return []
    agent = gate.with_name("agent.sh")
    agent.write_text(_AGENT)
    agent.chmod(0o755)
    hosts = ",".join(f"mpi{node}:{shape.ranks}" for node in range(shape.nodes))
    return ["--mca", "plm", "rsh", "--mca", "plm_rsh_agent", str(agent), "--host", hosts]


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how it is run: ``port`` for torchrun, ``limit`` in seconds for the launcher."""

    python: str = sys.executable
    port: int = 29700
    limit: float = 300.0
    slurm: Cluster | None = None
    env: Mapping[str, str] = {}


def run(
    launcher: Launcher,
    shape: Shape,
    options: Sequence[str],
    folder: Path,
    setting: Setting = Setting(),  # noqa: B008  # frozen
) -> Gate:
    """Run a pre-flight to its end."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    gate = folder / "gate.sh"
    gate.write_text(_GATE)
    gate.chmod(0o755)
    variables = {**environment(setting.python, folder), **setting.env}
    started = time.monotonic()
    if launcher == "srun":
        assert setting.slurm is not None
        (command,) = commands(launcher, shape, gate, options, setting.port)
        setting.slurm.run(*command, env=variables, seconds=setting.limit)
    else:
        running = []
        for node, command in enumerate(commands(launcher, shape, gate, options, setting.port)):
            with (folder / f"launcher.{node}").open("w") as errors:
                process = subprocess.Popen(
                    command, env=variables, cwd=folder, stdout=subprocess.DEVNULL, stderr=errors
                )
            running.append(process)
        for process in running:
            process.wait(setting.limit)
    return read(folder, time.monotonic() - started)


def read(folder: Path, seconds: float) -> Gate:
    """Read what a pre-flight has left in its folder."""
    statuses = {int(file.suffix[1:]): int(file.read_text()) for file in folder.glob("status.*")}
    report = folder / "report.json"
    printed = "".join(
        file.read_text(errors="replace")
        for pattern in ("out.*", "err.*", "launcher.*")
        for file in sorted(folder.glob(pattern))
    )
    return Gate(
        statuses=statuses,
        report=json.loads(report.read_text()) if report.exists() else {},
        seconds=seconds,
        said=printed,
    )
