import pytest
from each import each
from rule_facts import (
    A100,
    DOCKER,
    HOST,
    LINUX,
    commands,
    cuda_fails,
    cuda_sees,
    hit,
    nvml,
    nvml_gpu,
    quiet,
)
from rules_support import ask

from gpucheck.advice.command_class import class_of
from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.driver import MigDevice, NvmlGpu
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment
from gpucheck.findings.form import Judgement

FIRST = "MIG-11111111-aaaa-5555-8888-000000000001"
SECOND = "MIG-11111111-aaaa-5555-8888-000000000002"


def gpu(*uuids: str, enabled: bool = True, pending: bool | None = None) -> NvmlGpu:
    return NvmlGpu(
        index=0,
        device_name="NVIDIA A100-SXM4-80GB",
        mig_enabled=enabled,
        mig_pending=enabled if pending is None else pending,
        mig_devices=[MigDevice(uuid=uuid) for uuid in uuids],
    )


def judge(*sections: Section, mask: str | None = None) -> Judgement:
    variables = Environment(variables={} if mask is None else {"CUDA_VISIBLE_DEVICES": mask})
    return ask("mig-misconfigured", LINUX, variables, *sections)


def test_no_instances() -> None:
    found = hit(judge(HOST, nvml_gpu(gpu()), cuda_fails(100)))
    assert "without any instance" in found.headline
    assert found.severity is None
    assert {"nvml.gpus.0.mig_enabled", "nvml.gpus.0.mig_devices"} == set(found.evidence)
    create, switch_off = found.fixes
    assert create.commands[-1] == "sudo nvidia-smi mig -i 0 -cgi 0 -C"
    assert class_of(create.commands[-1]) == "machine"
    assert switch_off.commands == ("sudo nvidia-smi -i 0 -mig 0",)
    assert class_of(switch_off.commands[0]) == "interrupts"


def test_a_container_is_given_an_instance() -> None:
    found = hit(judge(DOCKER, nvml_gpu(gpu())))
    assert "device=0:0" in commands(found)
    assert "sudo" not in commands(found)


def test_a_mask_that_chose_other_gpus() -> None:
    quiet(judge(HOST, nvml_gpu(gpu()), cuda_sees(A100), mask="1"))


def test_a_name_that_is_gone() -> None:
    found = hit(judge(HOST, nvml_gpu(gpu(FIRST)), cuda_fails(100), mask=SECOND))
    assert SECOND in found.headline
    assert f"export CUDA_VISIBLE_DEVICES={FIRST}" in commands(found)
    assert "nvml.gpus.0.mig_devices.0.uuid" in found.evidence


def test_several_instances_are_not_several_gpus() -> None:
    both = f"{FIRST},{SECOND}"
    found = hit(judge(HOST, nvml_gpu(gpu(FIRST, SECOND)), cuda_sees(A100), mask=both))
    assert "only the first" in found.headline
    assert found.confidence is Confidence.CERTAIN
    unseen = hit(judge(HOST, nvml_gpu(gpu(FIRST, SECOND)), mask=both))
    assert unseen.confidence is Confidence.LIKELY
    quiet(judge(HOST, nvml_gpu(gpu(FIRST, SECOND)), cuda_sees(A100, A100), mask=both))


def test_only_an_administrator_switches_mig_off_for_one_process() -> None:
    both = f"{FIRST},{SECOND}"
    start, switch_off = hit(judge(HOST, nvml_gpu(gpu(FIRST, SECOND)), mask=both)).fixes
    assert "-mig" not in start.text
    assert start.commands == ("nvidia-smi -L",)
    assert "as root" in switch_off.text
    assert "removes the instances of everyone" in switch_off.text
    assert switch_off.commands == ("sudo nvidia-smi -i 0 -mig 0",)
    _start, on_host = hit(judge(DOCKER, nvml_gpu(gpu(FIRST, SECOND)), mask=both)).fixes
    assert "administrator of the host" in on_host.text
    assert on_host.commands == ()


def test_without_any_instance_the_user_is_not_told_to_run_as_root() -> None:
    (fix,) = hit(judge(DOCKER, nvml_gpu(gpu()), cuda_fails(100), mask=FIRST)).fixes
    assert "administrator" in fix.text
    assert fix.commands == ("unset CUDA_VISIBLE_DEVICES",)


def test_a_change_that_waits() -> None:
    found = hit(judge(HOST, nvml_gpu(gpu(enabled=False, pending=True))))
    assert found.severity is Severity.WARNING
    assert "sudo nvidia-smi --gpu-reset -i 0" in commands(found)


@each("mask", [None, FIRST, FIRST[:12], "MIG-GPU-0123/1/0"])
def test_instances_that_are_there(mask: str | None) -> None:
    quiet(judge(HOST, nvml_gpu(gpu(FIRST, SECOND)), mask=mask))


def test_no_mig() -> None:
    quiet(judge(HOST, nvml(A100)))
    quiet(judge(HOST, nvml_gpu(gpu(enabled=False))))
    quiet(judge(HOST, nvml_gpu(gpu()), Request(gpus=0)))
    quiet(judge(HOST, mask="0"))


def test_unknown_is_not_gone() -> None:
    with pytest.raises(UnknownFactError, match=r"nvml\.gpus"):
        judge(HOST)
    with pytest.raises(UnknownFactError, match="MIG instances"):
        judge(HOST, cuda_fails(100), mask=FIRST)
    with pytest.raises(UnknownFactError, match="MIG instances"):
        judge(HOST, nvml(A100), cuda_fails(100), mask=FIRST)
