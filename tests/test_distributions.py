"""No command of Ubuntu for a distribution that is stated to be another one."""

from each import each
from test_machines import TABLES

from gpucheck.advice.interruption import in_distribution
from gpucheck.facts.system import System
from gpucheck.ticket.judge import triage

HEADERS = "sudo apt install linux-headers-$(uname -r)"
COMPILER = "sudo apt install build-essential python3-dev"
FFMPEG = "sudo apt-get install -y ffmpeg"
DRIVERS = "sudo ubuntu-drivers install"
DKMS = "sudo dkms autoinstall"


@each(
    ("distribution", "kept"),
    [
        (None, (HEADERS, COMPILER, FFMPEG, DRIVERS, DKMS)),
        ("ubuntu", (HEADERS, COMPILER, FFMPEG, DRIVERS, DKMS)),
        ("debian", (HEADERS, COMPILER, FFMPEG, "", DKMS)),
        ("arch", ("", "sudo pacman -S gcc", "sudo pacman -S ffmpeg", "", DKMS)),
        ("nixos", ("", "", "", "", "")),
        (
            "fedora",
            (
                "sudo dnf install -y kernel-devel-$(uname -r)",
                "sudo dnf install -y gcc gcc-c++ python3-devel",
                "",
                "",
                DKMS,
            ),
        ),
        (
            "opensuse-leap",
            ("", "sudo zypper install -y gcc gcc-c++ python3-devel", "", "", DKMS),
        ),
    ],
)
def test_each_distribution_has_its_own(distribution: str | None, kept: tuple[str, ...]) -> None:
    system = System(os="linux", distribution=distribution)
    commands = (HEADERS, COMPILER, FFMPEG, DRIVERS, DKMS)
    assert tuple(in_distribution(command, system) for command in commands) == kept


def test_a_manager_that_is_seen_counts_more() -> None:
    devuan = System(os="linux", distribution="nixos", package_manager="apt")
    assert in_distribution(HEADERS, devuan) == HEADERS
    assert in_distribution("sudo modprobe nvidia", System(distribution="nixos"))


REPORT = """PyTorch version: 2.6.0+cu124
Is debug build: False
CUDA used to build PyTorch: 12.4
OS: {os} (x86_64)
Python version: 3.12.3 (main) (64-bit runtime)
Is CUDA available: False
GPU models and configuration: Could not collect
Nvidia driver version: Could not collect

RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU \
and installed a driver from http://www.nvidia.com/Download/index.aspx
"""


@each(
    ("os", "named"),
    [
        ("Arch Linux", "nvidia-open-lts for linux-lts"),
        ("Fedora Linux 41 (Workstation Edition)", "akmod-nvidia"),
        ("NixOS 24.11 (Vicuna)", 'services.xserver.videoDrivers = [ "nvidia" ]'),
        ("openSUSE Tumbleweed", "NVIDIA's guide for each distribution"),
        ("Ubuntu 22.04.4 LTS", "on Ubuntu, ubuntu-drivers installs it"),
    ],
)
def test_a_missing_driver_comes_from_the_reporters_distribution(os: str, named: str) -> None:
    (cause,) = triage(REPORT.format(os=os), TABLES).causes
    assert cause.slug == "driver-missing"
    assert named in cause.fixes[0].text
    assert bool(cause.fixes[0].commands) is ("Ubuntu" in os)
