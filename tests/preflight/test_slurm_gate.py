"""docs/examples/slurm/gate.sbatch on a real Slurm cluster: who trains, how often, and after what.

``gpucheck`` is a script here that says what each case needs, so that a case takes seconds.
``test_recipes.py`` runs the same recipe with the real one.
"""

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from slurm_cluster import Cluster

GATE = Path(__file__).parents[2] / "docs" / "examples" / "slurm" / "gate.sbatch"
_GPUCHECK = """\
#!/bin/bash
# Task 0 writes the files; every task leaves with its own status.
while [ $# -gt 0 ]; do
    case $1 in
        --status-file) status_file=$2 ;;
        --exclude-file) exclude_file=$2 ;;
        -o) report=$2 ;;
    esac
    shift
done
verdict=0
for bad in {bad}; do
    case ,$(scontrol show hostnames "$SLURM_STEP_NODELIST" | tr '\\n' ','), in
        *,$bad,*) verdict=1; out=${{out:+$out,}}$bad ;;
    esac
done
{more}
if [ "$SLURM_PROCID" = 0 ]; then
    echo "$out" >"$exclude_file"
    echo "a report" >"$report"
    [ "$verdict" = none ] || echo "$verdict" >"$status_file"
fi
[ "$verdict" = none ] && exit 3
exit "${{own:-$verdict}}"
"""
pytestmark = [pytest.mark.gate, pytest.mark.slurm]


