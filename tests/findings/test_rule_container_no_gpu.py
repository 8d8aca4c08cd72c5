import pytest
from each import each
from rule_facts import (
    A100,
    ALL_NODES,
    CPU_TORCH,
    CUDA_TORCH,
    DOCKER,
    EMPTY_BUS,
    HOST,
    LINUX,
    NO_LIBCUDA,
    NO_TORCH,
    commands,
    cuda_fails,
    cuda_sees,
    dev,
    hit,
    libcuda,
    nvml,
    on_bus,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence
from gpucheck.facts.driver import DeviceNodes, Driver
from gpucheck.facts.request import Request
from gpucheck.facts.system import Container, Environment, Runtime
from gpucheck.findings.form import Hit, Judgement

NO_NODES = DeviceNodes(nodes=[])
OF_HOST = Driver(module_loaded=True, module_release="535.183.01", libcuda=[])
BUS = on_bus(A100)


def judge(*sections: Section) -> Judgement:
    return ask("container-no-gpu", *sections)


def test_docker_without_gpus() -> None:
    found = hit(judge(LINUX, DOCKER, BUS, OF_HOST, NO_NODES, NO_LIBCUDA, CUDA_TORCH))
    assert "docker run --gpus all" in commands(found)
    assert "sudo nvidia-ctk runtime configure --runtime=docker" in commands(found)
    assert found.fixes[0].text.startswith("On the host, ")
    assert "makes a new container" in found.fixes[0].text
    assert {"container.runtime", "pci.gpus", "driver.libcuda"} <= set(found.evidence)


@each(
    ("runtime", "command"),
    [
        ("podman", "--device nvidia.com/gpu=all"),
        ("kubernetes", "nvidia.com/gpu: 1"),
        ("apptainer", "--nv"),
        ("enroot", "NVIDIA_VISIBLE_DEVICES=all"),
        ("lxc", "nvidia.runtime=true"),
        ("containerd", "--gpus all"),
    ],
)
def test_each_runtime_has_its_way(runtime: Runtime, command: str) -> None:
    box = Container(runtime=runtime, visible_devices="", driver_capabilities="")
    found = hit(judge(LINUX, box, BUS, OF_HOST, NO_NODES, CUDA_TORCH))
    assert command in commands(found)


def test_the_module_of_the_host_is_trace_enough() -> None:
    found = hit(judge(LINUX, DOCKER, EMPTY_BUS, OF_HOST, NO_NODES, CUDA_TORCH))
    assert "driver.module_loaded" in found.evidence


def test_void_is_named() -> None:
    box = Container(runtime="kubernetes", visible_devices="void", driver_capabilities="")
    found = hit(judge(LINUX, box, BUS, OF_HOST, NO_NODES, CUDA_TORCH))
    assert "void" in found.headline
    assert "Remove NVIDIA_VISIBLE_DEVICES=void " in found.fixes[0].text
    assert "container.visible_devices" in found.evidence


def test_what_hides_the_gpu_is_replaced() -> None:
    box = Container(runtime="docker", visible_devices="none", driver_capabilities="")
    found = hit(judge(LINUX, box, BUS, OF_HOST, NO_NODES, CUDA_TORCH))
    assert "Remove NVIDIA_VISIBLE_DEVICES=none " in found.fixes[0].text
    assert found.fixes[0].commands == ("docker run --gpus all -e NVIDIA_VISIBLE_DEVICES=all ...",)


def test_capabilities_without_compute() -> None:
    box = Container(runtime="docker", visible_devices="all", driver_capabilities="utility")
    found = hit(judge(LINUX, box, BUS, OF_HOST, ALL_NODES, NO_LIBCUDA, CUDA_TORCH))
    assert "compute" in found.headline
    assert "makes a new container" in found.fixes[0].text
    assert "container.driver_capabilities" in found.evidence


def test_libcuda_of_the_image_without_device_files() -> None:
    driver = Driver(module_loaded=True, libcuda=[libcuda()])
    found = hit(judge(LINUX, DOCKER, BUS, driver, NO_NODES, CUDA_TORCH))
    assert "device_nodes.nodes" in found.evidence
    assert "driver.libcuda" not in found.evidence


def test_the_driver_without_any_gpu() -> None:
    void = Container(runtime="docker", visible_devices="void", injected=["/usr/bin/nvidia-smi"])
    driver = Driver(module_loaded=True, libcuda=[libcuda()])
    nodes = dev("/dev/nvidiactl", "/dev/nvidia-uvm")
    found = hit(judge(LINUX, void, BUS, driver, nodes, NO_TORCH, cuda_fails(100)))
    assert "void" in found.headline
    assert "device file" in found.headline


def test_a_stub_is_no_libcuda() -> None:
    driver = Driver(module_loaded=True, libcuda=[libcuda(kind="stub")])
    hit(judge(LINUX, DOCKER, BUS, driver, NO_NODES, CUDA_TORCH, cuda_fails(34)))


@each("torch", [CPU_TORCH, NO_TORCH])
def test_nobody_in_here_wants_a_gpu(torch: Section) -> None:
    quiet(judge(LINUX, DOCKER, BUS, OF_HOST, NO_NODES, torch))
    hit(judge(LINUX, DOCKER, BUS, OF_HOST, NO_NODES, torch, Request(gpus=1)))


def test_the_image_wants_one() -> None:
    image = Container(runtime="docker", visible_devices="all", driver_capabilities="")
    hit(judge(LINUX, image, BUS, OF_HOST, NO_NODES, NO_TORCH))


@each(
    "sections",
    [
        (LINUX, HOST, BUS, OF_HOST, NO_NODES, CUDA_TORCH),
        (LINUX, DOCKER, BUS, OF_HOST, NO_NODES, CUDA_TORCH, cuda_sees(A100)),
        (LINUX, DOCKER, EMPTY_BUS, Driver(module_loaded=False), NO_NODES, CUDA_TORCH),
        (LINUX, DOCKER, BUS, OF_HOST, NO_NODES, CUDA_TORCH, Request(gpus=0)),
        (LINUX, DOCKER, BUS, Driver(libcuda=[libcuda()]), ALL_NODES, CUDA_TORCH, cuda_fails(999)),
    ],
)
def test_no_container_or_nothing_missing(sections: tuple[Section, ...]) -> None:
    quiet(judge(*sections))


def test_unknown_is_not_absent() -> None:
    with pytest.raises(UnknownFactError, match=r"container\.runtime"):
        judge(LINUX, BUS, OF_HOST, NO_NODES, CUDA_TORCH)
    with pytest.raises(UnknownFactError, match=r"pci\.gpus"):
        judge(LINUX, DOCKER, CUDA_TORCH)
    with pytest.raises(UnknownFactError, match=r"driver\.libcuda"):
        judge(LINUX, DOCKER, BUS, NO_NODES, CUDA_TORCH)
    with pytest.raises(UnknownFactError, match=r"torch\.built_for"):
        judge(LINUX, DOCKER, BUS, OF_HOST, NO_NODES)


TOLD = (LINUX, DOCKER, cuda_fails(100), CUDA_TORCH, Environment(variables={}))


def test_no_device_in_a_container_of_which_little_more_is_known() -> None:
    found = hit(judge(*TOLD))
    assert found.confidence is Confidence.LIKELY
    assert "docker run --gpus all" in commands(found)
    assert "cuda_driver.init_code" in found.evidence


@each(
    "other",
    [
        Environment(variables={"CUDA_VISIBLE_DEVICES": ""}),
        nvml(A100),
        dev("/dev/nvidia0"),
        EMPTY_BUS,
        CPU_TORCH,
        Request(gpus=0),
        Driver(module_loaded=False),
        HOST,
    ],
)
def test_another_reason_for_no_device_speaks_against_it(other: Section) -> None:
    sections = {type(section): section for section in (*TOLD, other)}
    try:
        judged = judge(*sections.values())
    except UnknownFactError:
        return
    assert not isinstance(judged, Hit)
