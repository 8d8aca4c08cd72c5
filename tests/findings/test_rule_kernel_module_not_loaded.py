import shlex
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from each import each
from rule_facts import (
    A100,
    DOCKER,
    EMPTY_BUS,
    HOST,
    LINUX,
    WSL2,
    commands,
    hit,
    libcuda,
    loaded,
    nvml,
    on_bus,
    quiet,
)
from rules_support import ask

from gpucheck.advice.kernel_module import unblock
from gpucheck.facts import Section, UnknownFactError
from gpucheck.facts.claims import Confidence
from gpucheck.facts.driver import Driver, NvidiaSmi, Nvml
from gpucheck.facts.system import System
from gpucheck.findings.form import Judgement

BLOCKING = "modprobe.blacklist=nouveau,nvidia"
MODULE = "/lib/modules/6.8.0-48-generic/updates/dkms/nvidia.ko"
UNLOADED = Driver(
    module_loaded=False,
    module_release="",
    nouveau_loaded=False,
    modules_folder=True,
    module_files=[MODULE],
    other_kernels_with_module=[],
    dkms_sources=["535.183.01"],
    blacklist=[],
    secure_boot=False,
    libcuda=[libcuda()],
    libnvidia_ml=[],
    packages=["nvidia-driver-535"],
)
BUS = on_bus(A100, bound="")
MESSAGE = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that "
    "the latest NVIDIA driver is installed and running."
)


def but(**changes: Any) -> Driver:  # noqa: ANN401  # any field of a driver
    return msgspec.structs.replace(UNLOADED, **changes)


def judge(*sections: Section) -> Judgement:
    return ask("kernel-module-not-loaded", *sections)


def test_nobody_loaded_it() -> None:
    found = hit(judge(LINUX, HOST, BUS, UNLOADED, Nvml(init_code=9)))
    assert commands(found).startswith("sudo modprobe nvidia")
    assert {"driver.module_loaded", "nvml.init_code"} <= set(found.evidence)
    assert found.confidence is Confidence.LIKELY


def test_a_new_kernel_without_module() -> None:
    driver = but(module_files=[], other_kernels_with_module=["6.8.0-45-generic"])
    found = hit(judge(LINUX, HOST, BUS, driver))
    assert "6.8.0-48-generic" in found.headline
    assert "6.8.0-45-generic" in found.headline
    assert "sudo apt-get install -y linux-headers-$(uname -r)" in commands(found)
    assert "sudo dkms autoinstall" in commands(found)
    assert "driver.other_kernels_with_module" in found.evidence


def test_without_dkms_no_dkms_is_run() -> None:
    found = hit(judge(LINUX, HOST, BUS, but(module_files=[], dkms_sources=[])))
    assert "dkms" not in commands(found)


@each("seen", [{"dkms": ["535.183.01 6.8.0-45"]}, {"packages": ["nvidia-dkms-535"]}])
def test_where_dkms_has_built_it_nothing_else_is_said(seen: dict[str, Any]) -> None:
    found = hit(judge(LINUX, HOST, BUS, but(module_files=[], **seen)))
    assert "dkms status" not in found.fixes[0].text


def test_sources_alone_do_not_show_that_dkms_builds_the_module() -> None:
    found = hit(judge(LINUX, HOST, BUS, but(module_files=[])))
    assert found.fixes[0].commands[0] == "dkms status"
    assert "prebuilt" in found.fixes[0].text


@each(
    ("package", "wanted"),
    [
        ("linux-modules-nvidia-535-6.8.0-45-generic", "linux-modules-nvidia-535-$(uname -r)"),
        (
            "linux-modules-nvidia-570-server-open-generic",
            "linux-modules-nvidia-570-server-open-$(uname -r)",
        ),
    ],
)
def test_prebuilt_modules_are_installed(package: str, wanted: str) -> None:
    found = hit(judge(LINUX, HOST, BUS, but(module_files=[], packages=[package])))
    assert f"sudo apt-get install -y {wanted}" in found.fixes[0].commands
    assert "dkms" not in commands(found)


def test_fedora_calls_headers_otherwise() -> None:
    fedora = System(os="linux", wsl=0, jetson="", distribution="fedora", package_manager="dnf")
    assert "kernel-devel-$(uname -r)" in commands(
        hit(judge(fedora, HOST, BUS, but(module_files=[])))
    )


def test_modules_of_the_running_kernel_are_gone() -> None:
    found = hit(judge(LINUX, HOST, BUS, but(module_files=[], modules_folder=False)))
    assert commands(found) == "sudo reboot"


def test_nouveau_holds_the_card() -> None:
    found = hit(judge(LINUX, HOST, on_bus(A100, bound="nouveau"), but(nouveau_loaded=True)))
    assert "nouveau" in found.headline
    assert "sudo update-initramfs -u" in commands(found)
    assert "driver.nouveau_loaded" in found.evidence


def test_a_line_keeps_it_out() -> None:
    lines = ["blacklist nouveau", "blacklist nvidia"]
    driver = but(blacklist=lines, sources={"blacklist": "/etc/modprobe.d/blacklist-nvidia.conf"})
    found = hit(judge(LINUX, HOST, BUS, driver))
    assert "/etc/modprobe.d/blacklist-nvidia.conf" in found.fixes[0].text
    assert found.headline.endswith("not loaded: modprobe.d blocks it (blacklist nvidia)")
    assert "driver.blacklist" in found.evidence


