import pytest
from each import each
from rule_facts import (
    A100,
    ALL_NODES,
    DOCKER,
    HOST,
    LINUX,
    P100,
    address,
    commands,
    dev,
    hit,
    loaded,
    nvml,
    on_bus,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence
from gpucheck.facts.driver import Driver, KernelLog, NvidiaSmi, Nvml, NvmlGpu
from gpucheck.findings.form import Judgement

TWO = on_bus(A100, A100)


def judge(*sections: Section) -> Judgement:
    return ask("gpu-fallen-off-bus", LINUX, *sections)


def test_nvml_says_lost() -> None:
    gpus = [*(nvml(A100).gpus or []), NvmlGpu(index=1, lost=True, pci_address=address(1))]
    found = hit(judge(HOST, Nvml(init_code=0, gpus=gpus)))
    assert address(1) in found.headline
    assert found.evidence == ("nvml.gpus.1.lost",)
    assert "sudo reboot" in commands(found)


@each(
    "message",
    [
        "Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost.",
        "Unable to determine the device handle for GPU1: 0000:02:00.0: Unknown Error",
    ],
)
def test_nvidia_smi_says_so(message: str) -> None:
    found = hit(judge(NvidiaSmi(found=True, message=message)))
    assert found.evidence == ("nvidia_smi.message",)


def test_the_log_and_no_answer() -> None:
    log = KernelLog(fallen_off_bus=[address(1)])
    found = hit(judge(HOST, TWO, nvml(A100), log))
    assert address(1) in found.headline
    assert found.confidence is Confidence.CERTAIN
    assert hit(judge(HOST, log)).confidence is Confidence.LIKELY


def test_a_gpu_that_came_back() -> None:
    quiet(judge(HOST, TWO, nvml(A100, A100), loaded(), KernelLog(fallen_off_bus=[address(1)])))


def test_the_driver_holds_more_than_it_lists() -> None:
    found = hit(judge(HOST, TWO, nvml(A100), loaded(), ALL_NODES))
    assert address(1) in found.headline
    assert "pci.gpus.1.bound_driver" in found.evidence
    assert found.confidence is Confidence.LIKELY


def test_a_card_of_another_driver() -> None:
    quiet(judge(HOST, on_bus(A100, A100, bound="vfio-pci"), nvml(A100), loaded(), ALL_NODES))


def test_a_gpu_that_the_branch_dropped_is_another_finding() -> None:
    driver = Driver(module_loaded=True, module_release="595.45.04")
    quiet(judge(HOST, on_bus(A100, P100), nvml(A100, release="595.45.04"), driver, ALL_NODES))


def test_a_container_sees_more_on_the_bus_than_it_has() -> None:
    quiet(judge(DOCKER, TWO, nvml(A100), loaded(), ALL_NODES))


def test_a_job_may_not_open_every_gpu() -> None:
    quiet(judge(HOST, TWO, nvml(A100), loaded(), dev("/dev/nvidia1", opens="EPERM")))


def test_every_gpu_answers() -> None:
    quiet(judge(HOST, TWO, nvml(A100, A100), loaded(), ALL_NODES))


def test_a_driver_that_lists_nothing_is_another_question() -> None:
    quiet(judge(HOST, TWO, Nvml(init_code=0, gpus=[]), loaded()))


def test_unknown_is_not_gone() -> None:
    with pytest.raises(UnknownFactError, match=r"nvml\.gpus"):
        judge(HOST, TWO)
    with pytest.raises(UnknownFactError, match=r"pci\.gpus"):
        judge(HOST, nvml(A100))
