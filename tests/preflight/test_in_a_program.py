"""gpucheck.preflight() in programs of others: a thread, a process group, torchrun."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import gpucheck

JOB = """
import json, os, signal, sys, threading
import torch, torch.distributed as dist
group = "group" in sys.argv
if group:
    dist.init_process_group("gloo")
import gpucheck
handler, threads = signal.getsignal(signal.SIGTERM), set(threading.enumerate())
drill = "crash:rank=1" if "drill" in sys.argv else ()
outcome = gpucheck.preflight(device="cpu", timeout=60, drill=drill)
said = {
    "exit": outcome.exit, "class": outcome.exit_class, "ok": outcome.ok, "task": outcome.task,
    "tasks": outcome.tasks, "whole": outcome.result is not None,
    "culprits": [one.ranks for one in outcome.culprits], "causes": outcome.root_causes,
    "text": outcome.text("en"), "markdown": outcome.markdown("en"),
    "data": outcome.as_data()["exit"],
    "as_before": signal.getsignal(signal.SIGTERM) is handler
        and set(threading.enumerate()) == threads,
}
if group:
    numbers = torch.ones(1)
    dist.all_reduce(numbers)
    said["sum"] = numbers.item()
    dist.destroy_process_group()
with open(os.path.join(sys.argv[1], os.environ["RANK"]), "w") as file:
    json.dump(said, file)
"""


def job(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    """Run the job of two ranks under torchrun; return what each has seen."""
    pytest.importorskip("torch")
    script = folder / "job.py"
    script.write_text(JOB, encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
         str(script), str(folder), *arguments],
        check=True, timeout=180, capture_output=True,
    )  # fmt: skip
    return [json.loads((folder / rank).read_text()) for rank in ("0", "1")]


@pytest.mark.gate
def test_beside_a_process_group_of_the_program(tmp_path: Path) -> None:
    first, second = job(tmp_path, "group")
    for rank, said in enumerate((first, second)):
        assert (said["exit"], said["class"], said["ok"]) == (0, "healthy", True)
        assert (said["task"], said["tasks"], said["sum"]) == (rank, 2, 2.0)
        assert said["as_before"]
    assert (first["whole"], second["whole"]) == (True, False)
    assert first["text"].startswith("HEALTHY")
    assert second["text"] == "gpucheck preflight: task 1 of 2: nothing is wrong\n"


@pytest.mark.gate
def test_a_culprit_is_an_outcome_on_every_rank(tmp_path: Path) -> None:
    for said in job(tmp_path, "drill"):
        assert (said["exit"], said["class"], said["data"]) == (1, "culprit", 1)
        assert said["culprits"] == [[1]]
        assert said["causes"] == ["rank-crashed"]
        assert "rank-crashed" in said["markdown"].replace("\\", "")


@pytest.mark.process
def test_in_a_thread_of_a_process_alone(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    handler, before = signal.getsignal(signal.SIGTERM), set(threading.enumerate())
    found: list[Any] = []
    thread = threading.Thread(
        target=lambda: found.append(gpucheck.preflight(device="cpu", ranks=2, timeout=60))
    )
    thread.start()
    thread.join(90)
    assert capfd.readouterr() == ("", "")
    assert signal.getsignal(signal.SIGTERM) is handler
    assert set(threading.enumerate()) == before
    (outcome,) = found
    assert (outcome.exit, outcome.exit_class, outcome.tasks) == (0, "healthy", 1)
    assert outcome.result is not None
    assert repr(outcome) == "<gpucheck preflight, task 0 of 1: healthy>"
    assert outcome._repr_markdown_()
    assert outcome.as_data()["exit"] == 0


@pytest.mark.process
def test_a_task_0_that_never_comes_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    place = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "9"}
    for name in [*os.environ]:
        if name.startswith(("SLURM_", "TORCHELASTIC_", "LOCAL_")):
            monkeypatch.delenv(name)
    for name, value in place.items():
        monkeypatch.setenv(name, value)
    outcome = gpucheck.preflight(device="cpu", timeout=10)
    assert (outcome.exit, outcome.exit_class, outcome.verdict) == (3, "inconclusive", "unknown")
    assert outcome.why
    assert not outcome.ok
    assert outcome.text("en").startswith("gpucheck preflight: task 1 of 2: inconclusive: ")
