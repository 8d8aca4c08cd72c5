"""How to install, update or reload the NVIDIA driver of this machine."""

from datetime import datetime, timezone

from gpucheck.advice.driver_packages import Wanted, install_commands
from gpucheck.derived import Derived, Gpu, Gpus
from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Fix
from gpucheck.facts.container import Container
from gpucheck.facts.driver import Driver
from gpucheck.facts.pci import Pci
from gpucheck.facts.system import System
from gpucheck.tables.driver_branches import DriverBranches
from gpucheck.tables.driver_support import DriverSupport
from gpucheck.tables.gpu_architectures import GpuArchitectures, Support

DRIVER_PAGE = "https://www.nvidia.com/drivers"
DRIVER_GUIDE = "https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/"
CONTAINER_GUIDE = (
    "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/install-guide.html"
)
_APART = (
    "Choose the driver for the GPUs that you want to use; the others need a machine of their own."
)


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
    ) -> None:
        self._system = system
        self._container = container
        self._driver = driver
        self._pci = pci
        self._gpus = gpus
        self._branches = branches
        self._architectures = architectures
        self._support = DriverSupport(architectures, branches)

    def install(self, at_least: str | None = None, reason: str = "") -> Fix:
        """Return the fix that installs or updates the driver.

        If no acceptable driver supports every GPU, the fix says so.

        Args:
            at_least: the oldest acceptable release; None if any release is acceptable.
            reason: why the driver is needed.
        """
        if conflict := self.conflict(at_least):
            return Fix(text=conflict)
        branch = None if at_least else self.branch()
        need = f" {at_least} or newer" if at_least else f" of branch {branch}" if branch else ""
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
        return self._install_on_linux(at_least, because)

    def reboot(self, why: str) -> Fix:
        """Return the fix that reboots the machine (or the host of this container)."""
        if self._container.runtime:
            return Fix(text=f"Reboot the host of this container: {why}.")
        return Fix(text=f"Reboot: {why}.", commands=("sudo reboot",))

    def branch(self, at_least: str | None = None) -> int | None:
        """Return the long-lived driver branch that supports every GPU of this machine.

        The branch is in the table, not past its end of life, and not older than ``at_least``. The
        newest long-term branch comes first, because every distribution packages it, then the newest
        production branch. None if there is no such branch.
        """
        driving = set(self._driving_all(at_least))
        today = datetime.now(tz=timezone.utc).date()
        fitting = [
            (row.kind == "LTSB", int(row.branch))
            for row in self._branches.rows
            if row.kind in ("LTSB", "PB")
            and int(row.branch) in driving
            and self._branches.is_end_of_life(row.branch, today) is False
        ]
        return max(fitting)[1] if fitting else None

    def conflict(self, at_least: str | None = None) -> str:
        """Return why no driver of at least this release supports every GPU; "" if one is known to.

        Also "" if too little is known about the GPUs.
        """
        gpus = self._known_gpus()
        capabilities = set(gpus.values())
        unheard_of = any(not self._architectures.knows(one) for one in capabilities)
        if not gpus or unheard_of or self._system.jetson:
            return ""
        if not self._support.driving_all(capabilities):
            needs = "; ".join(f"{label} {self._range(one)}" for label, one in gpus.items())
            return f"No driver branch is known to drive all GPUs of this machine: {needs}. {_APART}"
        if not self._driving_all(at_least):
            last = self._support.last(capabilities)
            names = " and ".join(
                label for label, one in gpus.items() if self._support.last([one]) == last
            )
            return (
                f"No driver {at_least} or newer drives {names}: branch {last} is the last that "
                "does. Use a PyTorch that an older driver runs, or another GPU."
            )
        if self._system.os == "linux" and not self._system.wsl and self._flavours_conflict():
            return (
                "No driver drives all GPUs of this machine: some need the open kernel modules, "
                f"others the proprietary ones, and only one kind can be loaded. {_APART}"
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

    def _install_on_linux(self, at_least: str | None, because: str) -> Fix:
        branch = self.branch(at_least)
        opened = self.wants_open_modules()
        which = f"NVIDIA driver {at_least} or newer" if at_least else "NVIDIA driver"
        driving = self._driving_all(at_least)
        if branch is not None:
            which = f"NVIDIA driver branch {branch}"
        elif driving and driving[-1] == self._support.last(self._capabilities()):
            which = f"NVIDIA driver branch {driving[-1]}"
            because += " (the last for this GPU, which NVIDIA no longer supports)"
        elif driving and at_least is None:
            which = f"NVIDIA driver branch {driving[0]} or newer"
        text = f"Install {which}{because}, then reboot."
        if self._pci.nvswitches:
            return Fix(
                text=f"{text} This machine has NVSwitches: take the Fabric Manager of exactly the "
                f"same release from the same source, else CUDA does not start. {DRIVER_GUIDE}"
            )
        if branch is None or opened is None:
            return Fix(text=f"{text} NVIDIA's guide for each distribution: {DRIVER_GUIDE}")
        wanted = Wanted(branch=branch, opened=opened, newest=self._newest_drives_all())
        if commands := install_commands(self._system, wanted):
            return Fix(text=text, commands=commands)
        flavour = "open" if opened else "proprietary"
        return Fix(
            text=f"{text} Take its {flavour} kernel modules. "
            f"NVIDIA's guide for each distribution: {DRIVER_GUIDE}"
        )

    def _driving_all(self, at_least: str | None) -> list[int]:
        """Return the branches that support every GPU and are not older than a release, in order."""
        least = (self._branches.number_of(at_least) if at_least else None) or 0
        driving = self._support.driving_all(self._capabilities())
        return [branch for branch in driving if branch >= least]

    def _newest_drives_all(self) -> bool:
        """Whether the newest branch of the tables supports every GPU."""
        driving = self._driving_all(None)
        return bool(driving) and driving[-1] == max(int(row.branch) for row in self._branches.rows)

    def _range(self, capability: str) -> str:
        """Return in words which branches support a GPU."""
        first, last = self._support.first(capability), self._support.last([capability])
        if last is not None:
            return f"needs branch {last} or older"
        return f"needs branch {first} or newer" if first is not None else "needs another one"

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
        return all("unsupported" in found for found in self._flavours())

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
