"""Commands of Ubuntu in the form of the distribution that a text states."""

from collections.abc import Mapping

from gpucheck.advice.driver_packages import UBUNTU
from gpucheck.facts.system import System

_DNF = ("fedora", "rhel", "rocky", "almalinux", "ol", "centos", "amzn")
_MANAGERS: Mapping[str, str] = {
    **dict.fromkeys(_DNF, "dnf"),
    "opensuse-leap": "zypper", "sles": "zypper", "arch": "pacman", "manjaro": "pacman",
    "alpine": "apk", "nixos": "nix", "gentoo": "portage",
}  # fmt: skip
_OF_UBUNTU_ALONE = "sudo ubuntu-drivers "
_HAVE_UBUNTU_DRIVERS = (*UBUNTU, "pop")
_WITH_DKMS = ("dnf", "yum", "zypper", "pacman")
_ELSEWHERE: Mapping[str, Mapping[str, str]] = {
    "sudo apt install linux-headers-$(uname -r)": {
        "dnf": "sudo dnf install -y kernel-devel-$(uname -r)",
        "yum": "sudo yum install -y kernel-devel-$(uname -r)",
    },
    # As findings/compilers.py has them; Arch's python brings its headers.
    "sudo apt install build-essential python3-dev": {
        "dnf": "sudo dnf install -y gcc gcc-c++ python3-devel",
        "yum": "sudo yum install -y gcc gcc-c++ python3-devel",
        "zypper": "sudo zypper install -y gcc gcc-c++ python3-devel",
        "pacman": "sudo pacman -S gcc",
        "apk": "sudo apk add gcc g++ musl-dev python3-dev",
    },
    # https://archlinux.org/packages/extra/x86_64/ffmpeg/; Fedora's own lacks codecs.
    "sudo apt-get install -y ffmpeg": {"pacman": "sudo pacman -S ffmpeg"},
}
"""What installs the same with another package manager; nothing where the names are not known."""


def in_distribution(command: str, system: System) -> str:
    """Return a command as the distribution has it; "" if it has no such thing.

    Any command that is not of Ubuntu or Debian, and any on a system that nobody has named, comes
    back as it is.
    """
    distribution = system.distribution or ""
    if command.startswith(_OF_UBUNTU_ALONE):
        return command if not distribution or distribution in _HAVE_UBUNTU_DRIVERS else ""
    manager = system.package_manager or _MANAGERS.get(distribution, "apt")
    if manager == "apt":
        return command
    if command.startswith("sudo dkms "):
        return command if manager in _WITH_DKMS else ""
    if command.startswith(("sudo apt ", "sudo apt-get ")):
        return _ELSEWHERE.get(command, {}).get(manager, "")
    return command
