"""The recipes of the documents, run as they are written; gpucheck tests CPU ranks in them.

``gpucheck`` on the PATH of the recipes is a script that adds ``--device cpu`` and what breaks.
"""

import importlib.util
import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import slurm_cluster
from broken_torch import break_torch
from left_behind import wait_until
from recipe_support import for_cpu_ranks, put_on_path
from slurm_cluster import Cluster

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
pytestmark = [
    pytest.mark.gate,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here"),
]


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
    text = for_cpu_ranks((EXAMPLES / "slurm" / "gate.sbatch").read_text())
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
    text = for_cpu_ranks((EXAMPLES / "slurm" / "gate.sbatch").read_text())
    text = text.replace("--nodes=4", "--nodes=3")
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


def reasons(cluster: Cluster) -> str:
    return cluster.run("sinfo", "-h", "-R", "-o", "%E|%N").stdout.strip()


@pytest.mark.slurm
def test_a_prolog_drains_for_an_unfit_node_and_for_nothing_else(
    guarded: tuple[Cluster, Path],
) -> None:
    cluster, folder = guarded
    conf = f"export SLURM_CONF={cluster.env['SLURM_CONF']} PATH"
    text = for_cpu_ranks((EXAMPLES / "slurm" / "prolog.sh").read_text())
    text = text.replace("export PATH", conf)
    broken = break_torch(folder / "broken", "SLURMD_NODENAME", "gate02", "tensor.add_(1)")
    script = shell(text, folder, put_on_path(folder, broken=broken))
    (folder / "prolog").write_text(on_one_node(script, "gate02"))
    job = cluster.run("sbatch", "--parsable", "-w", "gate02", "--wrap", "true").stdout.strip()
    cluster.until("drain", ["gate02"], 100)
    (report,) = (folder / "gpucheck").glob(f"prolog-gate02-{job}.0.txt")
    assert "BROKEN" in report.read_text()
    assert reasons(cluster).endswith("|gate02")
    cluster.run("scancel", job)
    health = (EXAMPLES / "slurm" / "health_check.sh").read_text().replace("export PATH", conf)
    (folder / "of_health").mkdir()
    other = shell(health, folder / "of_health", put_on_path(folder, broken=broken))
    other.write_text(other.read_text().replace(f"{folder}/of_health", str(folder)))
    (folder / "health").write_text(on_one_node(other, "gate02"))
    told = re.compile(r"gpucheck: wrong-result: .*\|gate02")
    assert wait_until(lambda: told.fullmatch(reasons(cluster)) is not None), reasons(cluster)
    (folder / "health").write_text("#!/bin/sh\nexit 0\n")
    assert {cluster.states()[node] for node in ("gate01", "gate03", "gate04")} == {"idle"}

    for more in ("--no-such-option", ""):  # the second one is fit again
        put_on_path(folder, more)
        cluster.resume()
        job = cluster.run("sbatch", "--parsable", "-w", "gate02", "--wrap", "true").stdout.strip()
        assert cluster.state(job, 60) == "COMPLETED"
        errors = folder / "gpucheck" / f"prolog-gate02-{job}.0.txt.err"
        assert ("No such option" in errors.read_text()) if more else not errors.exists()
    assert {state.rstrip("*") for state in cluster.states().values()} == {"idle"}


@pytest.mark.slurm
def test_a_health_check_drains_by_itself_and_keeps_the_reason_of_others(
    guarded: tuple[Cluster, Path],
) -> None:
    """No GPU is faked: the node should have eight, and has none."""
    cluster, folder = guarded
    conf = f"export SLURM_CONF={cluster.env['SLURM_CONF']} PATH"
    text = (EXAMPLES / "slurm" / "health_check.sh").read_text().replace("export PATH", conf)
    script = shell(text, folder, put_on_path(folder, ranks=0))
    cluster.run("scontrol", "update", "NodeName=gate03", "State=DRAIN", "Reason=fan 2 (ana)")
    start = time.monotonic()
    only = on_one_node(script, "gate04").replace(
        "= gate04 ]", "= gate04 -o $SLURMD_NODENAME = gate03 ]"
    )
    (folder / "health").write_text(only)
    cluster.until("drain", ["gate04"], 60)
    assert time.monotonic() - start < 30
    time.sleep(6)  # the check of gate03, and another turn
    first, second = sorted(reasons(cluster).splitlines())
    assert first == "fan 2 (ana)|gate03"
    assert second.startswith("gpucheck: no-nvidia-gpu: 8 NVIDIA GPUs are required")
    assert second.endswith("|gate04")
    states = cluster.states()
    assert {states["gate01"], states["gate02"]} == {"idle"}
    (folder / "health").write_text("#!/bin/sh\nexit 0\n")
    cluster.resume()  # what docs/preflight/slurm.md says
    assert {state.rstrip("*") for state in cluster.states().values()} == {"idle"}


