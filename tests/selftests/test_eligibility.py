"""Where self-tests are run unasked, and on which GPUs they are not."""

import time

import msgspec
from each import each
from rule_facts import A100, CPU_TORCH, CUDA_TORCH, NO_TORCH, cuda_sees, nvml
from rules_support import TABLES

from gpucheck.doctor.selftests import with_selftests
from gpucheck.facts import Section
from gpucheck.facts.driver import DeviceNode, DeviceNodes, GpuProcess, Nvml
from gpucheck.facts.request import Request
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.snapshot import Origin, ProbeRuns, Snapshot
from gpucheck.facts.torch import Interpreter
from gpucheck.machine import RecordedHost, Recording
from gpucheck.selftests import plan

PYTHON = Interpreter(status="ok", executable="/home/user/venv/bin/python")
NODE = DeviceNodes(nodes=[DeviceNode(path="/dev/nvidia0", is_device=True)])
NO_NODE = DeviceNodes(nodes=[])
MIB = 1024 * 1024


def machine(*sections: Section, origin: Origin = "live") -> Snapshot:
    named = {section.name: section for section in (PYTHON, CUDA_TORCH, NODE, *sections)}
    return Snapshot(named, ProbeRuns(), tables=TABLES.version, origin=origin)


def test_a_device_and_a_cuda_build_are_tested_unasked() -> None:
    assert plan.why_not_by_itself(machine()) == ""
    assert plan.expects_gpu(machine())


@each(
    ("section", "words"),
    [
        (CPU_TORCH, "this is a CPU build of torch; gpucheck --selftest"),
        (NO_TORCH, "PyTorch is not installed"),
        (NO_NODE, "there is no device of an NVIDIA driver; gpucheck --selftest"),
        (Request(gpus=0), "uses no GPU"),
        (Interpreter(status="timed-out", problems={"*": "no answer"}), "no answer"),
        (DeviceNodes(nodes=[DeviceNode(path="/dev/nvidiactl")]), "no device"),
        (DeviceNodes(nodes=[DeviceNode(path="/dev/dxg")]), "no device"),
    ],
)
def test_else_it_says_why_not(section: Section, words: str) -> None:
    assert words in plan.why_not_by_itself(machine(section))
    assert not plan.expects_gpu(machine(section)) or isinstance(section, Interpreter)


def test_without_a_test_the_reason_is_kept() -> None:
    saved = machine(NO_TORCH, origin="recorded")
    host, end = RecordedHost(Recording()), time.monotonic() + 10
    for refused, asked in (("not wished for", False), ("", True), ("", False)):
        run = with_selftests(
            host, saved, TABLES, level="quick", asked=asked, refused=refused, end=end, show=print
        )
        why = refused or plan.why_no_test(saved)
        assert why
        assert run.get(SelfTests).problem("*") == why


def test_without_nodes_the_driver_s_own_word_counts() -> None:
    assert plan.why_not_by_itself(machine(NO_NODE, cuda_sees(A100))) == ""
    assert plan.why_not_by_itself(machine(NO_NODE, nvml(A100))) == ""


@each("origin", ["sysroot", "recorded"])
def test_nothing_runs_in_what_is_only_files(origin: Origin) -> None:
    assert "only files" in plan.why_no_test(machine(origin=origin))


def with_gpus(*changes: dict[str, object]) -> Snapshot:
    cards = [A100] * len(changes)
    known = nvml(*cards)
    gpus = [
        msgspec.structs.replace(gpu, **change)
        for gpu, change in zip(known.gpus or [], changes, strict=True)
    ]
    return machine(Nvml(init_code=0, gpus=gpus), cuda_sees(*cards))


def test_a_gpu_without_room_is_left_alone_with_the_reason() -> None:
    found = plan.unfit(
        with_gpus({"memory_free_bytes": 20 * MIB}, {"memory_free_bytes": 300 * MIB}, {})
    )
    assert found == {
        "cuda:0": "only 20 MiB of its memory are free, and the self-tests need 256 MiB",
    }


def test_an_exclusive_gpu_is_left_alone_only_while_it_is_held() -> None:
    holder = [GpuProcess(pid=4242, kind="compute")]
    mode = "exclusive-process"
    found = plan.unfit(
        with_gpus(
            {"compute_mode": mode, "processes": holder},
            {"compute_mode": mode, "processes": []},
            {"compute_mode": "default", "processes": holder},
            {"compute_mode": "prohibited"},
        )
    )
    assert found == {
        "cuda:0": "it is in exclusive mode and another process uses it",
        "cuda:3": "its compute mode is prohibited",
    }