class Gate:
    """The recipe in a folder of its own, with 2 nodes a job."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.script = folder / "gate.sbatch"
        self.script.write_text(GATE.read_text().replace("--nodes=4", "--nodes=2"))
        self.path = f"{folder}:{os.environ['PATH']}:/usr/sbin"
        self.program("train.sh", "#!/bin/sh\necho trained on $SLURMD_NODENAME $*\n")
        self.gpucheck()

    def program(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)
        (self.folder / name).chmod(0o755)

    def gpucheck(self, bad: str = "", more: str = "") -> None:
        """Make a gpucheck that names hosts whenever they take part."""
        self.program("gpucheck", _GPUCHECK.format(bad=bad, more=more))

    def submit(self, *options: str) -> str:
        done = self.cluster.run(
            "sbatch", "--parsable", "--chdir", str(self.folder), *options, str(self.script),
            env={"PATH": self.path},
        )  # fmt: skip
        assert done.stdout.strip().isdigit(), done.stderr
        return done.stdout.strip()

    def end(self, job: str) -> tuple[str, str]:
        """Return the exit status of a job, as Slurm counts it, and its log."""
        self.cluster.state(job)
        return self.field(job, "ExitCode"), self.log(job)

    def log(self, job: str) -> str:
        return (self.folder / f"train-{job}.log").read_text()

    def field(self, job: str, name: str) -> str:
        shown = self.cluster.run("scontrol", "show", "job", "-o", job).stdout
        found = re.search(rf"\b{name}=(\S*)", shown)
        assert found, shown
        return found[1]

    def next(self, log: str) -> str:
        found = re.search(r"submitted again as job (\d+)", log)
        assert found, log
        return found[1]

    def trained(self) -> list[str]:
        """Return the lines of every training that ran in this folder."""
        logs = sorted(self.folder.glob("train-*.log"))
        return [
            line for log in logs for line in log.read_text().splitlines() if "trained on" in line
        ]


@pytest.fixture
def gate(slurm: Cluster, tmp_path: Path) -> Gate:
    tmp_path.chmod(0o755)
    return Gate(slurm, tmp_path)


def test_after_a_pass_it_trains_once_with_the_status_of_the_training(gate: Gate) -> None:
    gate.program("train.sh", "#!/bin/sh\necho trained on $SLURMD_NODENAME\nexit 7\n")
    status, _ = gate.end(gate.submit("-w", "gate01,gate02"))
    assert sorted(gate.trained()) == ["trained on gate01", "trained on gate02"]
    assert status == "7:0"


def test_a_culprit_is_left_out_and_the_first_job_has_failed(gate: Gate) -> None:
    gate.gpucheck(bad="gate02")
    first = gate.submit("-w", "gate01,gate02")
    status, log = gate.end(first)
    assert status == "75:0", log
    second = gate.next(log)
    status, _ = gate.end(second)
    assert status == "0:0"
    assert len(gate.trained()) == 2
    assert not any("gate02" in line for line in gate.trained())
    assert gate.field(second, "ExcNodeList") == "gate02"
    assert gate.field(second, "Requeue") == "0"


@pytest.mark.parametrize("may_requeue", [False, True])
def test_a_job_that_was_submitted_again_never_trains(gate: Gate, *, may_requeue: bool) -> None:
    """Slurm refuses to requeue it; where somebody has allowed that, the script itself does."""
    if may_requeue:
        text = gate.script.read_text()
        gate.script.write_text(text.replace("#SBATCH --no-requeue", "#SBATCH --requeue"))
    gate.gpucheck(bad="gate02")
    first = gate.submit("-w", "gate01,gate02")
    _, log = gate.end(first)
    assert gate.end(gate.next(log))[0] == "0:0"
    done = gate.cluster.run("scontrol", "requeue", first)
    assert (done.returncode == 0) is may_requeue, done.stderr
    if may_requeue:
        gate.gpucheck()  # it would pass now
        gate.cluster.run("scontrol", "update", f"JobId={first}", "StartTime=now")
        deadline = time.monotonic() + 60
        while "does not train" not in gate.log(first) and time.monotonic() < deadline:
            time.sleep(0.3)
        assert "was submitted again before" in gate.log(first)
        assert gate.end(first)[0] == "75:0"
    assert len(gate.trained()) == 2


def test_a_dependant_of_a_job_that_trained_nothing_does_not_start(gate: Gate) -> None:
    gate.gpucheck(bad="gate02")
    first = gate.submit("-w", "gate01,gate02", "--hold")
    depends = f"--dependency=afterok:{first}"
    wrapped = ("sbatch", "--parsable", depends, "--wrap", "true", "-o", "/dev/null")
    dependant = gate.cluster.run(*wrapped).stdout.strip()
    gate.cluster.run("scontrol", "release", first)
    second = gate.next(gate.end(first)[1])
    gate.end(second)
    assert gate.field(dependant, "JobState") == "PENDING"
    assert gate.field(dependant, "Reason").startswith("Dependency")
    # What docs/preflight/slurm.md says to do with it:
    gate.cluster.run("scontrol", "update", f"JobId={dependant}", f"Dependency=afterok:{second}")
    assert gate.cluster.state(dependant, 60) == "COMPLETED"


def test_a_task_of_an_array_keeps_its_number(gate: Gate) -> None:
    text = gate.script.read_text().replace("%x-%j.log", "train-%A_%a.log")
    gate.script.write_text(text.replace("train.sh", 'train.sh "number $SLURM_ARRAY_TASK_ID"'))
    gate.gpucheck(bad="gate02")
    array = gate.submit("--array=5", "-w", "gate01,gate02")
    gate.cluster.state(array)
    log = gate.log(f"{array}_5")
    gate.cluster.state(gate.next(log))
    assert [line.split(" ", 3)[3] for line in gate.trained()] == ["number 5", "number 5"]


def test_it_reads_the_verdict_of_task_0_and_not_the_status_of_srun(gate: Gate) -> None:
    gate.gpucheck(more='[ "$SLURM_PROCID" = 0 ] || own=137')
    status, log = gate.end(gate.submit())
    assert status == "0:0", log
    assert len(gate.trained()) == 2


@pytest.mark.parametrize(
    ("more", "status"),
    [("verdict=3", 3), ("verdict=4", 4), ("verdict=5", 5), ("verdict=none", 3), ("verdict=1", 1)],
)
def test_without_a_pass_and_without_a_host_nothing_trains(
    gate: Gate, more: str, status: int
) -> None:
    gate.gpucheck(more=more)
    said, log = gate.end(gate.submit())
    assert said == f"{status}:0", log
    assert gate.trained() == []
    assert "submitted again as" not in log


def test_the_gate_requires_the_gpus_and_has_the_cpus_that_the_job_asked_for(gate: Gate) -> None:
    """It is one task a node, even if the training has one for each GPU."""
    text = gate.script.read_text().replace("--ntasks-per-node=1\n", "--ntasks-per-node=4\n", 1)
    text = text.replace("--cpus-per-task=8", "--cpus-per-task=2")
    gate.script.write_text(text)
    words = '"of $SLURM_NTASKS with $SLURM_CPUS_PER_TASK:"'
    gate.program("gpucheck", f'#!/bin/sh\necho {words} "$@"\nexit 3\n')
    log = gate.end(gate.submit())[1]
    assert log.count("of 2 with 2: preflight --gpus 8 --timeout 300 ") == 2, log
    gate.script.write_text(text.replace("--gpus-per-node=8", "--gres=gpu:8"))
    log = gate.end(gate.submit())[1]
    assert log.count("preflight --gpus 8 --timeout 300 ") == 2, log


def test_a_slow_job_may_be_let_in(gate: Gate) -> None:
    gate.gpucheck(more="verdict=5")
    status, _ = gate.end(gate.submit("--export=ALL,GATE_SLOW=train"))
    assert status == "0:0"
    assert len(gate.trained()) == 2


def test_hosts_that_the_user_left_out_stay_out(gate: Gate) -> None:
    gate.gpucheck(bad="gate02")
    _, log = gate.end(gate.submit("--exclude=gate01", "-w", "gate02"))
    second = gate.next(log)
    gate.end(second)
    assert gate.field(second, "ExcNodeList") == "gate[01-02]"
    assert sorted(gate.trained()) == ["trained on gate03", "trained on gate04"]


def test_it_gives_up_after_three_times(gate: Gate) -> None:
    text = gate.script.read_text().replace("--nodes=2", "--nodes=1")
    gate.script.write_text(text)
    gate.gpucheck(bad="gate01 gate02 gate03 gate04")
    job = gate.submit()
    for _ in range(3):
        status, log = gate.end(job)
        assert status == "75:0", log
        job = gate.next(log)
    status, log = gate.end(job)
    assert status == "1:0"
    assert "three times already" in log
    assert gate.trained() == []


def test_a_task_that_hangs_ends_with_the_wait_of_srun(gate: Gate) -> None:
    """A stopped task holds the job for as long as ``--wait`` says, and no longer."""
    gate.script.write_text(gate.script.read_text().replace("--wait=90", "--wait=3"))
    gate.gpucheck(more='[ "$SLURM_PROCID" = 0 ] || kill -STOP $$')
    start = time.monotonic()
    status, log = gate.end(gate.submit())
    assert time.monotonic() - start < 40
    assert status == "0:0", log
    assert len(gate.trained()) == 2


def test_tasks_that_all_hang_end_with_the_time_limit(gate: Gate) -> None:
    """``--wait`` begins with the end of the first task, and here none ends."""
    gate.script.write_text(gate.script.read_text().replace("-k 30 600", "-k 2 5"))
    gate.gpucheck(more="kill -STOP $$")
    start = time.monotonic()
    status, log = gate.end(gate.submit())
    assert time.monotonic() - start < 60
    assert status == "3:0", log
    assert gate.trained() == []


def test_the_log_has_the_verdict(gate: Gate) -> None:
    gate.gpucheck(more="verdict=4")
    _, log = gate.end(gate.submit())
    assert "\na report\n" in log


def test_a_job_that_sbatch_refuses_may_be_requeued(gate: Gate) -> None:
    gate.program("sbatch", '#!/bin/sh\n[ -z "$GATE_TRIES" ] || exit 1\nexec /usr/bin/sbatch "$@"\n')
    gate.gpucheck(bad="gate02")
    job = gate.submit("-w", "gate01,gate02")
    status, log = gate.end(job)
    assert status == "1:0", log
    assert "sbatch refused it" in log
    assert (gate.cluster.folder / f"gpucheck-{job}.0.exclude").exists()
    assert not (gate.cluster.folder / f"gpucheck-{job}.handed-on").exists()


def test_the_wait_of_srun_is_longer_than_the_others_wait_for_a_missing_task() -> None:
    text = GATE.read_text()
    wait, timeout = (
        float(re.findall(rf"^[^#\n]*--{name}[= ](\d+)", text, re.MULTILINE)[0])
        for name in ("wait", "timeout")
    )
    assert wait > max(60.0, timeout / 5)


def test_it_is_sound_shell() -> None:
    done = subprocess.run(["bash", "-n", str(GATE)], capture_output=True, check=False)
    assert done.stderr == b""
