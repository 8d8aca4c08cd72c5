"""How to install libcuda in exactly the release of the loaded kernel module.

libcuda of another release does not work with the module ("Driver/library version mismatch"), so no
command here installs a package whose release is left open. The names of the packages are those of
the distributions, of NVIDIA's repositories and of RPM Fusion.
"""

import shlex

import msgspec

from gpucheck.advice.driver_packages import DEBIAN, UBUNTU
from gpucheck.facts.claims import Fix
from gpucheck.facts.driver import Driver
from gpucheck.facts.system import System
from gpucheck.language import Sentence, in_turn, say

_SHOW_MODULE = "cat /proc/driver/nvidia/version"
_RPM_FUSION = ("akmod-nvidia", "kmod-nvidia", "xorg-x11-drv-nvidia")
_BY_DNF = ("dnf", "yum")


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
        "Install libcuda {release}, the release of the loaded kernel module: any other release "
        "breaks it.",
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
    # A package that is installed without its files is left alone otherwise.
    again = " --reinstall" if found.name in (driver.packages or ()) else ""
    return Fix(
        text=in_turn(
            (
                exactly,
                say(
                    "Take the package for which apt-cache lists {release}: the last command "
                    "installs {package}. If there is none, install the whole driver instead.",
                    release=release,
                    package=found.name,
                ),
            )
        ),
        commands=(
            _SHOW_MODULE,
            "sudo apt-get update",
            found.listing,
            f"sudo apt-get install -y{again} {shlex.quote(f'{found.name}={release}-*')}",
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
