"""``gpucheck node``: who is drained, who is not, and with which words."""

import re
import subprocess
import sys
import time
import venv
from pathlib import Path

import preflight_samples as samples
import pytest
import test_machines
from click.testing import CliRunner
from each import each

from gpucheck.cli import gpucheck
from gpucheck.cluster import node_command
from gpucheck.cluster.judgement import Result
from gpucheck.cluster.model import RankResult, Status, Step, StepResult
from gpucheck.cluster.session import Ending, is_unfit, of_report
from gpucheck.facts.preflight import Phase
from gpucheck.facts.request import Request
from gpucheck.facts.selftests import SelfTest, SelfTests, SelfTestStatus

UNFIT = {
    "gpu-lost-xid79": "gpu-fallen-off-bus",
    "ecc-rowremap-failed": "gpu-hardware-fault",
    "fabric-manager-802": "fabric-manager-down",
    "kernel-updated-no-module": "kernel-module-not-loaded",
    "nouveau-no-driver": "driver-missing",
    "library-mismatch": "driver-library-mismatch",
    "uvm-missing-999": "device-nodes-missing",
    "dropped-gpu-r590-gtx1080": "driver-dropped-gpu",
}
IN_SERVICE = (
    "h100x8-r580-cu130",
    "torch-missing-venv",  # another user has a torch of his own
    "cpu-build-with-gpu",
    "gtx1080-cu130",
    "cudnn-wheel-removed",
    "shm-64k-one-gpu",
    "pcie-x4-of-x16",  # slow, or a warning
    "row-remap-pending",
    "overheated",
    "memory-held-by-leftover",  # a job runs here
    "cvd-empty",
)
SAFE = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ._:/,+@%-")


def said(name: str, fail_on: str = "error", gpus: int | None = None) -> str:
    report = test_machines.reported(name)
    node = of_report(report, test_machines.TABLES, fail_on, gpus)  # type: ignore[arg-type]
    return node_command.of_node(node, report.snapshot)


@each("name", UNFIT)
def test_a_fault_of_the_node_drains_it(name: str) -> None:
    assert said(name).startswith(f"gpucheck: {UNFIT[name]}: ")


@each("name", IN_SERVICE)
def test_a_fault_of_an_environment_and_a_warning_leave_it_in_service(name: str) -> None:
    assert said(name).startswith("gpucheck: fit: ")


@each("name", ["nvml-hangs", "nothing-readable", "smi-only-no-pci", "cuda-build-no-gpu-vm"])
def test_what_is_unknown_leaves_it_in_service_and_is_not_called_fit(name: str) -> None:
    assert said(name).startswith("gpucheck: unknown: ")


def test_a_warning_about_the_node_counts_where_the_site_says_so() -> None:
    assert said("nvlink-six-links-down").startswith("gpucheck: fit: ")
    assert said("nvlink-six-links-down", "warning").startswith("gpucheck: nvlink-down: ")
    assert said("ecc-rowremap-failed", "never").startswith("gpucheck: fit: ")


def test_the_line_says_what_to_do_with_which_gpu() -> None:
    assert said("ecc-rowremap-failed").startswith(
        "gpucheck: gpu-hardware-fault: replace GPU 1: GPU 1 NVIDIA A100-SXM4-80GB could not remap"
    )
    lost = "gpucheck: gpu-fallen-off-bus: drain GPU 0000:bb:00.0: The kernel log says"
    assert said("gpu-lost-xid79").startswith(lost)
    assert said("nvlink-six-links-down").startswith("gpucheck: fit: watch GPU 3, 7 GPUs without")
    assert said("ecc-rowremap-failed", "never").startswith("gpucheck: fit: replace GPU 1, 1 GPU ")
    assert said("fabric-manager-802").startswith("gpucheck: fabric-manager-down: CUDA is not")
    assert said("h100x8-r580-cu130").startswith("gpucheck: fit: 8 GPUs without a fault")


def test_a_node_without_gpus_is_unfit_only_if_it_should_have_some() -> None:
    report = test_machines.reported("cuda-build-no-gpu-vm")
    assert "no-nvidia-gpu" in report.root_causes
    told = test_machines.judged(report.snapshot.with_section(Request(gpus=8)))
    node = of_report(told, test_machines.TABLES, "error", 8)
    assert node_command.of_node(node, told.snapshot).startswith("gpucheck: no-nvidia-gpu: 8 NVIDIA")


