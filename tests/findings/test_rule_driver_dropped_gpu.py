import pytest
from each import each
from rule_facts import (
    A100,
    CUDA_TORCH,
    DOCKER,
    EMPTY_BUS,
    GT710,
    HOST,
    LINUX,
    P100,
    RTX5090,
    commands,
    hit,
    libcuda,
    nvml,
    on_bus,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence, Severity
from gpucheck.facts.driver import Driver, KernelLog, Nvml
from gpucheck.facts.request import Request
from gpucheck.findings.form import Judgement


def judge(*sections: Section) -> Judgement:
    return ask("driver-dropped-gpu", *sections)


def module(release: str, flavour: str = "proprietary") -> Driver:
    return Driver(
        module_loaded=True,
        module_release=release,
        module_flavour=flavour,  # type: ignore[arg-type]  # one of its words
        libcuda=[libcuda(release)],
    )


NONE_LISTED = Nvml(library_found=True, init_code=0, driver_release="595.45.04", gpus=[])


def test_a_branch_that_dropped_the_gpu() -> None:
    found = hit(judge(LINUX, HOST, on_bus(P100), module("595.45.04"), NONE_LISTED))
    assert "P100" in found.headline
    assert "580" in found.headline
    assert found.severity is Severity.ERROR
    assert found.confidence is Confidence.CERTAIN
    assert "nvidia-driver-580\n" in commands(found)


def test_the_last_branch_still_drives_it() -> None:
    quiet(judge(LINUX, HOST, on_bus(P100), module("580.142"), Nvml(init_code=9)))


def test_each_gpu_is_judged() -> None:
    bus = on_bus(A100, P100)
    served = nvml(A100, release="595.45.04")
    found = hit(judge(LINUX, HOST, bus, module("595.45.04"), served, CUDA_TORCH))
    assert "P100" in found.headline
    assert "A100" not in found.headline
    assert found.severity is Severity.ERROR
    assert "nvidia-driver-580\n" in commands(found)


def test_a_gpu_for_the_screen_alone_is_only_mentioned() -> None:
    bus = on_bus(A100, GT710)
    served = nvml(A100, release="580.142")
    found = hit(judge(LINUX, HOST, bus, module("580.142"), served, CUDA_TORCH))
    assert found.severity is Severity.INFO
    unknown = hit(judge(LINUX, HOST, bus, module("580.142"), served))
    assert unknown.severity is Severity.WARNING
    wanted = hit(judge(LINUX, HOST, bus, module("580.142"), served, CUDA_TORCH, Request(gpus=2)))
    assert wanted.severity is Severity.ERROR


def test_no_branch_drives_both() -> None:
    bus = on_bus(RTX5090, GT710)
    found = hit(judge(LINUX, HOST, bus, module("580.142", "open"), nvml(RTX5090)))
    assert "apt-get" not in commands(found)


def test_observed_success_beats_the_table() -> None:
    quiet(judge(LINUX, HOST, on_bus(P100), module("595.45.04"), nvml(P100, release="595.45.04")))


def test_open_modules_and_a_gpu_before_turing() -> None:
    none_listed = Nvml(library_found=True, init_code=0, driver_release="570.86.15", gpus=[])
    found = hit(judge(LINUX, HOST, on_bus(P100), module("570.86.15", "open"), none_listed))
    assert "proprietary" in found.headline
    assert "driver.module_flavour" in found.evidence


def test_a_branch_that_dropped_the_gpu_has_no_modules_for_it() -> None:
    none_listed = Nvml(library_found=True, init_code=0, driver_release="620.70.06", gpus=[])
    found = hit(judge(LINUX, HOST, on_bus(P100), module("620.70.06", "open"), none_listed))
    assert "branch 580 is the last that supports it" in found.headline
    assert "have only the open kernel modules" in found.headline
    assert "nvidia-driver-580\n" in commands(found)


@each("flavour", ["open", "proprietary"])
def test_no_kernel_modules_drive_volta_beside_blackwell(flavour: str) -> None:
    v100 = ("NVIDIA Tesla V100-PCIE-16GB", "7.0")
    served = nvml(RTX5090 if flavour == "open" else v100, release="580.142")
    bus = on_bus(RTX5090, v100) if flavour == "open" else on_bus(v100, RTX5090)
    found = hit(judge(LINUX, HOST, bus, module("580.142", flavour), served))
    assert "and another GPU here only with the" in found.headline
    assert "No driver supports all GPUs of this machine" in found.fixes[0].text
    assert not commands(found)


def test_proprietary_modules_and_blackwell() -> None:
    found = hit(judge(LINUX, HOST, on_bus(RTX5090), module("570.86.15"), NONE_LISTED))
    assert "open kernel modules" in found.headline
    assert "-open" in commands(found)


def test_grace_hopper_needs_the_open_modules_and_h100_does_not() -> None:
    gh200 = ("NVIDIA GH200 480GB", "9.0")
    hit(judge(LINUX, HOST, on_bus(gh200), module("570.86.15"), NONE_LISTED))
    quiet(judge(LINUX, HOST, on_bus(("NVIDIA H100 PCIe", "9.0")), module("570.86.15"), NONE_LISTED))


def test_the_kernel_log_says_it_where_no_module_stays_loaded() -> None:
    lines = [
        "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:2b85)",
        "NVRM: installed in this system requires use of the NVIDIA open kernel modules.",
    ]
    driver = Driver(module_loaded=False, module_release="", libcuda=[libcuda("570.86.15")])
    found = hit(judge(LINUX, HOST, on_bus(RTX5090, bound=""), driver, KernelLog(nvrm=lines)))
    assert "kernel_log.nvrm" in found.evidence
    assert found.confidence is Confidence.CERTAIN


def test_the_log_names_the_legacy_branch() -> None:
    lines = [
        "NVRM: The NVIDIA GeForce GT 710 GPU installed in this system is",
        "NVRM:  supported through the NVIDIA 470.xx Legacy drivers. Please",
        "NVRM:  visit http://www.nvidia.com/object/unix.html for more",
        "NVRM:  information.  The 580.142 NVIDIA driver will ignore",
        "NVRM:  this GPU.  Continuing probe...",
    ]
    driver = Driver(module_loaded=False, libcuda=[libcuda("580.142")])
    found = hit(judge(LINUX, HOST, on_bus(GT710, bound=""), driver, KernelLog(nvrm=lines)))
    assert "470" in found.headline
    assert "kernel_log.nvrm" in found.evidence


def test_a_sentence_of_the_log_goes_on_in_the_next_line() -> None:
    lines = [
        "NVRM: The NVIDIA GPU 0000:01:00.0 (PCI ID: 10de:1b80)",
        "NVRM: installed in this system is supported through the",
        "NVRM:  NVIDIA 580.xx Legacy drivers. Please visit",
    ]
    driver = Driver(module_loaded=False, libcuda=[libcuda("595.45.04")])
    found = hit(judge(LINUX, HOST, on_bus(P100, bound=""), driver, KernelLog(nvrm=lines)))
    assert "kernel_log.nvrm" in found.evidence
    assert found.confidence is Confidence.CERTAIN
    assert "branch 580 (the last that supports this GPU), then reboot" in found.fixes[0].text


def test_the_branch_of_the_older_of_two_gpus_is_said_of_that_gpu() -> None:
    found = hit(judge(LINUX, HOST, on_bus(P100, GT710), module("595.45.04"), NONE_LISTED))
    assert "branch 470 (the last for this GPU" in found.fixes[0].text
    assert "P100" not in found.fixes[0].text


def test_the_installed_libraries_tell_the_release() -> None:
    driver = Driver(module_loaded=False, module_release="", libcuda=[libcuda("595.45.04")])
    found = hit(judge(LINUX, HOST, on_bus(P100, bound=""), driver))
    assert found.confidence is Confidence.LIKELY
    assert "driver.libcuda.0.release" in found.evidence


def test_a_driver_older_than_the_gpu_is_another_finding() -> None:
    quiet(judge(LINUX, HOST, on_bus(RTX5090), module("550.54.14", "open"), NONE_LISTED))


def test_a_container_with_a_gpu_of_its_own() -> None:
    served = nvml(A100, release="595.45.04")
    quiet(judge(LINUX, DOCKER, on_bus(A100, P100), module("595.45.04"), served))


def test_no_gpu() -> None:
    quiet(judge(LINUX, HOST, EMPTY_BUS, module("595.45.04")))


def test_without_a_release_nothing_is_said() -> None:
    with pytest.raises(UnknownFactError):
        judge(LINUX, HOST, on_bus(P100))
