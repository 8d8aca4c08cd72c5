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

from gpucheck.advice.command_class import class_of
from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Fix
from gpucheck.facts.driver import Driver, Nvml
from gpucheck.facts.system import PackageManager, System
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


def test_a_cpu_build_must_be_replaced_after_the_driver_works() -> None:
    also = "this PyTorch is a CPU build, which must be replaced as well"
    assert also in hit(judge(LINUX, HOST, BUS, NOTHING, NO_LIBCUDA, CPU_TORCH)).fixes[0].text
    assert also not in hit(judge(LINUX, HOST, BUS, NOTHING, NO_LIBCUDA, CUDA_TORCH)).fixes[0].text


def test_nouveau_is_named() -> None:
    driver = Driver(module_loaded=False, nouveau_loaded=True, libcuda=[], packages=[])
    found = hit(judge(LINUX, HOST, on_bus(A100, bound="nouveau"), driver))
    assert "nouveau" in found.headline
    assert "driver.nouveau_loaded" in found.evidence


@each("kind", ["stub", "compat"])
def test_stubs_and_compat_are_no_driver(kind: str) -> None:
    driver = Driver(module_loaded=False, libcuda=[libcuda(kind=kind)], packages=[])
    hit(judge(LINUX, HOST, BUS, driver))


def _without_libcuda(system: System, packages: list[str] | None, release: str) -> Fix:
    driver = Driver(module_loaded=True, module_release=release, libcuda=[], packages=packages)
    found = hit(judge(system, HOST, on_bus(A100), driver))
    assert "libcuda" in found.headline
    return found.fixes[0]


@each(
    ("packages", "package"),
    [
        (["nvidia-driver-535", "nvidia-utils-535"], "libnvidia-compute-535"),
        (["linux-modules-nvidia-535-server-generic"], "libnvidia-compute-535-server"),
        (None, "libnvidia-compute-535"),
    ],
)
def test_libcuda_is_installed_in_exactly_the_release_of_the_module(
    packages: list[str] | None, package: str
) -> None:
    fix = _without_libcuda(LINUX, packages, "535.183.01")
    assert "libcuda 535.183.01, the release of" in fix.text
    assert fix.commands[0] == "cat /proc/driver/nvidia/version"
    assert any(
        command.startswith("apt-cache madison libnvidia-compute-535 ") for command in fix.commands
    )
    assert fix.commands[-1] == f"sudo apt-get install -y '{package}=535.183.01-*'"


def test_a_package_that_is_there_without_its_files_is_installed_again() -> None:
    fix = _without_libcuda(LINUX, ["libnvidia-compute-535"], "535.183.01")
    assert fix.commands[-1] == (
        "sudo apt-get install -y --reinstall 'libnvidia-compute-535=535.183.01-*'"
    )
    assert "of these names than libnvidia-compute-535, use that name" in fix.text
    assert "next fix" not in fix.text  # a page may show only this one


def test_debian_has_libcuda_in_its_own_package() -> None:
    debian = System(os="linux", wsl=0, jetson="", distribution="debian", package_manager="apt")
    fix = _without_libcuda(debian, ["nvidia-driver"], "535.183.01")
    assert fix.commands[-1] == "sudo apt-get install -y 'libcuda1=535.183.01-*'"


@each(
    ("package", "named"),
    [
        ("nvidia-driver-cuda-535.183.01", "nvidia-driver-cuda-libs"),
        ("xorg-x11-drv-nvidia-cuda-535.183.01", "xorg-x11-drv-nvidia-cuda-libs"),
    ],
)
def test_with_dnf_the_releases_are_listed_first(package: str, named: str) -> None:
    rocky = System(os="linux", wsl=0, jetson="", distribution="rocky", package_manager="dnf")
    fix = _without_libcuda(rocky, [package], "535.183.01")
    assert fix.commands[-1] == f"dnf list --showduplicates {named}"


@each(
    ("distribution", "manager", "packages", "release"),
    [
        ("ubuntu", "apt", [], "535.183.01"),
        ("ubuntu", "apt", ["nvidia-utils-535"], ""),
        ("sles", "zypper", ["nvidia-compute"], "535.183.01"),
        ("gentoo", "", None, "535.183.01"),
    ],
)
def test_no_release_is_installed_that_may_differ_from_the_module(
    distribution: str, manager: PackageManager, packages: list[str] | None, release: str
) -> None:
    system = System(
        os="linux", wsl=0, jetson="", distribution=distribution, package_manager=manager
    )
    fix = _without_libcuda(system, packages, release)
    assert "the release of the loaded kernel module" in fix.text
    assert {class_of(command) for command in fix.commands} == {"reads"}


def test_an_installed_driver() -> None:
    quiet(judge(LINUX, HOST, on_bus(A100), loaded()))
    quiet(judge(LINUX, HOST, on_bus(A100), cuda_sees(A100), NOTHING))


@each(
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