def line_of(*results: SelfTest) -> str:
    report = test_machines.reported("h100x8-r580-cu130")
    tests = SelfTests(results=list(results), devices=["cuda:0", "cuda:1"])
    told = test_machines.judged(report.snapshot.with_section(tests))
    return node_command.of_node(of_report(told, test_machines.TABLES, "error", None), told.snapshot)


def matmul(device: str, status: SelfTestStatus, kind: str = "", detail: str = "") -> SelfTest:
    return SelfTest(name="cublas-matmul", device=device, status=status, kind=kind, detail=detail)


def test_a_self_test_that_one_gpu_alone_fails_drains_the_node() -> None:
    good, bad = matmul("cuda:0", "passed"), matmul("cuda:1", "failed", "cuda-error", "code 719")
    assert line_of(good, bad).startswith("gpucheck: selftest-failed: ")
    assert line_of(good, matmul("cuda:1", "passed")).startswith("gpucheck: fit: ")


def test_a_self_test_that_all_gpus_fail_may_be_the_fault_of_that_torch() -> None:
    told = [matmul(f"cuda:{at}", "failed", "python-exception", "no attribute") for at in (0, 1)]
    assert line_of(*told).startswith("gpucheck: unknown: cublas-matmul on cuda:0: no attribute")


def test_a_self_test_for_which_the_time_was_over_says_nothing() -> None:
    late = matmul("cuda:1", "timed-out", "run-limit", "the time was over")
    line = line_of(matmul("cuda:0", "passed"), late)
    assert line.startswith("gpucheck: fit: ")
    assert "not every self-test finished" in line


@pytest.mark.exhaustive
def test_every_machine_has_a_line_that_is_safe() -> None:
    for name in test_machines.NAMES:
        line = said(name, "warning")
        assert set(line) <= SAFE, (name, line)
        assert len(line) <= node_command.LONGEST
        assert line.startswith("gpucheck: ")


def test_nothing_that_a_shell_or_a_terminal_acts_on_gets_into_the_line() -> None:
    line = node_command.node_line(
        "x", "GPU 3's `reboot` $(rm -rf /) \"a\" 'b'; \\ \x1b[2J\n{c} <d> = #e ! 中文 " * 9
    )
    assert set(line) <= SAFE
    assert len(line) <= node_command.LONGEST
    assert line.startswith("gpucheck: x: GPU 3 reboot rm -rf /")
    assert not line.endswith((" ", ",", ":"))


# The GPUs of the node together.


def history(status: Status, phase: Phase) -> list[StepResult]:
    step = Step(number=0, kind="together", groups=((0, 1),), backend="nccl", seconds=1.0)
    results = {
        0: RankResult(rank=0, status="passed"),
        1: RankResult(rank=1, status=status, phase=phase),
    }
    return [StepResult(step=step, results=results)]


@each(
    ("ending", "status", "phase", "unfit"),
    [
        (1, "passed", "done", True),
        (3, "timed-out", "enter", True),  # all suspects are on this node
        (3, "crashed", "set-device", True),
        (3, "timed-out", "import", False),  # a slow disk, or a broken torch
        (3, "stopped", "enter", False),
        (3, "passed", "done", False),  # the time was over
        (4, "failed", "connect", False),
        (5, "passed", "done", False),
        (0, "passed", "done", False),
    ],
)
def test_whose_fault_an_inconclusive_run_is(
    ending: int, status: Status, phase: Phase, *, unfit: bool
) -> None:
    words = {0: "healthy", 1: "culprit", 3: "inconclusive", 4: "misconfiguration", 5: "slow"}
    end = Ending(ending, words[ending], "")  # type: ignore[arg-type]
    assert is_unfit(end, history(status, phase)) is unfit


