"""How to install, update or reload the NVIDIA driver of this machine."""

import shlex
from datetime import datetime, timezone

import msgspec

from gpucheck.advice.driver_packages import (
    DEBIAN,
    UBUNTU,
    Wanted,
    install_commands,
    named_packages,
)
from gpucheck.derived import Derived, Gpu, Gpus
from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Fix
from gpucheck.facts.driver import Driver
from gpucheck.facts.system import Container, Pci, System
from gpucheck.language import Sentence, in_series, in_turn, listed, say
from gpucheck.tables.driver import DriverBranches, DriverPackages, DriverSupport
from gpucheck.tables.gpus import GpuArchitectures, Support

# How to install libcuda in exactly the release of the loaded kernel module.
#
# libcuda of another release does not work with the module ("Driver/library version mismatch"), so
# no command here installs a package whose release is left open. The names of the packages are those
# of the distributions, of NVIDIA's repositories and of RPM Fusion.

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
        "Install libcuda {release}, the release of the loaded kernel module: libcuda of any other "
        "release does not work with it.",
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
                    "If apt-cache lists {release} under another of these names than {package}, use "
                    "that name in the last command; if under none, install the whole driver.",
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


DRIVER_PAGE = "https://www.nvidia.com/drivers"
DRIVER_GUIDE = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
CONTAINER_GUIDE = (
    "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"
)
_APART = say(
    "Choose the driver for the GPUs that you want to use. The others need a separate machine."
)


_WITH_NVSWITCHES = say(
    "This machine has NVSwitches: install the Fabric Manager of exactly the same release from the "
    "same source. Otherwise CUDA does not start."
)
_FROM_INSTALLER = say(
    "The installed driver belongs to no package. If it came from NVIDIA's .run installer, remove "
    "it first: sudo nvidia-uninstall"
)
_BY_INSTALLER = say(
    "Download this branch, the last for this GPU, for Linux from {page}, and run its installer.",
    page=DRIVER_PAGE,
)
_OF_JETPACK = say(
    "The driver of a Jetson is part of its JetPack: it becomes newer with a newer JetPack."
)
_ANY = say("the NVIDIA driver")
_GUIDE = say("NVIDIA's guide for each distribution: {page}", page=DRIVER_GUIDE)


