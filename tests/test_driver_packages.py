"""Which commands install a driver: of each distribution, for old and for new GPUs."""

import re
from pathlib import Path

import msgspec
from each import each
from rules_machines import NO_CONTAINER, UBUNTU
from rules_support import TABLES, snapshot
from test_fixes import on_bus

from gpucheck.advice import DriverFixes, driver_packages
from gpucheck.advice.command_class import class_of
from gpucheck.engine import supply
from gpucheck.facts.claims import Fix
from gpucheck.facts.driver import Driver

NEW, OLD, ANCIENT = "8.9", "6.1", "3.5"


ARCH_KERNEL, LTS_KERNEL, ZEN_KERNEL = "6.17.2-arch1-1", "6.12.50-1-lts", "6.17.2-zen1-1-zen"
RED_HAT_KERNEL, UEK = "5.14.0-503.11.1.el9_5.x86_64", "5.15.0-205.149.5.1.el9uek.x86_64"


def install(
    capability: str,
    distribution: str,
    version: str,
    machine: str = "x86_64",
    kernel: str | None = ARCH_KERNEL,
) -> Fix:
    system = msgspec.structs.replace(
        UBUNTU,
        distribution=distribution,
        distribution_version=version,
        machine=machine,
        kernel=kernel,
    )
    made: DriverFixes = supply(
        DriverFixes, snapshot(NO_CONTAINER, system, on_bus(capability)), TABLES
    )
    return made.install("525.60.13") if capability != ANCIENT else made.install()


@each(
    ("capability", "distribution", "version", "expected"),
    [
        (NEW, "ubuntu", "24.04", "apt-get install -y nvidia-driver-580-open"),
        (OLD, "ubuntu", "24.04", "apt-get install -y nvidia-driver-580"),
        (NEW, "debian", "12", "apt-get install -y nvidia-open"),
        (OLD, "debian", "13", "apt-get install -y cuda-drivers"),
        (NEW, "rocky", "9.5", "dnf install -y nvidia-open"),
        (OLD, "rhel", "8.10", "dnf module install -y nvidia-driver:580-dkms"),
        (NEW, "almalinux", "9.4", "dnf install -y nvidia-open"),
        (NEW, "fedora", "43", "dnf install -y akmod-nvidia xorg-x11-drv-nvidia-cuda"),
        (NEW, "sles", "15.6", "zypper install -y --auto-agree-with-licenses nvidia-open"),
        (
            NEW,
            "opensuse-leap",
            "15.6",
            "zypper install -y --auto-agree-with-licenses nvidia-open",
        ),
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


def test_the_stream_of_the_branch_is_enabled_before_its_package_is_installed() -> None:
    commands = install(NEW, "rocky", "9.5").commands
    enabled = commands.index("sudo dnf module enable -y nvidia-driver:580-open")
    assert commands[enabled + 1] == "sudo dnf install -y nvidia-open"
    assert "sudo dnf module reset -y nvidia-driver" in commands[:enabled]


@each(
    ("distribution", "version", "kernel", "package"),
    [
        ("arch", "", LTS_KERNEL, "nvidia-open-lts"),
        ("arch", "", ZEN_KERNEL, ""),
        ("arch", "", None, ""),
        ("ol", "9.5", RED_HAT_KERNEL, "nvidia-open"),
        ("ol", "9.5", UEK, ""),
    ],
)
def test_a_package_that_is_for_one_kernel_is_offered_only_to_it(
    distribution: str, version: str, kernel: str | None, package: str
) -> None:
    commands = install(NEW, distribution, version, kernel=kernel).commands
    if not package:
        assert commands == ()
    else:
        assert any(command.endswith(f" {package}") for command in commands)


def test_no_version_stands_beside_the_table() -> None:
    source = Path(driver_packages.__file__).read_text(encoding="utf-8")
    assert re.findall(r"\d+\.\d+|[a-z]\d+\b", source.replace("x86_64", "")) == []


@each("distribution", ["fedora", "arch", "sles", "opensuse-leap"])
def test_where_only_the_newest_is_packaged_an_old_gpu_gets_the_installer_of_its_branch(
    distribution: str,
) -> None:
    fix = install(OLD, distribution, "15.6")
    assert fix.commands == ()
    assert "driver branch 580" in fix.text
    assert "https://www.nvidia.com/drivers" in fix.text
    assert "Use its proprietary kernel modules." in fix.text  # the open ones begin with Turing


@each(
    ("distribution", "version", "machine"),
    [
        ("gentoo", "", "x86_64"),
        ("centos", "9", "x86_64"),
        ("manjaro", "25.0", "x86_64"),
        ("ubuntu", "24.04", "ppc64le"),
        ("debian", "9", "x86_64"),
        ("rocky", "7.9", "x86_64"),
        ("rocky", "9.5", "aarch64"),
    ],
)
def test_what_is_not_known_gets_the_guide(distribution: str, version: str, machine: str) -> None:
    fix = install(NEW, distribution, version, machine)
    assert fix.commands == ()
    assert "docs.nvidia.com" in fix.text


@each(
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
    (added,) = (at for at, command in enumerate(commands) if needed in command)
    (driver,) = (
        at
        for at, command in enumerate(commands)
        if class_of(command) == "interrupts" and ("nvidia-open" in command)
    )
    assert added < driver


@each(("distribution", "old", "new"), [("ubuntu", "20.04", "22.04"), ("linuxmint", "20.3", "21.3")])
def test_an_ubuntu_past_its_support_has_no_package_of_a_new_branch(
    distribution: str, old: str, new: str
) -> None:
    assert install(NEW, distribution, old).commands == ()
    assert "docs.nvidia.com" in install(NEW, distribution, old).text
    assert install(NEW, distribution, new).commands
    assert install(NEW, distribution, "").commands


@each(("packages", "removed"), [([], True), (["nvidia-utils-535"], False)])
def test_a_driver_of_the_run_installer_is_removed_first(
    packages: list[str], *, removed: bool
) -> None:
    driver = Driver(module_loaded=True, module_release="535.183.01", packages=packages)
    sections = (NO_CONTAINER, UBUNTU, on_bus(NEW), driver)
    made: DriverFixes = supply(DriverFixes, snapshot(*sections), TABLES)
    assert ("nvidia-uninstall" in made.install().text) is removed


def test_the_last_branch_of_an_ancient_gpu_has_no_package() -> None:
    assert install(ANCIENT, "debian", "12").commands == ()