@pytest.mark.slurm
@pytest.mark.parametrize("excepted", [False, True])
def test_the_fix_of_a_low_memlock_limit_needs_both_of_its_parts(*, excepted: bool) -> None:
    """Slurmd may lock what it likes here, and yet a job gets the limit of the shell."""
    if why := slurm_cluster.missing():
        pytest.skip(why)
    settings = "PropagateResourceLimitsExcept=MEMLOCK\n" if excepted else ""
    with slurm_cluster.cluster(settings, nodes=("gate01",)) as cluster:
        done = cluster.run("bash", "-c", "ulimit -S -l 64; srun bash -c 'ulimit -l'")
        assert (done.stdout != "64\n") is excepted, done.stderr


@pytest.mark.slurm
def test_a_task_prolog_tells_the_job_what_is_wrong_with_its_node(tmp_path: Path) -> None:
    if why := slurm_cluster.missing():
        pytest.skip(why)
    tmp_path.chmod(0o755)
    path = put_on_path(tmp_path, ranks=0)
    script = tmp_path / "task_prolog.sh"
    text = (EXAMPLES / "slurm" / "task_prolog.sh").read_text()
    script.write_text(text.replace("#!/bin/bash\n", f"#!/bin/bash\nexport PATH={path}\n", 1))
    script.chmod(0o755)
    with slurm_cluster.cluster(f"TaskProlog={script}\n", nodes=("gate01",)) as cluster:
        tasks = ("-n3", "--overcommit", "sh", "-c", "echo $GPUCHECK_NODE-")
        done = cluster.run("srun", "--gpus-per-node=8", *tasks)
        without = cluster.run("srun", *tasks)
    assert without.stdout == "-\n-\n-\n"
    told = [line for line in done.stdout.splitlines() if "no-nvidia-gpu" in line]
    assert sorted(line.partition("gpucheck")[0] for line in told) == ["", "gate01: "]
    assert done.stdout.splitlines().count("-") == 2  # tasks 1 and 2
    assert done.returncode == 0


def test_the_scripts_are_shell() -> None:
    for script in (EXAMPLES / "slurm").iterdir():
        done = subprocess.run(["bash", "-n", str(script)], capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b""), script


