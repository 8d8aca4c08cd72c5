import pytest
from each import each
from rule_facts import (
    A100,
    CPU_TORCH,
    CUDA_TORCH,
    DOCKER,
    EMPTY_BUS,
    HOST,
    LINUX,
    MAC,
    NO_TORCH,
    WINDOWS,
    WSL2,
    commands,
    hit,
    nvml,
    on_bus,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence
from gpucheck.facts.driver import MigDevice, Nvml, NvmlGpu
from gpucheck.facts.request import Request
from gpucheck.facts.system import Pci, System
from gpucheck.findings.form import Judgement


def judge(*sections: Section) -> Judgement:
    return ask("no-nvidia-gpu", *sections)


def test_a_cuda_build_without_a_gpu() -> None:
    found = hit(judge(LINUX, HOST, EMPTY_BUS, CUDA_TORCH))
    assert "2.6.0+cu124" in found.headline
    assert {"torch.built_for", "pci.gpus"} <= set(found.evidence)
    assert found.confidence is Confidence.CERTAIN
    assert "gpucheck --gpus 0" in commands(found)


def test_an_amd_machine_hears_of_rocm() -> None:
    bus = Pci(gpus=[], nvswitches=0, other_display_vendors=["amd"], jetson_gpu="")
    found = hit(judge(LINUX, HOST, bus, CUDA_TORCH))
    assert "pci.other_display_vendors" in found.evidence
    assert "ROCm" in found.fixes[0].text


def test_a_mac_needs_no_bus() -> None:
    found = hit(judge(MAC, HOST, CUDA_TORCH))
    assert "system.os" in found.evidence
    assert "macOS" in found.fixes[0].text


def test_a_cloud_machine_hears_of_instance_types() -> None:
    cloud = System(os="linux", wsl=0, jetson="", virtualization="Amazon EC2")
    assert "instance type" in hit(judge(cloud, HOST, EMPTY_BUS, CUDA_TORCH)).fixes[0].text


def test_a_gpu_of_a_virtual_machine_is_not_the_host_s() -> None:
    reserved = on_bus(A100, bound="vfio-pci")
    found = hit(judge(LINUX, HOST, reserved, CUDA_TORCH))
    assert "vfio-pci" in found.headline
    assert "virtual machine" in found.fixes[0].text
    quiet(judge(LINUX, HOST, reserved, CPU_TORCH))


def test_a_container_is_not_certain_of_its_host() -> None:
    assert hit(judge(LINUX, DOCKER, EMPTY_BUS, CUDA_TORCH)).confidence is Confidence.LIKELY


@each("torch", [CPU_TORCH, NO_TORCH])
def test_no_gpu_and_nobody_wants_one(torch: Section) -> None:
    quiet(judge(LINUX, HOST, EMPTY_BUS, torch))


def test_a_host_that_only_builds() -> None:
    quiet(judge(LINUX, HOST, EMPTY_BUS, CUDA_TORCH, Request(gpus=0)))


def test_a_gpu_is_there() -> None:
    quiet(judge(LINUX, HOST, on_bus(A100), CUDA_TORCH))


@each("torch", [CPU_TORCH, NO_TORCH, CUDA_TORCH])
def test_wanted_and_none_whatever_torch_is(torch: Section) -> None:
    found = hit(judge(LINUX, HOST, EMPTY_BUS, torch, Request(gpus=1)))
    assert "1 NVIDIA GPU is required" in found.headline
    assert "request.gpus" in found.evidence


def test_fewer_than_wanted_names_both_numbers() -> None:
    found = hit(judge(LINUX, HOST, on_bus(*[A100] * 7), nvml(*[A100] * 7), Request(gpus=8)))
    assert "8" in found.headline
    assert "7" in found.headline
    assert "request.gpus" in found.evidence


def test_as_many_as_wanted() -> None:
    quiet(judge(LINUX, HOST, nvml(A100, A100), Request(gpus=2)))


def test_mig_instances_count_as_gpus() -> None:
    instances = [MigDevice(uuid=f"MIG-{at}") for at in range(7)]
    gpu = NvmlGpu(index=0, device_name="NVIDIA A100", mig_enabled=True, mig_devices=instances)
    quiet(judge(LINUX, HOST, Nvml(init_code=0, gpus=[gpu]), Request(gpus=7)))


def test_an_unread_bus_is_not_an_empty_one() -> None:
    with pytest.raises(UnknownFactError, match=r"pci\.gpus"):
        judge(LINUX, HOST, CUDA_TORCH)


@each("system", [WINDOWS, WSL2])
def test_windows_shows_a_gpu_only_by_its_driver(system: Section) -> None:
    with pytest.raises(UnknownFactError, match=r"nvml\.gpus"):
        judge(system, HOST, CUDA_TORCH)
    hit(judge(system, HOST, CUDA_TORCH, Nvml(init_code=0, gpus=[])))


def test_an_unknown_build_is_not_a_cuda_build() -> None:
    with pytest.raises(UnknownFactError, match=r"torch\.built_for"):
        judge(LINUX, HOST, EMPTY_BUS)
