"""The commands that install a driver branch, by the packages of the distribution.

A family that has only the newest branch is offered that one, and only where it drives every GPU:
that is what ``newest`` says. Nothing is offered for a system that the table does not know.
"""

import msgspec

from gpucheck.facts.system import System
from gpucheck.language import Sentence, listed, say
from gpucheck.tables.driver import DriverPackageRow, DriverPackages

DEBIAN, UBUNTU = ("debian",), ("ubuntu", "linuxmint")
"""The distributions whose packages of the driver have Debian's names, and those with Ubuntu's."""
_REPOSITORIES = "https://developer.download.nvidia.com/compute/cuda/repos"
_COMPONENT = (
    "sudo sed -E -i.bak '\\,{component},!s,^((deb |Components:).*main),\\1 {component},' "
    "$(ls /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources 2>/dev/null)"
)
"""Debian may have its repositories in either file; the mirror that they name stays."""
_UPDATE = "sudo apt-get update"
_REBOOT = "sudo reboot"


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A branch, the kind of its kernel modules, and whether the newest one would do as well."""

    branch: int
    opened: bool
    newest: bool


def install_commands(system: System, wanted: Wanted, table: DriverPackages) -> tuple[str, ...]:
    """Return the commands that install a branch and restart; none if they are not known."""
    row = table.row(
        system.distribution or "", system.distribution_version, system.machine, system.kernel
    )
    if row is None or not (row.has_branches or wanted.newest):
        return ()
    if row.way == "dnf-module":
        return (*_by_module(row, wanted), _REBOOT)
    packages = row.open_packages if wanted.opened else row.proprietary_packages
    if packages is None:
        return ()
    return (*_commands(row, wanted, _named(packages, wanted)), _REBOOT)


def named_packages(system: System, table: DriverPackages) -> Sentence | None:
    """Say which packages bring the driver where its command depends on what is not known.

    For Arch Linux that is the kernel (https://archlinux.org/packages/), for the others the GPU
    (https://rpmfusion.org/Howto/NVIDIA, https://wiki.nixos.org/wiki/NVIDIA).
    """
    if system.distribution == "nixos":
        return say(
            "On NixOS, set {option} in the configuration, and rebuild the system before you "
            "reboot.",
            option='services.xserver.videoDrivers = [ "nvidia" ]',
        )
    if system.distribution == "arch":
        return say(
            "On Arch Linux it is the package nvidia-open for the kernel linux, nvidia-open-lts for "
            "linux-lts and nvidia-open-dkms for any other, for GPUs from Turing on."
        )
    row = table.row(
        system.distribution or "", system.distribution_version, system.machine or "x86_64", None
    )
    if row is None or row.way != "dnf":
        return None
    return say(
        "On Fedora it is {packages} from RPM Fusion, for GPUs from Turing on.",
        packages=listed((row.open_packages or "").split()),
    )


def _commands(row: DriverPackageRow, wanted: Wanted, packages: str) -> tuple[str, ...]:
    if row.way == "apt-pinned":
        return _by_apt_pinned(row, wanted, packages)
    if row.way == "dnf":
        return (
            f"sudo dnf install -y {' '.join(row.addresses)}",
            f"sudo dnf install -y {packages}",
            "sudo akmods --force",
        )
    if row.way == "zypper":
        return (
            f"sudo zypper addrepo {_entry(row)}",
            "sudo zypper --gpg-auto-import-keys refresh",
            f"sudo zypper install -y --auto-agree-with-licenses {packages}",
        )
    if row.way == "pacman":
        return (f"sudo pacman -Syu --needed {packages}",)
    return (_UPDATE, f"sudo apt-get install -y {packages}")


def _by_apt_pinned(row: DriverPackageRow, wanted: Wanted, packages: str) -> tuple[str, ...]:
    component = (_COMPONENT.format(component=row.component),) if row.component else ()
    return (
        _UPDATE,
        f"sudo apt-get install -y curl {row.headers}",
        f"curl -fsSLO {_REPOSITORIES}/{row.repository}/x86_64/{row.keyring}",
        f"sudo apt-get install -y ./{row.keyring}",
        *component,
        _UPDATE,
        f"sudo apt-get install -y {_named(row.pinning, wanted)}",
        f"sudo apt-get install -y {packages}",
    )


def _by_module(row: DriverPackageRow, wanted: Wanted) -> tuple[str, ...]:
    """Return the commands with a stream; the guide enables that of the open modules by itself."""
    stream = _named(row.stream_open if wanted.opened else row.stream_proprietary, wanted)
    added = [f"sudo dnf install -y {address}" for address in row.addresses]
    install = (
        (
            f"sudo dnf module enable -y nvidia-driver:{stream}",
            f"sudo dnf install -y {row.open_packages}",
        )
        if wanted.opened
        else (f"sudo dnf module install -y nvidia-driver:{stream}",)
    )
    return (
        f"sudo dnf install -y dnf-plugins-core {row.headers}",
        *added,
        f"sudo dnf config-manager --add-repo {_entry(row)}",
        "sudo dnf module reset -y nvidia-driver",
        *install,
    )


def _entry(row: DriverPackageRow) -> str:
    """Return the address of the file with the entry of NVIDIA's repository."""
    return f"{_REPOSITORIES}/{row.repository}/x86_64/cuda-{row.repository}.repo"


def _named(packages: str | None, wanted: Wanted) -> str:
    return (packages or "").replace("{branch}", str(wanted.branch))
