"""On a machine with an NVIDIA GPU: the pre-flight, ranks, and two runs of gpucheck at once."""

import os
import subprocess
import sys

import gpu_runs
import pytest

pytestmark = [pytest.mark.gpu, gpu_runs.NEEDS_A_GPU]


def test_a_preflight_of_this_machine_is_good() -> None:
    report = gpu_runs.printed("preflight")
    assert (report["class"], report["exit"], report["culprits"]) == ("healthy", 0, []), report[
        "why"
    ]
    assert {rank["status"] for rank in report["ranks"]} == {"passed"}
    for rank in report["ranks"]:
        assert rank["rates"]
        assert all(rate > 0 for rate in rank["rates"].values())


def test_a_preflight_has_a_rank_for_each_gpu() -> None:
    seen = gpu_runs.asked()["torch"]["devices"]
    ranks = gpu_runs.printed("preflight")["ranks"]
    if gpu_runs.ON_CPU:
        assert {rank["device"] for rank in ranks} == {"cpu"}
    else:
        assert [rank["model"] for rank in ranks] == [each["name"] for each in seen]


def test_ranks_on_the_cpu_of_a_machine_with_gpus() -> None:
    done = gpu_runs.gpucheck("preflight", "--device", "cpu", "--ranks", "2")
    assert (done.status, len(done.report["ranks"])) == (0, 2), done.report["why"]


def test_this_node_is_not_drained() -> None:
    command = (sys.executable, "-m", "gpucheck", "node", "--python", gpu_runs.PYTHON)
    done = gpu_runs.run(*command, seconds=60, PYTHONPATH=gpu_runs.source())
    assert (done.status, ": fit" in done.out) == (0, True), done


def test_two_ranks_on_one_gpu_are_named() -> None:
    if gpu_runs.ON_CPU:
        pytest.skip("ranks on the CPU share it")
    tasks = len(gpu_runs.asked()["torch"]["devices"]) + 1
    launcher = (gpu_runs.PYTHON, "-m", "torch.distributed.run", "--standalone", "--no-python")
    command = (sys.executable, "-m", "gpucheck", "preflight", "--python", gpu_runs.PYTHON)
    done = gpu_runs.run(
        *launcher, f"--nproc-per-node={tasks}", *command, "--timeout", "60", "--no-color",
        seconds=120, PYTHONPATH=gpu_runs.source(),
    )  # fmt: skip
    assert "Exit status 4, misconfiguration" in done.out, done
    assert done.status != 0  # torchrun's own


def test_two_at_once_do_not_disturb_each_other() -> None:
    device = ("--device", "cpu") if gpu_runs.ON_CPU else ()
    words = ("selftest", *device, "--python", gpu_runs.PYTHON, "--format", "json", "-q")
    environment = {**os.environ, "PYTHONPATH": gpu_runs.source()}
    both = [
        subprocess.Popen(
            [sys.executable, "-m", "gpucheck", *words],
            stdout=subprocess.DEVNULL,
            env=environment,
        )
        for _ in range(2)
    ]
    assert [process.wait(200) for process in both] == [0, 0]
