import msgspec
import pytest
from each import each
from rule_facts import (
    A100,
    DOCKER,
    EMPTY_BUS,
    HOST,
    LINUX,
    MAC,
    commands,
    cuda_fails,
    cuda_sees,
    hit,
    nvml,
    nvml_gpu,
    on_bus,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence
from gpucheck.facts.driver import Driver, NvmlGpu
from gpucheck.findings.form import Judgement

HGX = msgspec.structs.replace(on_bus(*[A100] * 8), nvswitches=6)
NVML = nvml(*[A100] * 8)


def service(running: bool | None, installed: bool = True, release: str = "535.183.01") -> Driver:  # noqa: FBT001, FBT002  # short to read
    return Driver(
        fabric_manager_installed=installed,
        fabric_manager_running=running,
        fabric_manager_release=release if installed else "",
    )


def judge(*sections: Section) -> Judgement:
    return ask("fabric-manager-down", LINUX, *sections)


def test_the_service_does_not_run() -> None:
    found = hit(judge(HOST, HGX, NVML, service(running=False), cuda_fails(802)))
    assert "is not running" in found.headline
    assert found.confidence is Confidence.CERTAIN
    assert commands(found).startswith("sudo systemctl enable --now nvidia-fabricmanager")
    assert {"cuda_driver.init_code", "pci.nvswitches"} <= set(found.evidence)


def test_it_is_not_installed() -> None:
    found = hit(judge(HOST, HGX, NVML, service(running=False, installed=False), cuda_fails(802)))
    assert "apt-get install -y 'nvidia-fabricmanager-535=535.183.01*'" in commands(found)


def test_it_is_of_another_release() -> None:
    other = service(running=False, release="535.161.07")
    found = hit(judge(HOST, HGX, NVML, other, cuda_fails(802)))
    assert "535.161.07" in found.headline
    assert "535.183.01" in found.headline
    assert found.fixes[0].commands[-3:] == (
        "sudo apt-get install -y 'nvidia-fabricmanager-535=535.183.01*'",
        "sudo systemctl enable nvidia-fabricmanager",
        "sudo systemctl restart nvidia-fabricmanager",
    )


def test_it_runs_and_the_fabric_is_not_ready() -> None:
    found = hit(judge(HOST, HGX, NVML, service(running=True), cuda_fails(802)))
    assert "systemctl restart nvidia-fabricmanager" in commands(found)


def test_the_error_alone() -> None:
    assert hit(judge(cuda_fails(802))).confidence is Confidence.LIKELY


def test_in_a_container_it_is_the_host() -> None:
    found = hit(judge(DOCKER, HGX, NVML, service(running=None), cuda_fails(802)))
    assert "On the host" in found.fixes[0].text


def test_switches_whose_service_does_not_run() -> None:
    waiting = nvml_gpu(NvmlGpu(index=0, fabric_state="in-progress"))
    found = hit(judge(HOST, HGX, waiting, service(running=False)))
    assert found.confidence is Confidence.LIKELY
    assert "nvml.gpus.0.fabric_state" in found.evidence


@each(
    "sections",
    [
        (HOST, HGX, NVML, service(running=False), cuda_sees(A100)),
        (HOST, HGX, NVML, service(running=True)),
        (HOST, HGX, NVML, service(running=False), cuda_fails(803)),
        (HOST, on_bus(A100), nvml(A100), service(running=False)),
        (HOST, EMPTY_BUS, Driver()),
    ],
)
def test_ready_or_without_switches(sections: tuple[Section, ...]) -> None:
    quiet(judge(*sections))


def test_unknown() -> None:
    quiet(ask("fabric-manager-down", MAC))
    with pytest.raises(UnknownFactError, match=r"pci\.nvswitches"):
        judge(HOST)
    with pytest.raises(UnknownFactError, match="fabric_manager_running"):
        judge(HOST, HGX, Driver())
