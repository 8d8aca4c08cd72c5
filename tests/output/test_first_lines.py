"""What the first line says of each test machine: "can use" only where a self-test has shown it."""

import re

import pytest
from rules_support import TABLES
from test_machines import EACH, reported

from gpucheck.derived import DriverState
from gpucheck.derived.gpus import is_passed_on
from gpucheck.engine import supply
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.system import Pci
from gpucheck.facts.torch import TorchBuild
from gpucheck.output import terminal
from gpucheck.output.summary import verdict

pytestmark = pytest.mark.every_finding


@EACH
def test_can_use_is_said_only_where_a_self_test_passed_and_sees_where_it_may(name: str) -> None:
    report, machine = reported(name), reported(name).snapshot
    first, tests = verdict(report), machine.get(SelfTests)
    passed = any(tests.passed_on_every_gpu(result.name) for _path, result in tests.of())
    assert " can use " not in first or passed
    if not re.match(r"PyTorch \S+ (?:can use|sees) ", first):
        return
    driver: DriverState = supply(DriverState, machine, TABLES)
    passed_on = [is_passed_on(gpu) for gpu in machine.get(Pci).gpus or ()]
    assert machine.get(TorchBuild).built_for == "cuda"
    assert passed or driver.serves()
    assert not (passed_on and all(passed_on))


@EACH
def test_an_unknown_verdict_says_what_is_missing_and_asks_nothing(name: str) -> None:
    report = reported(name)
    if report.verdict == "unknown":
        first = verdict(report)
        assert first.startswith("It is unknown w"), first
        assert "?" not in first


def test_a_gpu_for_virtual_machines_is_named_as_such() -> None:
    assert verdict(reported("vfio-passthrough-host")) == (
        "This host passes NVIDIA GeForce RTX 3090 through to virtual machines; "
        "PyTorch 2.9.1+cpu is a CPU build, which is right for this host"
    )


def test_the_gpus_of_others_are_not_said_to_be_of_no_use() -> None:
    assert verdict(reported("macos-mps")) == (
        "No NVIDIA GPU here; PyTorch 2.9.1 runs on the CPU or on Apple's GPU (MPS), which gpucheck "
        "does not examine"
    )
    assert verdict(reported("cpu-build-amd-gpu-laptop")) == (
        "No NVIDIA GPU here; PyTorch 2.8.0+cpu is a CPU build. There is an AMD GPU, which gpucheck "
        "does not examine"
    )


def test_a_note_that_waits_is_not_said_to_be_explained() -> None:
    report = reported("library-mismatch")
    waiting = [finding.slug for finding in report.findings if finding.silenced_by]
    assert waiting == ["driver-branch-end-of-life"]
    assert "This also explains" not in terminal.render(report, verbose=1)
    hangs = terminal.render(reported("nccl-p2p-hangs"), verbose=1)
    assert "This also explains: selftest" in hangs


def test_a_job_with_some_of_the_gpus_is_told_how_many_and_by_which_variable() -> None:
    assert "sees 1 of 8 GPUs (CUDA_VISIBLE_DEVICES=3): NVIDIA A100-SXM4-80GB (driver" in (
        verdict(reported("slurm-one-of-eight"))
    )


def test_behind_what_was_seen_stands_no_doubt() -> None:
    """The confidence is that it is the cause; that it happened is a fact."""
    assert verdict(reported("selftest-cudnn-fails")).endswith("CUDNN_STATUS_INTERNAL_ERROR")
    assert verdict(reported("oom-kill-in-kernel-log")).endswith("1 min ago")
    assert verdict(reported("secure-boot-unsigned")).endswith("(likely)")


def test_what_the_kernel_said_of_a_refused_module_stands_on_the_page() -> None:
    page = " ".join(terminal.render(reported("secure-boot-unsigned")).split())
    assert 'the kernel log says "Loading of module with unavailable key is rejected"' in page


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("python-not-found", "does not exist"),
        ("target-python-too-old", "is Python 3.6.9"),
        ("nothing-readable", "within 8 s"),
    ],
)
def test_the_reason_of_an_open_question_is_said_once(name: str, reason: str) -> None:
    page, _, _ = terminal.render(reported(name)).partition("The recorded machine")
    assert page.count(reason) == 1
