import msgspec
import pytest
from each import each
from rule_facts import (
    A100,
    ALL_NODES,
    DOCKER,
    HOST,
    LINUX,
    WSL2,
    commands,
    cuda_fails,
    cuda_sees,
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
from gpucheck.facts.driver import DeviceNode, DeviceNodes, Driver
from gpucheck.findings.form import Judgement

NO_UVM = dev("/dev/nvidiactl", "/dev/nvidia0")
BUS = on_bus(A100)
WITHOUT_UVM_MODULE = msgspec.structs.replace(loaded(), uvm_loaded=False)


def judge(*sections: Section) -> Judgement:
    return ask("device-nodes-missing", *sections)


def test_no_uvm_and_cuda_fails() -> None:
    found = hit(judge(LINUX, HOST, BUS, WITHOUT_UVM_MODULE, NO_UVM, nvml(A100), cuda_fails(999)))
    assert "/dev/nvidia-uvm" in found.headline
    assert {"device_nodes.nodes", "cuda_driver.init_code"} <= set(found.evidence)
    assert commands(found) == "sudo modprobe nvidia-uvm\nsudo nvidia-modprobe -u -c=0"


def test_fewer_files_than_gpus() -> None:
    bus = on_bus(A100, A100)
    found = hit(judge(LINUX, HOST, bus, loaded(), ALL_NODES, nvml(A100), cuda_fails(100)))
    assert "/dev/nvidia1" in found.headline


def test_cards_of_another_driver_need_no_file() -> None:
    bus = on_bus(A100, A100, bound="vfio-pci")
    quiet(judge(LINUX, HOST, bus, loaded(), ALL_NODES, cuda_fails(100)))


def test_a_plain_file_instead_of_a_device() -> None:
    nodes = DeviceNodes(
        nodes=[
            DeviceNode(path="/dev/nvidiactl", is_device=True, opens="opens"),
            DeviceNode(path="/dev/nvidia-uvm", is_device=False),
        ]
    )
    found = hit(judge(LINUX, HOST, BUS, loaded(), nodes))
    assert found.evidence[1] == "device_nodes.nodes.1.is_device"
    assert "sudo rm -r /dev/nvidia-uvm" in commands(found)


def test_a_leftover_of_another_load() -> None:
    nodes = DeviceNodes(nodes=[DeviceNode(path="/dev/nvidia-uvm", is_device=True, opens="ENXIO")])
    assert "ENXIO" in hit(judge(LINUX, HOST, BUS, loaded(), nodes)).headline


def test_a_broken_file_that_cuda_does_not_need() -> None:
    nodes = DeviceNodes(
        nodes=[
            *(ALL_NODES.nodes or []),
            DeviceNode(path="/dev/nvidia-modeset", is_device=True, opens="ENODEV"),
        ]
    )
    quiet(judge(LINUX, HOST, BUS, loaded(), nodes, cuda_fails(100)))


def test_999_after_a_suspend() -> None:
    found = hit(judge(LINUX, HOST, BUS, loaded(), ALL_NODES, nvml(A100), cuda_fails(999)))
    assert found.confidence is Confidence.POSSIBLE
    assert "sudo rmmod nvidia_uvm" in commands(found)


def test_999_without_the_module() -> None:
    found = hit(judge(LINUX, HOST, BUS, WITHOUT_UVM_MODULE, ALL_NODES, cuda_fails(999)))
    assert "driver.uvm_loaded" in found.evidence


def test_a_container_gets_the_files_of_its_start() -> None:
    found = hit(judge(LINUX, DOCKER, BUS, loaded(), NO_UVM, cuda_fails(999)))
    assert "new container" in found.fixes[0].text
    quiet(judge(LINUX, DOCKER, BUS, loaded(), DeviceNodes(nodes=[]), cuda_fails(100)))


def test_cuda_starts_all_the_same() -> None:
    quiet(judge(LINUX, HOST, BUS, loaded(), NO_UVM, cuda_sees(A100)))


@each("code", [34, 802, 803, 804])
def test_errors_with_other_causes(code: int) -> None:
    quiet(judge(LINUX, HOST, BUS, loaded(), NO_UVM, nvml(A100), cuda_fails(code)))


def test_cuda_makes_missing_files_when_it_can() -> None:
    with pytest.raises(UnknownFactError, match=r"cuda_driver\.init_code"):
        judge(LINUX, HOST, BUS, loaded(), NO_UVM)
    cannot = msgspec.structs.replace(loaded(), nvidia_modprobe=False)
    assert hit(judge(LINUX, HOST, BUS, cannot, NO_UVM)).confidence is Confidence.LIKELY


@each(
    "sections",
    [
        (WSL2, HOST, cuda_fails(999)),
        (LINUX, HOST, Driver(module_loaded=False), DeviceNodes(nodes=[]), cuda_fails(100)),
    ],
)
def test_where_no_files_belong(sections: tuple[Section, ...]) -> None:
    quiet(judge(*sections))


def test_unread_is_not_missing() -> None:
    with pytest.raises(UnknownFactError, match=r"device_nodes\.nodes"):
        judge(LINUX, HOST, BUS, loaded(), cuda_fails(999))
