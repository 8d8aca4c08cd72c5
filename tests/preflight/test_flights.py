"""PyTorch's flight recorder in a pre-flight: what ranks report of it, and what is made of that."""

import importlib.util
import json
import subprocess
import sys
from typing import Any

import pytest
from each import each

from gpucheck.cluster.diagnose.naming import recorded_in_groups
from gpucheck.cluster.model import Flight, RankResult, Step, StepResult
from gpucheck.cluster.task.rank_run import read_flight
from gpucheck.worker.pace import read

# The forms of torch 2.13: NCCL tells the state on the GPU, gloo only retires its collectives.
NCCL = {
    "version": "2.10",
    "entries": [
        {"collective_seq_id": 1, "profiling_name": "nccl:all_reduce", "state": "completed"},
        {"collective_seq_id": 2, "profiling_name": "nccl:all_reduce", "state": "started"},
    ],
}
GLOO = {
    "entries": [
        {"collective_seq_id": 4, "profiling_name": "gloo:all_reduce", "state": "scheduled",
         "retired": True},
        {"collective_seq_id": 5, "profiling_name": "gloo:all_reduce", "state": "scheduled",
         "retired": False},
        {"collective_seq_id": 0, "profiling_name": "gloo:send 0->1", "is_p2p": True},
    ],
}  # fmt: skip


def step(**begun: int) -> list[StepResult]:
    ranks = {int(name[1:]): number for name, number in begun.items()}
    done = {
        rank: RankResult(
            rank=rank,
            status="timed-out",
            phase="enter",
            flight=Flight(begun=number, operation="nccl:all_reduce"),
        )
        for rank, number in ranks.items()
    }
    together = Step(number=1, kind="together", groups=(tuple(ranks),), backend="nccl", seconds=9)
    return [StepResult(step=together, results=done)]


def test_the_last_collective_of_a_record() -> None:
    assert read(json.dumps(NCCL)) == {
        "begun": 2, "completed": 1, "operation": "nccl:all_reduce", "state": "started",
    }  # fmt: skip
    assert read(json.dumps(GLOO).encode()) == {
        "begun": 5, "completed": 4, "operation": "gloo:all_reduce", "state": "scheduled",
    }  # fmt: skip
    assert read('{"version": "2.10"}')["begun"] == 0


def test_who_had_not_begun_is_told() -> None:
    first, second = recorded_in_groups(step(r0=7, r1=7, r2=6, r3=7))
    assert first == (
        "Ranks that had begun collective 7 (nccl:all_reduce) according to PyTorch's flight "
        "recorder: 3 (0-1, 3)"
    )
    assert second == "Ranks that had not begun it according to their recorder: 1 (2)"
    assert len(recorded_in_groups(step(r0=7, r1=7))) == 1
    assert recorded_in_groups(step(r0=0, r1=0)) == []
    assert recorded_in_groups([]) == []


@each(
    "said", [{"begun": -1}, {"begun": "x"}, {"completed": 1}, {"begun": 1, "operation": "x" * 999}]
)
def test_a_malformed_record_is_none(said: dict[str, Any]) -> None:
    assert read_flight({"event": "flight", **said}) is None
    good = {"event": "flight", "worker": "1.0", "begun": 1, "completed": 0}
    assert read_flight(good) == Flight(begun=1)


@pytest.mark.gate
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no torch here")
def test_the_recorder_of_gloo_shows_which_rank_did_not_begin() -> None:
    """A rank of a real group is late in the first collective: torch itself says so."""
    command = [sys.executable, "-m", "gpucheck", "preflight", "--device", "cpu", "--ranks", "3"]
    command += ["--timeout", "60", "--drill", "hang:rank=2", "--format", "json"]
    done = subprocess.run(command, capture_output=True, timeout=90, check=False)
    looks = json.loads(done.stdout)["snapshot"]["facts"]["preflight"]["looks"]
    recorded = [one for one in looks if "recorder" in one]
    assert recorded[0].endswith("according to PyTorch's flight recorder: 2 (0-1)"), looks
    assert "(gloo:all_reduce)" in recorded[0]
    assert recorded[1].endswith("1 (2)")
