"""What a task tells of its node at once."""

import sys
import time
from pathlib import Path

import pytest
from rules_support import snapshot
from support import machine

from gpucheck.cluster.model import TaskFacts
from gpucheck.cluster.task.node_facts import NodeCheck, first_facts, with_census, with_snapshot
from gpucheck.facts import Answer
from gpucheck.facts.driver import Nvml, NvmlGpu
from gpucheck.machine import LiveHost
from gpucheck.machine.supervised import TERMINATE, Supervised


def variables(monkeypatch: pytest.MonkeyPatch, **env: str) -> dict[str, str]:
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    return first_facts(LiveHost(""), 0, node=None, pid=1).variables or {}


def test_a_variable_that_no_list_has_is_told_by_a_mark_and_never_by_its_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = variables(monkeypatch, NCCL_FUTURE="a-secret", FI_PROVIDER="efa", NCCL_ALGO="Ring")
    assert first["NCCL_ALGO"] == "Ring"
    assert first["NCCL_FUTURE"].startswith("#")
    assert "a-secret" not in str(first)
    assert variables(monkeypatch) == first
    other = variables(monkeypatch, NCCL_FUTURE="another")
    assert other["NCCL_FUTURE"] != first["NCCL_FUTURE"]
    assert other["FI_PROVIDER"] == first["FI_PROVIDER"]


def test_names_that_are_none_of_theirs_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    found = variables(monkeypatch, FIX_ME="x", MY_TOKEN="x", NCCL_odd="x", NCCL_="x" * 10_000)  # noqa: S106
    assert {"FIX_ME", "MY_TOKEN", "NCCL_odd"}.isdisjoint(found)
    assert all(len(value) < 10_000 for value in found.values())
    assert len(found) < 300


def test_a_task_reports_settings_of_its_adapters_and_its_gpus(tmp_path: Path) -> None:
    root = "/sys/class/infiniband/mlx5_0"
    host = machine(
        tmp_path,
        files={
            f"{root}/hca_type": "MT4129",
            f"{root}/fw_ver": "28.39.1002",
            f"{root}/ports/1/state": "4: ACTIVE",
            f"{root}/ports/1/rate": "400 Gb/sec (4X NDR)",
        },
    )
    first = first_facts(host, 0, node=None, pid=1)
    assert first.settings is not None
    assert first.settings["ports"] == "1 x ACTIVE"
    gpu = NvmlGpu(index=0, uuid="GPU-1", device_name="NVIDIA H100 80GB HBM3", vbios="96" * 200)
    found = snapshot(Nvml(gpus=[gpu]))
    settings = with_snapshot(first, found).settings or {}
    assert settings["ports"] == "1 x ACTIVE"
    assert settings["vbios"] == ("96" * 200)[:200]


class Endless:
    """A program that never ends."""

    def __init__(self) -> None:
        self.abandoned = False
        self.told: list[int] = []

    def hang_up(self) -> None:
        pass

    def read_now(self) -> None:
        pass

    def status(self) -> int | None:
        return None

    def stdout(self) -> bytes:
        return b""

    def signal(self, number: int) -> None:
        self.told.append(number)

    def abandon(self) -> None:
        self.abandoned = True


def test_a_check_of_the_node_that_never_ends_is_waited_for_in_its_time_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    child, now = Endless(), [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    check = NodeCheck(lambda _argv: Answer(value=child, source="x"), "python3", 10.0)  # type: ignore[arg-type]
    now[0] += 12.0
    assert not check.tick()
    now[0] += 4.0
    assert not check.tick()
    assert (child.told, child.abandoned) == ([TERMINATE], False)
    now[0] += 1.5
    assert check.tick()
    assert (check.done, child.abandoned, check.snapshot) == (True, True, None)
    assert "did not end in its time" in check.problem


@pytest.mark.process
def test_a_long_answer_of_the_static_probes_does_not_hold_them_up() -> None:
    """A pipe takes 64 KiB: a machine with many GPUs says more."""

    def start(_argv: list[str]) -> Answer[Supervised]:
        return LiveHost().supervise([sys.executable, "-c", "print('x' * 1_000_000)"])

    check = NodeCheck(start, sys.executable, 20.0)
    while not check.tick():
        time.sleep(0.01)
    assert "was not understood" in check.problem


def test_a_list_of_devices_that_no_machine_has_is_unknown() -> None:
    facts = TaskFacts(task=0, host="h", node=0, pid=1)
    few = with_census(facts, {"devices": [{"name": "x"}] * 16}, cuda=True)
    assert len(few.devices or ()) == 16
    assert with_census(facts, {"devices": [{"name": "x"}] * 30_000}, cuda=True).devices is None
