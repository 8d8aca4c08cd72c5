"""Which commands install a driver: of each distribution, for old and for new GPUs."""

import msgspec
import pytest
from rules_machines import NO_CONTAINER, UBUNTU
from rules_support import TABLES, snapshot
from test_fixes import on_bus

from gpucheck.advice import DriverFixes
from gpucheck.advice.command_class import class_of
from gpucheck.engine import supply
from gpucheck.facts.claims import Fix
from gpucheck.facts.driver import Driver

NEW, OLD, ANCIENT = "8.9", "6.1", "3.5"


def install(capability: str, distribution: str, version: str, machine: str = "x86_64") -> Fix:
    system = msgspec.structs.replace(
        UBUNTU, distribution=distribution, distribution_version=version, machine=machine
    )
    made: DriverFixes = supply(
        DriverFixes, snapshot(NO_CONTAINER, system, on_bus(capability)), TABLES
    )
    return made.install("525.60.13") if capability != ANCIENT else made.install()


@pytest.mark.parametrize(
    ("capability", "distribution", "version", "expected"),
    [
        (NEW, "ubuntu", "24.04", "apt-get install -y nvidia-driver-580-open"),
        (OLD, "ubuntu", "24.04", "apt-get install -y nvidia-driver-580"),
        (NEW, "debian", "12", "apt-get install -y nvidia-open"),
        (OLD, "debian", "13", "apt-get install -y cuda-drivers"),
        (NEW, "rocky", "9.5", "dnf module install -y nvidia-driver:580-open"),
        (OLD, "rhel", "8.10", "dnf module install -y nvidia-driver:580-dkms"),
        (NEW, "almalinux", "9.4", "dnf module install -y nvidia-driver:580-open"),
        (NEW, "fedora", "43", "dnf install -y akmod-nvidia xorg-x11-drv-nvidia-cuda"),
        (NEW, "sles", "15.6", "zypper install -y nvidia-open"),
        (NEW, "opensuse-leap", "15.6", "zypper install -y nvidia-open"),
        (NEW, "arch", "", "pacman -Syu --needed nvidia-open"),
    ],
)
def test_a_distribution_has_its_command(
    capability: str, distribution: str, version: str, expected: str
) -> None:
    commands = install(capability, distribution, version).commands
    assert any(command.endswith(expected) for command in commands)
    assert commands[-1] == "sudo reboot"
    assert {class_of(command) for command in commands} <= {"environment", "machine", "interrupts"}
    assert "interrupts" in {class_of(command) for command in commands[:-1]}


@pytest.mark.parametrize("distribution", ["fedora", "arch", "sles", "opensuse-leap"])
def test_where_only_the_newest_is_packaged_an_old_gpu_gets_the_guide(distribution: str) -> None:
    fix = install(OLD, distribution, "15.6")
    assert fix.commands == ()
    assert "driver branch 580" in fix.text
    assert "docs.nvidia.com" in fix.text


@pytest.mark.parametrize(
    ("distribution", "version", "machine"),
    [
        ("gentoo", "", "x86_64"),
        ("debian", "9", "x86_64"),
        ("rocky", "7.9", "x86_64"),
        ("rocky", "9.5", "aarch64"),
    ],
)
def test_what_is_not_known_gets_the_guide(distribution: str, version: str, machine: str) -> None:
    fix = install(NEW, distribution, version, machine)
    assert fix.commands == ()
    assert "docs.nvidia.com" in fix.text


@pytest.mark.parametrize(
    ("distribution", "version", "needed"),
    [
        ("debian", "12", " contrib"),
        ("rocky", "9.5", "epel-release-latest-9.noarch.rpm"),
        ("rhel", "8.10", "epel-release-latest-8.noarch.rpm"),
    ],
)
def test_the_repository_that_has_the_dependencies_is_added_before_the_driver(
    distribution: str, version: str, needed: str
) -> None:
    commands = install(NEW, distribution, version).commands
    (added,) = (at for at, one in enumerate(commands) if needed in one)
    (driver,) = (
        at
        for at, one in enumerate(commands)
        if class_of(one) == "interrupts" and ("nvidia-open" in one or "module install" in one)
    )
    assert added < driver


@pytest.mark.parametrize(
    ("distribution", "old", "new"), [("ubuntu", "20.04", "22.04"), ("linuxmint", "20.3", "21.3")]
)
def test_an_ubuntu_past_its_support_has_no_package_of_a_new_branch(
    distribution: str, old: str, new: str
) -> None:
    assert install(NEW, distribution, old).commands == ()
    assert "docs.nvidia.com" in install(NEW, distribution, old).text
    assert install(NEW, distribution, new).commands
    assert install(NEW, distribution, "").commands


@pytest.mark.parametrize(("packages", "told"), [([], True), (["nvidia-utils-535"], False)])
def test_a_driver_of_the_run_installer_is_removed_first(packages: list[str], *, told: bool) -> None:
    driver = Driver(module_loaded=True, module_release="535.183.01", packages=packages)
    sections = (NO_CONTAINER, UBUNTU, on_bus(NEW), driver)
    made: DriverFixes = supply(DriverFixes, snapshot(*sections), TABLES)
    assert ("nvidia-uninstall" in made.install().text) is told


def test_the_last_branch_of_an_ancient_gpu_has_no_package() -> None:
    assert install(ANCIENT, "debian", "12").commands == ()
