"""The recipes of the documents, run as they are written; gpucheck tests CPU ranks in them.

``gpucheck`` on the PATH of the recipes is a script that adds ``--device cpu`` and what breaks.
"""

import importlib.util
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import slurm_cluster
from broken_torch import break_torch
from slurm_cluster import Cluster

import gpucheck

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
pytestmark = [
    pytest.mark.gate,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
]


def put_on_path(folder: Path, more: str = "", broken: Path | None = None) -> str:
    """Make the ``gpucheck`` of the recipes; return the PATH that has it first."""
    places = [Path(gpucheck.__file__).parents[1], *([broken] if broken else [])]
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    command = tools / "gpucheck"
    command.write_text(
        "#!/bin/sh\n"
        f"export PYTHONPATH={':'.join(map(str, places))}\n"
        f'exec {sys.executable} -m gpucheck "$@" --device cpu --ranks 2 '
        f"--python {sys.executable} {more}\n"
    )
    command.chmod(0o755)
    return f"{tools}:{os.environ['PATH']}"


def shell(text: str, folder: Path, path: str) -> Path:
    """Write a script with its folders in the test's own; PATH and logs only are replaced."""
    script = folder / "recipe.sh"
    text = re.sub(r"PATH=\S+", f"PATH={path}", text)
    script.write_text(text.replace("/var/log/", f"{folder}/"))
    script.chmod(0o755)
    return script


@pytest.mark.slurm
def test_a_batch_script_goes_into_the_queue_again_without_the_bad_node(slurm: Cluster) -> None:
    fault = "os.kill(os.getpid(), 11)"
    broken = break_torch(slurm.folder / "broken", "SLURMD_NODENAME", "gate03", fault)
    path = put_on_path(slurm.folder, broken=broken)
    train = slurm.folder / "bin" / "train.sh"
    train.write_text("#!/bin/sh\necho training on $SLURMD_NODENAME\n")
    train.chmod(0o755)
    text = (EXAMPLES / "slurm" / "gate.sbatch").read_text()
    script = slurm.folder / "gate.sbatch"
    script.write_text(text.replace("--nodes=4", "--nodes=3"))  # one of four is a spare
    first = slurm.run("sbatch", "--parsable", str(script), env={"PATH": path}).stdout.strip()
    state = slurm.state(first, 300)
    out = (slurm.folder / f"train-{first}.log").read_text()
    report = (slurm.folder / f"gpucheck-{first}.0.txt").read_text()
    assert f"gate: job {first} on gate[01-03]: status 1" in out, out + report
    assert (slurm.folder / f"gpucheck-{first}.0.exclude").read_text().strip() == "gate03"
    assert (slurm.folder / f"gpucheck-{first}.0.status").read_text() == "1\n"
    assert "without gate03" in out
    assert "training" not in out
    assert state == "FAILED"
    assert "BROKEN" in report
    assert "host gate03" in report
    second = re.findall(r"as job (\d+)", out)[0]
    assert slurm.state(second, 300) == "COMPLETED"
    out = (slurm.folder / f"train-{second}.log").read_text()
    assert f"gate: job {second} on gate[01-02,04]: status 0" in out
    trained = sorted(line for line in out.splitlines() if line.startswith("training on"))
    assert trained == [f"training on gate0{number}" for number in (1, 2, 4)]


@pytest.mark.slurm
def test_a_stopped_task_holds_the_job_no_longer_than_the_wait_of_srun(slurm: Cluster) -> None:
    """Its supervisor is stopped, so srun alone can end it."""
    path = put_on_path(slurm.folder)
    tool = slurm.folder / "bin" / "gpucheck"
    held = '[ "$SLURM_PROCID" != 1 ] || (sleep 1.5; kill -STOP $$) &\nexec '
    tool.write_text(tool.read_text().replace("exec ", held))
    script = slurm.folder / "gate.sbatch"
    text = (EXAMPLES / "slurm" / "gate.sbatch").read_text().replace("--nodes=4", "--nodes=3")
    script.write_text(text.replace("--wait=90", "--wait=5").replace("train.sh", "true"))
    job = slurm.run("sbatch", "--parsable", str(script), env={"PATH": path}).stdout.strip()
    slurm.state(job, 200)
    ended = time.time()
    status = slurm.folder / f"gpucheck-{job}.0.status"
    report = (slurm.folder / f"gpucheck-{job}.0.txt").read_text()
    out = (slurm.folder / f"train-{job}.log").read_text()
    assert status.read_text() == "1\n", out + report
    assert (slurm.folder / f"gpucheck-{job}.0.exclude").read_text().strip() == "gate02", report
    assert ended - status.stat().st_mtime < 30
    assert "submitted again" in out
    slurm.run("scancel", re.findall(r"as job (\d+)", out)[0])


@pytest.mark.slurm
def test_outside_of_srun_it_says_that_the_other_nodes_were_not_tested(slurm: Cluster) -> None:
    path = put_on_path(slurm.folder)
    script = slurm.folder / "plain.sh"
    script.write_text("#!/bin/sh\n#SBATCH -N3\ngpucheck preflight\n")
    done = slurm.run("sbatch", "--parsable", "-o", "plain.out", str(script), env={"PATH": path})
    assert slurm.state(done.stdout.strip()) == "COMPLETED"
    out = (slurm.folder / "plain.out").read_text()
    assert "HEALTHY  2 ranks on 1 node" in out
    assert "Slurm gave this job 3 nodes, and only this one was tested" in " ".join(out.split())


