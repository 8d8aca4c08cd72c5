"""How to install, update or reload the NVIDIA driver of this machine."""

from datetime import datetime, timezone

from gpucheck.facts import UnknownFactError
from gpucheck.findings import Fix
from gpucheck.probes.container import Container
from gpucheck.probes.driver import Driver
from gpucheck.probes.pci import Pci
from gpucheck.probes.system import System
from gpucheck.tables.driver_branches import DriverBranches
from gpucheck.tables.gpu_architectures import GpuArchitectures
from gpucheck.tables.versions import parse
from gpucheck.views import Gpu, Gpus, View

DRIVER_PAGE = "https://www.nvidia.com/drivers"
DRIVER_GUIDE = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
CONTAINER_GUIDE = (
    "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"
)


class DriverRemedies(View):
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
    ) -> None:
        self._system = system
        self._container = container
        self._driver = driver
        self._pci = pci
        self._gpus = gpus
        self._branches = branches
        self._architectures = architectures

    def install(self, at_least: str | None = None, reason: str = "") -> Fix:
        """Return the fix that installs or updates the driver.

        ``at_least`` is the oldest release that will do, None when any will.
        """
        need = f" {at_least} or newer" if at_least else ""
        because = f" ({reason})" if reason else ""
        if self._system.wsl:
            return Fix(
                text=f"Install NVIDIA driver{need} in Windows{because}, from {DRIVER_PAGE}; then "
                "restart WSL from Windows. Install no Linux driver inside WSL.",
                commands=("wsl.exe --shutdown",),
            )
        if self._system.os == "windows":
            return Fix(text=f"Install NVIDIA driver{need}{because} from {DRIVER_PAGE}, restart.")
        if self._container.runtime:
            return Fix(
                text=f"On the host, not in this container: install NVIDIA driver{need}{because}. "
                "A container uses the driver of its host."
            )
        return self._install_on_linux(at_least, need, because)

    def reboot(self, why: str) -> Fix:
        """Return the fix that reboots the machine (or the host of this container)."""
        if self._container.runtime:
            return Fix(text=f"Reboot the host of this container: {why}.")
        return Fix(text=f"Reboot: {why}.", commands=("sudo reboot",))

    def branch(self, at_least: str | None = None) -> int | None:
        """Return the long-lived driver branch that supports every GPU of this machine.

        A branch of the table that is not past its end of life, drives all of the GPUs and is not
        older than ``at_least``: the newest long-term one, which every distribution packages, else
        the newest production one; None when none is.
        """
        capabilities = [
            gpu.compute_capability for gpu in self._all_gpus() if gpu.compute_capability
        ]
        firsts = [self._architectures.first_driver_branch(one) or 0 for one in capabilities]
        lasts = [
            last for one in capabilities if (last := self._architectures.last_driver_branch(one))
        ]
        least = max((parse(at_least) or (0,))[0], *firsts, 0)
        today = datetime.now(tz=timezone.utc).date()
        fitting = [
            (row.kind == "LTSB", int(row.branch))
            for row in self._branches.rows
            if row.kind in ("LTSB", "PB")
            and row.branch.isdigit()
            and self._branches.is_end_of_life(row.branch, today) is False
            and least <= int(row.branch) <= min(lasts, default=int(row.branch))
        ]
        return max(fitting)[1] if fitting else None

    def wants_open_modules(self) -> bool | None:
        """Whether to take the open kernel modules, which drive all GPUs; None when unknown."""
        supports = [
            self._architectures.modules(gpu.compute_capability, gpu.product)
            if gpu.compute_capability
            else None
            for gpu in self._all_gpus()
        ]
        opened = {None if support is None else support.open for support in supports}
        closed = {None if support is None else support.proprietary for support in supports}
        if opened and opened <= {"required", "supported"}:
            return True
        if closed and closed <= {"required", "supported"}:
            return False
        return None

    def _install_on_linux(self, at_least: str | None, need: str, because: str) -> Fix:
        branch = self.branch(at_least)
        opened = self.wants_open_modules()
        which = f"NVIDIA driver{need}"
        if branch is not None:
            which = f"NVIDIA driver branch {branch}"
        text = f"Install {which}{because}, then reboot."
        if branch is None and at_least is None and (last := self._last_branch()) is not None:
            which = f"NVIDIA driver branch {last}"
            because += " (the last for this GPU, which NVIDIA no longer supports)"
            text = f"Install {which}{because}, then reboot."
        if self._pci.nvswitches:
            return Fix(
                text=f"{text} This machine has NVSwitches: take the Fabric Manager of exactly the "
                f"same release from the same source, else CUDA does not start. {DRIVER_GUIDE}"
            )
        if branch is None or opened is None or self._system.distribution is None:
            return Fix(text=f"{text} NVIDIA's guide for each distribution: {DRIVER_GUIDE}")
        package = f"nvidia-driver-{branch}{'-open' if opened else ''}"
        if self._system.distribution in ("ubuntu", "linuxmint"):
            return Fix(
                text=text,
                commands=(
                    "sudo apt-get update",
                    f"sudo apt-get install -y {package}",
                    "sudo reboot",
                ),
            )
        flavour = "open" if opened else "proprietary"
        return Fix(
            text=f"{text} Take its {flavour} kernel modules. "
            f"NVIDIA's guide for each distribution: {DRIVER_GUIDE}"
        )

    def _last_branch(self) -> int | None:
        """Return the last branch that drives every GPU; None where there is no end to them."""
        lasts = [
            self._architectures.last_driver_branch(gpu.compute_capability)
            for gpu in self._all_gpus()
            if gpu.compute_capability
        ]
        return min((last for last in lasts if last), default=None)

    def _all_gpus(self) -> list[Gpu]:
        try:
            return self._gpus.on_bus()
        except UnknownFactError:
            return []
