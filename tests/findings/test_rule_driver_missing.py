import pytest
from rule_facts import (
    A100,
    DOCKER,
    EMPTY_BUS,
    HOST,
    LINUX,
    NO_LIBCUDA,
    WINDOWS,
    WSL2,
    commands,
    cuda_sees,
    hit,
    libcuda,
    loaded,
    on_bus,
    quiet,
)
from rules_support import ask

from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.driver import Driver
from gpucheck.facts.nvml import Nvml
from gpucheck.facts.system import System
from gpucheck.findings.form import Judgement

NOTHING = Driver(
    module_loaded=False, module_release="", nouveau_loaded=False, libcuda=[], packages=[]
)
BUS = on_bus(A100, bound="")


def judge(*sections: Section) -> Judgement:
    return ask("driver-missing", *sections)


def test_a_gpu_and_no_driver() -> None:
    found = hit(judge(LINUX, HOST, BUS, NOTHING, NO_LIBCUDA))
    assert "A100" in found.headline
    assert {"pci.gpus", "driver.libcuda", "driver.module_loaded"} <= set(found.evidence)
    assert "sudo apt-get install -y nvidia-driver-" in commands(found)


def test_nouveau_is_named() -> None:
    driver = Driver(module_loaded=False, nouveau_loaded=True, libcuda=[], packages=[])
    found = hit(judge(LINUX, HOST, on_bus(A100, bound="nouveau"), driver))
    assert "nouveau" in found.headline
    assert "driver.nouveau_loaded" in found.evidence


@pytest.mark.parametrize("kind", ["stub", "compat"])
def test_stubs_and_compat_are_no_driver(kind: str) -> None:
    driver = Driver(module_loaded=False, libcuda=[libcuda(kind=kind)], packages=[])
    hit(judge(LINUX, HOST, BUS, driver))


def test_a_module_without_libcuda() -> None:
    driver = Driver(module_loaded=True, module_release="535.183.01", libcuda=[], packages=[])
    found = hit(judge(LINUX, HOST, on_bus(A100), driver))
    assert "libcuda" in found.headline
    assert "libnvidia-compute-535" in commands(found)


def test_debian_has_libcuda_in_its_own_package() -> None:
    debian = System(os="linux", wsl=0, jetson="", distribution="debian", package_manager="apt")
    driver = Driver(module_loaded=True, module_release="535.183.01", libcuda=[])
    assert "libcuda1" in commands(hit(judge(debian, HOST, on_bus(A100), driver)))


def test_an_installed_driver() -> None:
    quiet(judge(LINUX, HOST, on_bus(A100), loaded()))
    quiet(judge(LINUX, HOST, on_bus(A100), cuda_sees(A100), NOTHING))


@pytest.mark.parametrize(
    "sections",
    [(LINUX, DOCKER, BUS, NOTHING), (WSL2, HOST, NOTHING), (LINUX, HOST, EMPTY_BUS, NOTHING)],
)
def test_where_no_driver_belongs(sections: tuple[Section, ...]) -> None:
    quiet(judge(*sections))


def test_a_card_for_virtual_machines_needs_none() -> None:
    quiet(judge(LINUX, HOST, on_bus(A100, bound="vfio-pci"), NOTHING))


def test_a_jetson_has_its_own() -> None:
    orin = System(os="linux", wsl=0, jetson="NVIDIA Jetson AGX Orin", l4t="36.4.0")
    quiet(judge(orin, HOST, NOTHING))


def test_unread_folders_are_not_empty_ones() -> None:
    with pytest.raises(UnknownFactError, match=r"driver\.libcuda"):
        judge(LINUX, HOST, BUS, Driver(module_loaded=False))
    with pytest.raises(UnknownFactError, match=r"driver\.module_loaded"):
        judge(LINUX, HOST, BUS, Driver(libcuda=[]))


def test_nixos_keeps_libcuda_elsewhere() -> None:
    nixos = System(os="linux", wsl=0, jetson="", distribution="nixos")
    with pytest.raises(UnknownFactError, match="NixOS"):
        judge(nixos, HOST, on_bus(A100), NOTHING)


def test_windows_by_its_bus() -> None:
    absent = Nvml(library_found=False)
    found = hit(judge(WINDOWS, HOST, BUS, absent))
    assert "https://www.nvidia.com/drivers" in found.fixes[0].text
    quiet(judge(WINDOWS, HOST, BUS, Nvml(library_found=True)))
    with pytest.raises(UnknownFactError, match=r"pci\.gpus"):
        judge(WINDOWS, HOST, absent)
