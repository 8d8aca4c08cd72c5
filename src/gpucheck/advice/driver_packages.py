"""The commands that install a driver branch, by the packages of the distribution.

A family that has only the newest branch is offered that one, and only where it drives every GPU:
that is what ``newest`` says. Nothing is offered for a system that the table does not know.
"""

import shlex

import msgspec

from gpucheck.facts.claims import Fix
from gpucheck.facts.driver import Driver
from gpucheck.facts.system import System
from gpucheck.language import Sentence, in_turn, say
from gpucheck.tables.driver_packages import DriverPackageRow, DriverPackages

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

_SHOW_MODULE = "cat /proc/driver/nvidia/version"
_RPM_FUSION = ("akmod-nvidia", "kmod-nvidia", "xorg-x11-drv-nvidia")
_BY_DNF = ("dnf", "yum")


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


# libcuda of another release does not work with the module ("Driver/library version mismatch"), so
# no command here installs a package whose release is left open. The names of the packages are those
# of the distributions, of NVIDIA's repositories and of RPM Fusion.
class _Packages(msgspec.Struct, frozen=True, kw_only=True):
    """The package that has libcuda, and the command that lists the releases of it."""

    name: str
    listing: str


def add_libcuda(driver: Driver, system: System) -> Fix:
    """Return the fix that adds libcuda, of the release of the loaded module."""
    release = driver.module_release or ""
    if not release:
        return Fix(
            text=say(
                "Install libcuda in exactly the release of the loaded kernel module, which the "
                "command shows. Another release breaks the driver."
            ),
            commands=(_SHOW_MODULE,),
        )
    exactly = say(
        "Install libcuda {release}, exactly the release of the loaded kernel module. Another "
        "release breaks the driver.",
        release=release,
    )
    if driver.packages == []:
        return Fix(text=in_turn((exactly, _by_runfile(release))), commands=(_SHOW_MODULE,))
    if system.distribution in (*UBUNTU, *DEBIAN):
        return _by_apt(exactly, release, driver, system)
    if system.package_manager in _BY_DNF:
        return _by_dnf(exactly, driver, system.package_manager or "")
    elsewhere = say("Take it from the same repository or installer as the module.")
    listing = ("zypper search -s 'nvidia-compute*'",) if system.package_manager == "zypper" else ()
    return Fix(text=in_turn((exactly, elsewhere)), commands=(_SHOW_MODULE, *listing))


def _by_runfile(release: str) -> Sentence:
    return say(
        "No package of this system has the driver, so it comes from NVIDIA's .run installer: run "
        "the installer of release {release} again.",
        release=release,
    )


def _by_apt(exactly: Sentence, release: str, driver: Driver, system: System) -> Fix:
    found = _of_apt(release, driver, system)
    return Fix(
        text=in_turn(
            (
                exactly,
                say(
                    "apt-cache lists the releases that the repositories have. If {release} is not "
                    "among them, apt-get installs nothing: then take the next fix, which replaces "
                    "the module and the libraries together.",
                    release=release,
                ),
            )
        ),
        commands=(
            _SHOW_MODULE,
            "sudo apt-get update",
            found.listing,
            f"sudo apt-get install -y {shlex.quote(f'{found.name}={release}-*')}",
        ),
    )


def _of_apt(release: str, driver: Driver, system: System) -> _Packages:
    """Return the package for apt; NVIDIA's server driver on Ubuntu has packages of its own."""
    if system.distribution in DEBIAN:
        return _Packages(name="libcuda1", listing="apt-cache madison libcuda1")
    name = f"libnvidia-compute-{release.partition('.')[0]}"
    server = any("-server" in package for package in driver.packages or ())
    return _Packages(
        name=f"{name}-server" if server else name,
        listing=shlex.join(["apt-cache", "madison", name, f"{name}-server", "libnvidia-compute"]),
    )


def _by_dnf(exactly: Sentence, driver: Driver, manager: str) -> Fix:
    names = tuple(driver.packages or ())
    fusion = any(name.startswith(_RPM_FUSION) for name in names)
    package = "xorg-x11-drv-nvidia-cuda-libs" if fusion else "nvidia-driver-cuda-libs"
    return Fix(
        text=in_turn(
            (
                exactly,
                say(
                    "It is in {package}; the second command lists the releases that the "
                    "repositories have.",
                    package=package,
                ),
            )
        ),
        commands=(_SHOW_MODULE, f"{manager} list --showduplicates {package}"),
    )