@each(
    ("result", "line"),
    [
        (samples.hang(1), "gpucheck: rank-hangs: GPU "),
        (samples.healthy(), "gpucheck: fit: "),
        (samples.misconfigured(), "gpucheck: unknown: misconfiguration: "),
        (samples.slow(), "gpucheck: unknown: slow: "),
        (samples.inconclusive(), "gpucheck: unknown: "),
        (samples.drill(), "gpucheck: drill: "),
    ],
)
def test_the_line_of_a_pre_flight(result: Result, line: str) -> None:
    found = node_command.of_result(result, ())
    assert found.startswith(line)
    assert set(found) <= SAFE


def test_the_line_of_an_inconclusive_run_says_which_ranks() -> None:
    result = samples.inconclusive()
    line = node_command.of_result(result, history("timed-out", "enter"))
    assert not line.startswith("gpucheck: unknown")
    assert "1" in line


# The command.


def invoke(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(gpucheck, [*words])
    return done.exit_code, done.output


@each(
    "option",
    [
        ("--master", "a"), ("--nodes", "2"), ("--links",), ("--ranks", "2"), ("--each", "d"),
        ("--out-dir", "d"),
    ],
)  # fmt: skip
def test_options_about_a_job_are_refused(option: tuple[str, ...]) -> None:
    status, text = invoke("preflight", "--node", *option)
    assert status == 2
    assert f"without {option[0]}" in text
    status, text = invoke("node", *option)
    assert status == 2
    assert (f"without {option[0]}" if option[0] == "--ranks" else "No such option") in text


def test_its_help_shows_the_options_of_one_node_alone() -> None:
    own, of_jobs = (
        set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", invoke(name, "--help")[1], re.MULTILINE))
        for name in ("node", "preflight")
    )
    assert own < of_jobs
    assert of_jobs - own == {
        "--master", "--port", "--nodes", "--links", "--history",
        "--out-dir", "--each", "--exclude-file", "--good-file", "--status-file",
    }  # fmt: skip
    assert "--node" not in of_jobs


@each("words", [("node",), ("preflight", "--node")])
def test_two_numbers_of_gpus_are_refused(words: tuple[str, ...]) -> None:
    status, text = invoke(*words, "--gpus", "8", "--require", "gpus-per-node=4")
    assert status == 2
    assert "--gpus 8 and --require gpus-per-node=4 contradict each other" in text


@pytest.mark.process
def test_files_that_the_quick_level_does_not_write_are_named(tmp_path: Path) -> None:
    status, text = invoke("node", "--tests", "none", "--metrics", str(tmp_path / "m"))
    assert status == 0
    assert "nothing is written for --metrics at this level" in text
    assert [*tmp_path.iterdir()] == []


@pytest.mark.process
def test_without_torch_it_takes_seconds_and_needs_no_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "empty", symlinks=True, with_pip=False)
    monkeypatch.setenv("SLURM_STEP_NUM_TASKS", "4")  # of the shell of a job
    monkeypatch.setenv("SLURM_PROCID", "2")
    monkeypatch.setenv("SLURM_STEP_NODELIST", "n[1-4]")
    python = str(tmp_path / "empty" / "bin" / "python")
    report = tmp_path / "report.json"
    start = time.monotonic()
    start_it = (sys.executable, "-m", "gpucheck")
    command = (*start_it, "node", "--python", python)
    plain = subprocess.run(command, capture_output=True, text=True, check=False)
    more = ("--gpus", "8", "--lang", "zh", "--format", "json", "-o", str(report))
    unfit = subprocess.run((*command, *more), capture_output=True, text=True, check=False)
    assert time.monotonic() - start < 20
    earlier = (*start_it, "preflight", "--node", "--python", python)
    same = subprocess.run(earlier, capture_output=True, text=True, check=False)
    assert (same.returncode, same.stdout) == (plain.returncode, plain.stdout)
    assert plain.stdout.startswith("gpucheck: ")
    assert plain.stdout.count("\n") == 1
    if "no NVIDIA GPU" in plain.stdout:
        assert plain.stdout.startswith("gpucheck: unknown: no NVIDIA GPU to judge")
        assert "--gpus" in plain.stdout
        assert (plain.returncode, unfit.returncode) == (0, 1)
        assert unfit.stdout.startswith("gpucheck: no-nvidia-gpu: 8 NVIDIA GPUs are required")
        assert '"no-nvidia-gpu"' in report.read_text()