@pytest.mark.slurm
def test_names_that_only_slurm_knows_are_mentioned_and_an_address_helps() -> None:
    if why := slurm_cluster.missing():
        pytest.skip(why)
    names = ("nowhere1", "nowhere2")
    with slurm_cluster.cluster(nodes=names, named=False) as cluster:
        path = put_on_path(cluster.folder)
        srun = ("srun", "-N2", "--ntasks-per-node=1", "gpucheck", "preflight", "--timeout")
        done = cluster.run(*srun, "20", env={"PATH": path})
        said = " ".join(done.stdout.split())
        assert "task 1 on" in said
        assert said.count("scontrol show node nowhere1") == 2, done.stdout + done.stderr
        shown = cluster.run("scontrol", "-o", "show", "node", "nowhere1").stdout
        address = re.findall(r"\bNodeAddr=(\S+)", shown)[0]
        done = cluster.run(*srun, "60", "--master", address, env={"PATH": path})
        assert done.returncode == 0, done.stdout + done.stderr
        assert "does not resolve" not in done.stdout


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[tuple[Cluster, Path]]:
    """A cluster whose slurmd runs what the test writes: Prolog and HealthCheckProgram."""
    if why := slurm_cluster.missing():
        pytest.skip(why)
    tmp_path.chmod(0o755)
    for name in ("prolog", "health"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 0\n")
        (tmp_path / name).chmod(0o755)
    settings = (
        f"Prolog={tmp_path}/prolog\nPrologFlags=Alloc\nHealthCheckProgram={tmp_path}/health\n"
        "HealthCheckInterval=5\nHealthCheckNodeState=IDLE\n"
    )
    with slurm_cluster.cluster(settings) as cluster:
        yield cluster, tmp_path


def on_one_node(script: Path, node: str) -> str:
    """Run a script on one node only, as the fault is on one."""
    return f'#!/bin/sh\n[ "$SLURMD_NODENAME" = {node} ] || exit 0\nexec {script}\n'


@pytest.mark.slurm
def test_a_prolog_drains_for_a_culprit_and_for_nothing_else(
    guarded: tuple[Cluster, Path],
) -> None:
    cluster, folder = guarded
    text = (EXAMPLES / "slurm" / "prolog.sh").read_text()
    script = shell(text, folder, put_on_path(folder, "--drill wrong:rank=1"))
    (folder / "prolog").write_text(on_one_node(script, "gate02"))
    job = cluster.run("sbatch", "--parsable", "-w", "gate02", "--wrap", "true").stdout.strip()
    cluster.until("drain", ["gate02"], 100)
    assert "BROKEN" in (folder / "gpucheck-prolog.log").read_text()
    cluster.run("scancel", job)
    assert {cluster.states()[node] for node in ("gate01", "gate03", "gate04")} == {"idle"}

    put_on_path(folder, "--no-such-option")
    cluster.resume()
    job = cluster.run("sbatch", "--parsable", "-w", "gate02", "--wrap", "true").stdout.strip()
    assert cluster.state(job, 60) == "COMPLETED"
    assert "No such option" in (folder / "gpucheck-prolog.log").read_text()
    assert set(cluster.states().values()) == {"idle"}


@pytest.mark.slurm
def test_a_health_check_drains_by_itself(guarded: tuple[Cluster, Path]) -> None:
    cluster, folder = guarded
    text = (EXAMPLES / "slurm" / "health_check.sh").read_text()
    conf = f"export SLURM_CONF={cluster.env['SLURM_CONF']}\n"
    script = shell(text, folder, put_on_path(folder, "--drill crash:rank=0"))
    script.write_text(script.read_text().replace("export PATH", f"{conf}export PATH"))
    start = time.monotonic()
    (folder / "health").write_text(on_one_node(script, "gate04"))
    cluster.until("drain", ["gate04"], 100)
    assert time.monotonic() - start < 75  # its 60 s, and a turn of the daemon's
    reason = cluster.run("sinfo", "-h", "-R", "-o", "%E|%N").stdout
    assert reason.startswith("gpucheck: BROKEN rank 0"), reason
    assert reason.strip().endswith("|gate04")


def test_the_scripts_are_shell() -> None:
    for script in (EXAMPLES / "slurm").iterdir():
        done = subprocess.run(["bash", "-n", str(script)], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b""), script


@pytest.mark.parametrize(
    ("status", "passed_on"), [(0, 0), (1, 1), (2, 0), (3, 0), (4, 0), (5, 0), (137, 0)]
)
def test_only_a_culprit_gets_through_the_prolog(
    tmp_path: Path, status: int, passed_on: int
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "gpucheck").write_text(f"#!/bin/sh\nexit {status}\n")
    (tools / "gpucheck").chmod(0o755)
    text = (EXAMPLES / "slurm" / "prolog.sh").read_text()
    script = shell(text, tmp_path, f"{tools}:{os.environ['PATH']}")
    assert subprocess.run([script], check=False).returncode == passed_on


def test_the_recipes_name_what_there_is() -> None:
    """Every option of a recipe is one of ``gpucheck preflight``."""
    done = subprocess.run(
        [sys.executable, "-m", "gpucheck", "preflight", "--help"],
        capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(Path(gpucheck.__file__).parents[1])},
    )  # fmt: skip
    known = set(re.findall(r"--[a-z-]+", done.stdout))
    for recipe in (*EXAMPLES.rglob("*.s*"), *EXAMPLES.rglob("*.yaml")):
        for call in re.findall(r"gpucheck preflight((?:\\\n|[^\n|])*)", recipe.read_text()):
            named = set(re.findall(r"(?<![\w-])--[a-z-]+", call))
            assert named <= known, (recipe.name, named - known)
