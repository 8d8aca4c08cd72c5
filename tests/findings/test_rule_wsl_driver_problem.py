import msgspec
import pytest
from each import each
from rule_facts import (
    A100,
    CPU_TORCH,
    CUDA_TORCH,
    DOCKER,
    HOST,
    LINUX,
    NO_LIBCUDA,
    WINDOWS,
    WSL2,
    commands,
    cuda_fails,
    cuda_sees,
    dev,
    hit,
    libcuda,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.driver import DeviceNodes, Driver, Nvml
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment
from gpucheck.findings.form import Judgement

DXG = dev("/dev/dxg")
OF_WINDOWS = libcuda(kind="wsl", path="/usr/lib/wsl/lib/libcuda.so.1")
GOOD = Driver(libcuda=[OF_WINDOWS], packages=[])


def judge(*sections: Section) -> Judgement:
    return ask("wsl-driver-problem", *sections)


def test_wsl_1() -> None:
    wsl_1 = msgspec.structs.replace(WSL2, wsl=1)
    name = Environment(variables={"WSL_DISTRO_NAME": "Ubuntu-24.04"})
    found = hit(judge(wsl_1, HOST, CUDA_TORCH, name))
    assert "wsl.exe --set-version Ubuntu-24.04 2" in commands(found)
    nameless = hit(judge(wsl_1, HOST, CUDA_TORCH))
    assert commands(nameless).split("\n") == ["wsl.exe --list --verbose"]
    assert "wsl.exe --set-version" in nameless.fixes[0].text
    for odd in ("Ubuntu; iwr x|iex", "$(calc)", "-x y", "a'b"):
        named = Environment(variables={"WSL_DISTRO_NAME": odd})
        assert hit(judge(wsl_1, HOST, CUDA_TORCH, named)).fixes == nameless.fixes
    quiet(judge(wsl_1, HOST, CPU_TORCH))


def test_a_linux_driver_inside() -> None:
    packages = ["nvidia-driver-535", "libnvidia-compute-535", "nvidia-container-toolkit"]
    driver = Driver(libcuda=[libcuda(), OF_WINDOWS], packages=packages)
    found = hit(judge(WSL2, HOST, driver, DXG, CUDA_TORCH, cuda_fails(100)))
    assert "sudo apt-get purge -y nvidia-driver-535 libnvidia-compute-535\n" in commands(found)
    assert "wsl.exe --shutdown" in commands(found)
    assert {"driver.libcuda.0.path", "driver.packages"} <= set(found.evidence)


def test_a_linux_driver_without_package() -> None:
    driver = Driver(libcuda=[libcuda(), OF_WINDOWS], packages=[])
    found = hit(judge(WSL2, HOST, driver, DXG, CUDA_TORCH))
    assert "installer" in found.fixes[0].text


def test_no_dxg() -> None:
    found = hit(judge(WSL2, HOST, GOOD, DeviceNodes(nodes=[]), CUDA_TORCH))
    assert "/dev/dxg" in found.headline
    assert "wsl.exe --update" in commands(found)


def test_no_libcuda_from_windows() -> None:
    found = hit(judge(WSL2, HOST, Driver(libcuda=[]), DXG, CUDA_TORCH, NO_LIBCUDA))
    assert "https://www.nvidia.com/drivers" in found.fixes[0].text


def test_the_loader_does_not_find_it() -> None:
    found = hit(judge(WSL2, HOST, GOOD, DXG, CUDA_TORCH, NO_LIBCUDA))
    assert "ld.wsl.conf" in commands(found)


@each("answer", [Nvml(init_code=18), cuda_fails(803)])
def test_the_driver_of_windows_was_updated(answer: Section) -> None:
    found = hit(judge(WSL2, HOST, GOOD, DXG, CUDA_TORCH, answer))
    assert commands(found) == "wsl.exe --shutdown"


@each(
    "sections",
    [
        (LINUX, HOST),
        (WINDOWS, HOST),
        (WSL2, DOCKER, Driver(libcuda=[]), DXG, CUDA_TORCH),
        (WSL2, HOST, GOOD, DXG, CUDA_TORCH),
        (WSL2, HOST, Driver(libcuda=[libcuda()]), DXG, CUDA_TORCH, cuda_sees(A100)),
        (WSL2, HOST, Driver(libcuda=[]), DXG, CPU_TORCH),
        (WSL2, HOST, Driver(libcuda=[]), DXG, CUDA_TORCH, Request(gpus=0)),
    ],
)
def test_fine_or_no_wsl(sections: tuple[Section, ...]) -> None:
    quiet(judge(*sections))


def test_unread_is_not_missing() -> None:
    with pytest.raises(UnknownFactError, match=r"device_nodes\.nodes"):
        judge(WSL2, HOST, GOOD, CUDA_TORCH)
    with pytest.raises(UnknownFactError, match=r"driver\.libcuda"):
        judge(WSL2, HOST, DXG, CUDA_TORCH)
