"""The commands that install a driver branch, by distribution.

Where a distribution has the branch itself, its own package is named; otherwise NVIDIA's repository
for it, as the driver installation guide of NVIDIA says. A family that has only the newest branch is
offered that one, and only where it drives every GPU: that is what ``newest`` says. Nothing is
offered for a system that is not named here. The packages of NVIDIA's repositories need others, from
EPEL (dkms) and from Debian's contrib (glx-alternatives).
"""

import msgspec

from gpucheck.facts.system import System
from gpucheck.tables.versions import parse

_REPOSITORIES = "https://developer.download.nvidia.com/compute/cuda/repos"
_FUSION = "https://mirrors.rpmfusion.org"
DEBIAN, UBUNTU = ("debian",), ("ubuntu", "linuxmint")
"""The distributions whose packages of the driver have Debian's names, and those with Ubuntu's."""
_UBUNTU_RELEASES = {"ubuntu": 22, "linuxmint": 21}
"""The first release that has the driver branches of today; older ones are past their support."""
_RED_HAT = ("rhel", "rocky", "almalinux", "ol", "centos")
_SUSE = {"opensuse-leap": "opensuse15", "sles": "sles15"}
_ARCH = ("arch", "manjaro", "endeavouros")
_DEBIAN_RELEASES, _RED_HAT_RELEASES, _SUSE_RELEASE = ("12", "13"), ("8", "9"), "15"
_EPEL = "https://dl.fedoraproject.org/pub/epel/epel-release-latest"
_CONTRIB = (
    "sudo sed -E -i.bak '\\,contrib,!s,^((deb |Components:).*main),\\1 contrib,' "
    "$(ls /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null)"
)
"""Debian 12 may have its repositories in either file; the mirror that they name stays."""
_REBOOT = "sudo reboot"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A branch, the kind of its kernel modules, and whether the newest one would do as well."""

    branch: int
    opened: bool
    newest: bool


def install_commands(system: System, wanted: Wanted) -> tuple[str, ...]:
    """Return the commands that install a branch and restart; none if they are not known."""
    found = _commands(system, wanted)
    return (*found, _REBOOT) if found else ()


def _commands(system: System, wanted: Wanted) -> tuple[str, ...]:
    distribution = system.distribution or ""
    if distribution in UBUNTU and _has_new_drivers(system):
        package = f"nvidia-driver-{wanted.branch}{'-open' if wanted.opened else ''}"
        return ("sudo apt-get update", f"sudo apt-get install -y {package}")
    release = (system.distribution_version or "").partition(".")[0]
    if distribution in _ARCH and wanted.newest and wanted.opened:
        return ("sudo pacman -Syu --needed nvidia-open",)
    if system.machine != "x86_64":
        return ()
    if distribution in DEBIAN and release in _DEBIAN_RELEASES:
        return _on_debian(release, wanted)
    if distribution in _RED_HAT and release in _RED_HAT_RELEASES:
        return _on_red_hat(release, wanted)
    if distribution == "fedora" and wanted.newest:
        return _on_fedora()
    if distribution in _SUSE and release == _SUSE_RELEASE and wanted.newest:
        return _on_suse(_SUSE[distribution], wanted)
    return ()


def _has_new_drivers(system: System) -> bool:
    """Whether this release of Ubuntu or Mint still got new driver branches; an unknown one may."""
    release = parse(system.distribution_version)
    return release is None or release[0] >= _UBUNTU_RELEASES[system.distribution or ""]


def _on_debian(release: str, wanted: Wanted) -> tuple[str, ...]:
    keyring = "cuda-keyring_1.1-1_all.deb"
    package = "nvidia-open" if wanted.opened else "cuda-drivers"
    return (
        "sudo apt-get update",
        "sudo apt-get install -y curl linux-headers-$(uname -r)",
        f"curl -fsSLO {_REPOSITORIES}/debian{release}/x86_64/{keyring}",
        f"sudo apt-get install -y ./{keyring}",
        _CONTRIB,
        "sudo apt-get update",
        f"sudo apt-get install -y nvidia-driver-pinning-{wanted.branch}",
        f"sudo apt-get install -y {package}",
    )


def _on_red_hat(release: str, wanted: Wanted) -> tuple[str, ...]:
    repository = f"{_REPOSITORIES}/rhel{release}/x86_64/cuda-rhel{release}.repo"
    stream = f"{wanted.branch}-{'open' if wanted.opened else 'dkms'}"
    return (
        "sudo dnf install -y dnf-plugins-core kernel-devel-$(uname -r) kernel-headers",
        f"sudo dnf install -y {_EPEL}-{release}.noarch.rpm",
        f"sudo dnf config-manager --add-repo {repository}",
        "sudo dnf module reset -y nvidia-driver",
        f"sudo dnf module install -y nvidia-driver:{stream}",
    )


def _on_fedora() -> tuple[str, ...]:
    release = "$(rpm -E %fedora).noarch.rpm"
    free = f"{_FUSION}/free/fedora/rpmfusion-free-release-{release}"
    other = f"{_FUSION}/nonfree/fedora/rpmfusion-nonfree-release-{release}"
    return (
        f"sudo dnf install -y {free} {other}",
        "sudo dnf install -y akmod-nvidia xorg-x11-drv-nvidia-cuda",
        "sudo akmods --force",
    )


def _on_suse(repository: str, wanted: Wanted) -> tuple[str, ...]:
    package = "nvidia-open" if wanted.opened else "cuda-drivers"
    return (
        f"sudo zypper addrepo {_REPOSITORIES}/{repository}/x86_64/cuda-{repository}.repo",
        "sudo zypper --gpg-auto-import-keys refresh",
        f"sudo zypper install -y {package}",
    )