class DriverFixes(Derived):
    """How to install, update or reload the NVIDIA driver of this machine."""

    def __init__(
        self,
        system: System,
        container: Container,
        driver: Driver,
        pci: Pci,
        gpus: Gpus,
        branches: DriverBranches,
        architectures: GpuArchitectures,
        packages: DriverPackages,
    ) -> None:
        self._system = system
        self._container = container
        self._driver = driver
        self._pci = pci
        self._gpus = gpus
        self._branches = branches
        self._architectures = architectures
        self._packages = packages
        self._support = DriverSupport(architectures, branches)

    def install(self, at_least: str | None = None, reason: str = "") -> Fix:
        """Return the fix that installs or updates the driver.

        If no acceptable driver supports every GPU, the fix says so.

        Args:
            at_least: the oldest acceptable release; None if any release is acceptable.
            reason: why the driver is needed.
        """
        if self._system.jetson:
            return Fix(text=_OF_JETPACK)
        if conflict := self.conflict(at_least):
            return Fix(text=conflict)
        if self._system.os == "windows" and not at_least and not reason:
            return Fix(
                text=say(
                    "Install the driver that {page} offers for this GPU, then restart.",
                    page=DRIVER_PAGE,
                ),
                restart="machine",
            )
        driver = _because(self._wanted(at_least), reason)
        if self._system.wsl:
            return Fix(
                text=say(
                    "In Windows, install {driver} from {page}; then restart WSL from Windows. "
                    "Install no Linux driver inside WSL.",
                    driver=driver,
                    page=DRIVER_PAGE,
                ),
                commands=("wsl.exe --shutdown",),
            )
        if self._system.os == "windows":
            return Fix(
                text=say(
                    "Install {driver} from {page}, then restart.", driver=driver, page=DRIVER_PAGE
                ),
                restart="machine",
            )
        if self._container.runtime:
            return Fix(
                text=say(
                    "On the host, not in this container: install {driver}. A container uses the "
                    "driver of its host.",
                    driver=driver,
                )
            )
        return self._install_on_linux(at_least, reason)

    def _wanted(self, at_least: str | None) -> Sentence:
        """Return the driver to install where its source decides about the rest."""
        if at_least:
            return say("NVIDIA driver {release} or newer", release=at_least)
        branch = self.branch()
        if branch is None:
            return _ANY
        return say("an NVIDIA driver of branch {branch}", branch=branch)

    def reboot(self, why: str) -> Fix:
        """Return the fix that reboots the machine (or the host of this container)."""
        if self._container.runtime:
            text = say("Reboot the host of this container: {why}.", why=why)
            return Fix(text=text, restart="machine")
        return Fix(text=say("Reboot: {why}.", why=why), commands=("sudo reboot",))

    def branch(self, at_least: str | None = None) -> int | None:
        """Return the long-lived driver branch that supports every GPU of this machine.

        The branch is in the table, a long-term or production one, not past its end of life, and not
        older than ``at_least``. Of several it is the oldest, because every distribution packages
        it: Ubuntu had no R620 three weeks after its release. None if there is no such branch.
        """
        driving = set(self._driving_all(at_least))
        today = datetime.now(tz=timezone.utc).date()
        fitting = (
            int(row.branch)
            for row in self._branches.rows
            if row.kind in ("LTSB", "PB")
            and int(row.branch) in driving
            and self._branches.is_end_of_life(row.branch, today) is False
        )
        return min(fitting, default=None)

    def conflict(self, at_least: str | None = None) -> str:
        """Return why no driver of at least this release supports every GPU; "" if one is known to.

        Also "" if too little is known about the GPUs.
        """
        gpus = self._known_gpus()
        capabilities = set(gpus.values())
        unheard_of = any(not self._architectures.knows(capability) for capability in capabilities)
        if not gpus or unheard_of or self._system.jetson:
            return ""
        if not self._support.driving_all(capabilities):
            return say(
                "No driver branch is known to support all GPUs of this machine: {needs}. {apart}",
                needs=in_series(
                    [self._range(label, capability) for label, capability in gpus.items()]
                ),
                apart=_APART,
            )
        if not self._driving_all(at_least):
            last = self._support.last(capabilities)
            names = [
                label
                for label, capability in gpus.items()
                if self._support.last([capability]) == last
            ]
            return say(
                "No driver {release} or newer supports {gpus}: branch {branch} is the last that "
                "does. Use a PyTorch build that runs on an older driver, or another GPU.",
                release=at_least,
                gpus=listed(names),
                branch=last,
            )
        if self._system.os == "linux" and not self._system.wsl and self._flavours_conflict():
            return say(
                "No driver supports all GPUs of this machine: some need the open kernel modules, "
                "others the proprietary ones, and only one kind can be loaded. {apart}",
                apart=_APART,
            )
        return ""

    def wants_open_modules(self) -> bool | None:
        """Whether to use the open kernel modules, which support all GPUs; None if unknown."""
        opened, closed = self._flavours()
        if opened and opened <= {"required", "supported"}:
            return True
        if closed and closed <= {"required", "supported"}:
            return False
        return None

    def _install_on_linux(self, at_least: str | None, reason: str) -> Fix:
        branch = self.branch(at_least)
        opened = self.wants_open_modules()
        text = say(
            "Install {driver}, then reboot.",
            driver=self._on_linux(at_least, branch, reason),
        )
        if self._pci.nvswitches:
            return Fix(text=in_turn((text, _WITH_NVSWITCHES, DRIVER_GUIDE)), restart="machine")
        known = bool(self._capabilities())
        if self._system.distribution == "nixos" and known:
            return Fix(text=in_turn((text, _on_nixos(opened=opened))), restart="machine")
        if branch is None or opened is None:
            newest_only = None if known else self._newest_only(at_least, reason)
            return newest_only or Fix(text=in_turn((text, _GUIDE)), restart="machine")
        wanted = Wanted(branch=branch, opened=opened, newest=self._newest_drives_all())
        if commands := install_commands(self._system, wanted, self._packages):
            first = (_FROM_INSTALLER,) if self._may_be_from_installer() else ()
            return Fix(text=in_turn((text, *first)) if first else text, commands=commands)
        if newest_only := self._newest_only(at_least, reason):
            return newest_only
        flavour = (
            say("Use its open kernel modules.")
            if opened
            else say("Use its proprietary kernel modules.")
        )
        # NVIDIA's guide and its repositories have the current branches, and not every release.
        is_last = branch == self._support.last(self._capabilities())
        by_installer = (*self._packages_first(), _BY_INSTALLER, flavour)
        how = by_installer if is_last else (flavour, _GUIDE)
        return Fix(text=in_turn((text, *how)), restart="machine")

    def _newest_only(self, at_least: str | None, reason: str) -> Fix | None:
        """Return the fix where a distribution has the newest driver alone, and it may be right."""
        named = named_packages(self._system, self._packages)
        if named is None or (self._capabilities() and not self._newest_drives_all()):
            return None
        driver = say("NVIDIA driver {release} or newer", release=at_least) if at_least else _ANY
        text = say("Install {driver}, then reboot.", driver=_because(driver, reason))
        return Fix(text=in_turn((text, named)), restart="machine")

    def _packages_first(self) -> tuple[Sentence, ...]:
        """Say which packages of the driver go first: a distribution's keep the installer off."""
        packages = self._driver.packages
        if not packages:
            return ()
        return (
            say(
                "First remove the packages of the old driver ({packages}): NVIDIA's installer does "
                "not run beside them.",
                packages=in_series(packages),
            ),
        )

    def _may_be_from_installer(self) -> bool:
        """Whether a driver is loaded that no package has: its files would stay in the way."""
        return bool(self._driver.module_loaded) and self._driver.packages == []

    def _on_linux(self, at_least: str | None, branch: int | None, reason: str) -> Sentence:
        """Return the driver to install by the means of a distribution, and why."""
        driving = self._driving_all(at_least)
        if branch is not None:
            return _because(say("NVIDIA driver branch {branch}", branch=branch), reason)
        if driving and driving[-1] == self._support.last(self._capabilities()):
            return say(
                "NVIDIA driver branch {branch} (the last for this GPU, which NVIDIA no longer "
                "supports)",
                branch=driving[-1],
            )
        if at_least:
            named = say("NVIDIA driver {release} or newer", release=at_least)
        elif driving:
            named = say("NVIDIA driver branch {branch} or newer", branch=driving[0])
        else:
            named = _ANY
        return _because(named, reason)

    def _driving_all(self, at_least: str | None) -> list[int]:
        """Return the branches that support every GPU and are not older than a release, in order."""
        least = (self._branches.number_of(at_least) if at_least else None) or 0
        driving = self._support.driving_all(self._capabilities())
        return [branch for branch in driving if branch >= least]

    def _newest_drives_all(self) -> bool:
        """Whether the newest branch of the tables supports every GPU."""
        driving = self._driving_all(None)
        return bool(driving) and driving[-1] == max(int(row.branch) for row in self._branches.rows)

    def _range(self, gpu: str, capability: str) -> str:
        """Return in words which branches support a GPU."""
        first, last = self._support.first(capability), self._support.last([capability])
        if last is not None:
            return say("{gpu} needs branch {branch} or older", gpu=gpu, branch=last)
        if first is not None:
            return say("{gpu} needs branch {branch} or newer", gpu=gpu, branch=first)
        return say("{gpu} needs another one", gpu=gpu)

    def _flavours(self) -> tuple[set[Support | None], set[Support | None]]:
        """Return the support of the GPUs by the open, and by the proprietary kernel modules."""
        supports = [
            self._architectures.modules(gpu.compute_capability, gpu.product)
            if gpu.compute_capability
            else None
            for gpu in self._all_gpus()
        ]
        opened = {None if support is None else support.open for support in supports}
        closed = {None if support is None else support.proprietary for support in supports}
        return opened, closed

    def _flavours_conflict(self) -> bool:
        return self._architectures.share_no_modules(
            (gpu.compute_capability, gpu.product) for gpu in self._all_gpus()
        )

    def _known_gpus(self) -> dict[str, str]:
        """Return the known compute capabilities, each by the name of one GPU that has it."""
        first: dict[str, str] = {}
        for gpu in self._all_gpus():
            if gpu.compute_capability:
                first.setdefault(gpu.compute_capability, gpu.label)
        return {label: capability for capability, label in first.items()}

    def _capabilities(self) -> set[str]:
        return set(self._known_gpus().values())

    def _all_gpus(self) -> list[Gpu]:
        try:
            return self._gpus.on_bus()
        except UnknownFactError:
            return []


def _on_nixos(*, opened: bool | None) -> Sentence:
    """Say how NixOS gets a driver: by its configuration (https://wiki.nixos.org/wiki/Nvidia)."""
    if opened is None:
        return say(
            "On NixOS, set {package} to that driver in the configuration, and rebuild the system "
            "before you reboot.",
            package="hardware.nvidia.package",
        )
    return say(
        "On NixOS, set {package} to that driver and {modules} in the configuration, and rebuild "
        "the system before you reboot.",
        package="hardware.nvidia.package",
        modules=f"hardware.nvidia.open = {'true' if opened else 'false'}",
    )


def _because(driver: Sentence, reason: str) -> Sentence:
    return say("{driver} ({reason})", driver=driver, reason=reason) if reason else driver
