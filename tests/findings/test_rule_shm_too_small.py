import pytest
from each import each
from rules_machines import (
    A100,
    DOCKER,
    NO_CONTAINER,
    NO_VARIABLES,
    UBUNTU,
    WINDOWS,
    commands,
    fine,
    hit,
    not_applicable,
    nvml,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.request import Request
from gpucheck.facts.system import Container, Environment, LimitsOfProcess, Pci
from gpucheck.findings.form import Judgement

SLUG = "shm-too-small"
MIB = 1024 * 1024


def judge(size: int | None, *more: Section, container: Section = DOCKER) -> Judgement:
    return ask(SLUG, LimitsOfProcess(shm_total_bytes=size), UBUNTU, container, NO_VARIABLES, *more)


def test_several_gpus_and_64_mib_are_a_warning() -> None:
    answer = hit(judge(64 * MIB, nvml(A100, A100)))
    assert answer.severity is Severity.WARNING
    assert "64 MiB" in answer.headline
    assert "--shm-size" in answer.fixes[0].text
    assert "limits.shm_total_bytes" in answer.evidence


def test_one_gpu_is_information() -> None:
    answer = judge(64 * MIB, nvml(A100), container=NO_CONTAINER)
    assert hit(answer).severity is Severity.INFO
    assert hit(judge(32 * MIB, nvml(A100))).severity is Severity.INFO


@each("size", [0, 64 * 1024, 256 * 1024, MIB - 1])
def test_less_than_one_batch_is_a_warning_with_one_gpu_too(size: int) -> None:
    answer = hit(judge(size, nvml(A100), container=NO_CONTAINER))
    assert answer.severity is Severity.WARNING
    assert answer.confidence is Confidence.LIKELY
    assert "one batch" in answer.headline
    assert hit(judge(MIB, nvml(A100))).severity is Severity.INFO


def test_several_gpus_that_nccl_does_not_join_through_it_are_information() -> None:
    limits = LimitsOfProcess(shm_total_bytes=32 * MIB)
    disabled = Environment(variables={"NCCL_SHM_DISABLE": "1"})
    answer = hit(ask(SLUG, limits, UBUNTU, DOCKER, disabled, nvml(A100, A100)))
    assert answer.severity is Severity.INFO
    assert "NCCL" not in answer.headline


def test_one_gpu_and_a_containers_default_are_fine() -> None:
    fine(judge(64 * MIB, nvml(A100)))


@each("size", [512 * MIB, 8 << 30, -1])
def test_enough_is_fine(size: int) -> None:
    fine(judge(size, nvml(A100, A100)))


def test_without_a_gpu_to_use_it_is_fine() -> None:
    fine(judge(64 * MIB, Pci(gpus=[], jetson_gpu="")))
    fine(judge(64 * MIB, nvml(A100, A100), Request(gpus=0)))
    hidden = Environment(variables={"CUDA_VISIBLE_DEVICES": ""})
    limits = LimitsOfProcess(shm_total_bytes=64 * MIB)
    fine(ask(SLUG, limits, UBUNTU, DOCKER, hidden, nvml(A100, A100)))


def test_the_fix_fits_what_runs_it() -> None:
    assert commands(judge(MIB, nvml(A100), container=NO_CONTAINER)) == (
        "sudo mount -o remount,size=8G /dev/shm",
    )
    kubernetes = hit(judge(MIB, nvml(A100), container=Container(runtime="kubernetes")))
    assert "emptyDir" in kubernetes.fixes[0].text
    other = hit(judge(MIB, nvml(A100), container=Container(runtime="lxc")))
    assert other.fixes[0].commands == ()


def test_unknown_and_elsewhere() -> None:
    with pytest.raises(UnknownFactError, match=r"limits\.shm_total_bytes"):
        judge(None, nvml(A100))
    with pytest.raises(UnknownFactError, match=r"pci\.gpus"):
        judge(MIB)
    not_applicable(ask(SLUG, WINDOWS))