@pytest.mark.parametrize("recipe", ["prolog.sh", "health_check.sh"])
@pytest.mark.parametrize(
    ("status", "line", "drains"),
    [
        (1, "gpucheck: gpu-fallen-off-bus: GPU 3", True),
        (1, "", False),  # no module named gpucheck
        (1, "Traceback (most recent call last):", False),
        (0, "gpucheck: fit: 8 GPUs", False),
        (0, "gpucheck: unknown: NVML", False),
        (2, "Usage:", False),
        (3, "", False),
        (127, "", False),
        (137, "", False),
    ],
)
def test_only_an_unfit_node_is_drained(
    tmp_path: Path, recipe: str, status: int, line: str, *, drains: bool
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, text in {
        "gpucheck": f"echo '{line}'; exit {status}",
        "scontrol": f'[ $1 = show ] && echo "NodeName=n1 State=IDLE" || echo "$@" >{tmp_path}/told',
    }.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    script = shell(
        (EXAMPLES / "slurm" / recipe).read_text(), tmp_path, f"{tools}:{os.environ['PATH']}"
    )
    done = subprocess.run([script], env={**os.environ, "SLURMD_NODENAME": "n1"}, check=False)
    assert done.returncode == (1 if drains and recipe == "prolog.sh" else 0)
    told, reason = tmp_path / "told", tmp_path / "gpucheck" / "prolog-n1.reason"
    if drains and recipe == "prolog.sh":  # which must not call commands of Slurm
        assert reason.read_text() == f"{line}\n"
    elif drains:
        assert told.read_text() == f"update NodeName=n1 State=DRAIN Reason={line}\n"
    assert told.exists() is (drains and recipe != "prolog.sh")
    assert reason.exists() is (drains and recipe == "prolog.sh")
    kept = list((tmp_path / "gpucheck").glob("*.err"))
    assert bool(kept) is not line.startswith("gpucheck: fit")


@pytest.mark.parametrize(
    ("of_slurm", "is_replaced"), [("Prolog error", True), ("fan 2 (ana)", False), ("none", False)]
)
def test_the_reason_of_a_prolog_takes_the_place_of_slurms_own(
    tmp_path: Path, of_slurm: str, *, is_replaced: bool
) -> None:
    tools, logs = tmp_path / "bin", tmp_path / "gpucheck"
    tools.mkdir()
    logs.mkdir()
    (logs / "prolog-n1.reason").write_text("gpucheck: wrong-result: ranks 0-1\n")
    show = f"NodeName=n1 State=IDLE+DRAIN Reason={of_slurm} [root@2026-11-26T20:00:00]"
    for name, text in {
        "gpucheck": "echo gpucheck: fit: 8 GPUs",
        "scontrol": f'[ $1 = show ] && echo "{show}" || echo "$@" >{tmp_path}/told',
    }.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    text = (EXAMPLES / "slurm" / "health_check.sh").read_text()
    script = shell(text, tmp_path, f"{tools}:{os.environ['PATH']}")
    subprocess.run([script], env={**os.environ, "SLURMD_NODENAME": "n1"}, check=True)
    told = tmp_path / "told"
    assert told.exists() is is_replaced
    if is_replaced:
        wanted = "update NodeName=n1 State=DRAIN Reason=gpucheck: wrong-result: ranks 0-1\n"
        assert told.read_text() == wanted
    assert not (logs / "prolog-n1.reason").exists()


def test_every_check_of_a_node_says_how_many_gpus_it_should_have() -> None:
    """Without the number, a node that has lost all its GPUs is one that never had any."""
    for recipe in EXAMPLES.rglob("*.sh"):
        text = recipe.read_text().replace("\\\n", "")
        for call in re.findall(r"gpucheck node[^\n]*", text):
            assert "--gpus " in call, recipe.name


@pytest.mark.slurm
def test_the_commands_for_a_bad_node_do_what_the_page_says(slurm: Cluster) -> None:
    """Drain, keep others out, resume, run in the reservation, give back: as pasted."""
    page = (
        (EXAMPLES.parent / "preflight" / "slurm.md")
        .read_text()
        .partition("What to do with a bad node")[2]
    )
    commands = [line.strip() for line in page.splitlines() if line.startswith("       ")]
    drain, reserve, resume, check, back = (
        next(one for one in commands if one.startswith(words))
        for words in (
            "scontrol update NodeName=gate04 State=DRAIN",
            "scontrol create reservation",
            "scontrol update NodeName=gate04 State=RESUME",
            "srun --reservation",
            "scontrol delete",
        )
    )

    def paste(command: str) -> str:
        done = slurm.run("bash", "-c", command, env={"PATH": put_on_path(slurm.folder)})
        assert done.returncode == 0, (command, done.stderr)
        return done.stdout

    try:
        paste(drain)
        slurm.until("drain", ["gate04"])
        assert reasons(slurm) == "gpucheck: gpu-fallen-off-bus: GPU 3|gate04"
        paste(reserve)
        paste(resume)
        others = slurm.run("srun", "--immediate=3", "-w", "gate04", "true")
        assert others.returncode != 0  # nobody else gets there
        assert "HEALTHY" in paste(check)
        paste(back)
        slurm.until("idle")
        assert slurm.run("srun", "-w", "gate04", "true").returncode == 0
    finally:
        slurm.run("scontrol", "delete", "ReservationName=recheck")
        slurm.resume()