@each(
    ("manager", "expected"),
    [
        ("apt", "sudo update-grub"),
        ("dnf", f"--remove-args={BLOCKING} --args=modprobe.blacklist=nouveau"),
    ],
)
def test_the_kernel_command_line_keeps_it_out(manager: str, expected: str) -> None:
    system = msgspec.structs.replace(LINUX, package_manager=manager)
    driver = but(blacklist=[BLOCKING], sources={"blacklist": "/proc/cmdline"})
    found = hit(judge(system, HOST, BUS, driver))
    assert "not loaded: the kernel command line blocks it (" in found.headline
    (fix,) = found.fixes
    assert BLOCKING in fix.text
    assert any(command.endswith(expected) for command in fix.commands)
    assert fix.commands[-1] == "sudo reboot"
    assert not any("modprobe nvidia" in command for command in fix.commands)


def test_a_file_and_the_kernel_command_line_keep_it_out() -> None:
    driver = but(
        blacklist=["blacklist nvidia", "module_blacklist=nvidia"],
        sources={"blacklist": "/etc/modprobe.d/no.conf, /proc/cmdline"},
    )
    found = hit(judge(LINUX, HOST, BUS, driver))
    assert "modprobe.d and the kernel command line block it (" in found.headline
    (both,) = found.fixes
    assert both.text.startswith("Comment out the lines in /etc/modprobe.d/no.conf that block")
    assert any(command.endswith(" /etc/modprobe.d/no.conf") for command in both.commands)
    assert "After that, remove nvidia from module_blacklist=nvidia" in both.text
    assert both.commands[-1] == "sudo reboot"


@pytest.mark.process
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('X="quiet module_blacklist=nvidia"', 'X="quiet "'),
        ('X="module_blacklist=nvidia splash"', 'X=" splash"'),
        ('X="module_blacklist=nvidia,b"', 'X="module_blacklist=nvidia,b"'),
        ('X="module_blacklist=nvidia_drm"', 'X="module_blacklist=nvidia_drm"'),
    ],
)
def test_the_line_of_grub_is_edited(before: str, after: str, tmp_path: Path) -> None:
    fix = unblock(["module_blacklist=nvidia"], ["nvidia"], "apt")
    words = shlex.split(fix.commands[1])
    file = tmp_path / "grub"
    file.write_text(before + "\n", encoding="utf-8")
    subprocess.run([*words[1:-1], str(file)], check=True)
    assert file.read_text(encoding="utf-8") == after + "\n"


@each("manager", ["apt", "dnf"])
@each("word", ["module_blacklist=nvidia,a#;1e touch PWNED;#", "module_blacklist=nvidia,a\n1e id"])
def test_an_odd_parameter_gets_into_no_program_of_root(word: str, manager: str) -> None:
    fix = unblock(["module_blacklist=nvidia", word], ["nvidia"], manager)
    assert fix.commands == ("cat /proc/cmdline",)
    assert fix.restart == "machine"
    assert len(unblock(["module_blacklist=nvidia"], ["nvidia"], manager).commands) > 1


def test_the_usual_lines_are_no_cause() -> None:
    lines = ["blacklist nouveau", "blacklist nvidia_drm"]
    found = hit(judge(LINUX, HOST, BUS, but(blacklist=lines, secure_boot=True)))
    assert "Secure Boot" in found.headline


def test_secure_boot_is_likely_only() -> None:
    found = hit(judge(LINUX, HOST, BUS, but(secure_boot=True)))
    assert found.confidence is Confidence.LIKELY
    assert "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der" in commands(found)


def test_a_card_for_virtual_machines_needs_no_module() -> None:
    quiet(judge(LINUX, HOST, on_bus(A100, bound="vfio-pci"), UNLOADED))


def test_in_a_container_it_is_the_host() -> None:
    found = hit(judge(LINUX, DOCKER, BUS, UNLOADED))
    assert "host" in found.headline
    assert all("host" in fix.text for fix in found.fixes)


@each("section", [Nvml(init_code=9), NvidiaSmi(found=True, message=MESSAGE)])
def test_the_driver_says_so_itself(section: Section) -> None:
    assert hit(judge(section)).confidence is Confidence.LIKELY
    quiet(judge(section, EMPTY_BUS))


@each(
    "sections",
    [
        (LINUX, HOST, on_bus(A100), loaded()),
        (LINUX, HOST, on_bus(A100), loaded(), Nvml(init_code=9)),
        (LINUX, HOST, on_bus(A100), nvml(A100), UNLOADED),
        (LINUX, HOST, EMPTY_BUS, UNLOADED, Nvml(init_code=9)),
        (WSL2, HOST, UNLOADED),
    ],
)
def test_loaded_or_not_needed(sections: tuple[Section, ...]) -> None:
    quiet(judge(*sections))


def test_no_driver_at_all_is_another_finding() -> None:
    quiet(judge(LINUX, HOST, BUS, but(libcuda=[])))


def test_unknown_is_not_unloaded() -> None:
    with pytest.raises(UnknownFactError, match=r"driver\.module_loaded"):
        judge(LINUX, HOST, BUS)
    with pytest.raises(UnknownFactError, match=r"driver\.libcuda"):
        judge(LINUX, HOST, BUS, Driver(module_loaded=False))
