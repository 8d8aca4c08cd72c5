"""Whether the installed driver can support a GPU that it does not list: branch and modules."""

import re

import msgspec

from gpucheck.derived import Derived, DriverState, Gpu, Gpus
from gpucheck.facts import UnknownFactError
from gpucheck.facts.driver import CudaDriver, Driver, KernelLog, Nvml
from gpucheck.facts.system import Pci
from gpucheck.language import say
from gpucheck.tables.driver import DriverBranches, DriverSupport
from gpucheck.tables.gpus import GpuArchitectures

_NEEDS_OPEN = "requires use of the NVIDIA open kernel modules"
_NEEDS_PROPRIETARY = "not supported by open"
_LEGACY = r"supported through the NVIDIA ([0-9]{2,4})\.xx Legacy"


class Unsupported(msgspec.Struct, frozen=True, kw_only=True):
    """A GPU that the driver cannot support, why, and the facts that prove it.

    ``branch`` is the last branch that supports the GPU if the driver is too new for it, and the
    first one if the driver is too old. It is None if the kernel modules have the wrong flavour.
    """

    gpu: Gpu
    why: str
    kind: str
    branch: int | None = None
    facts: tuple[str, ...] = ()


class GpuSupport(Derived):
    """Judges each GPU on the bus that NVML does not list; a listed GPU needs no table."""

    def __init__(  # noqa: PLR0913, PLR0917  # the driver, the bus, the log and two tables
        self,
        pci: Pci,
        nvml: Nvml,
        cuda_driver: CudaDriver,
        driver: Driver,
        log: KernelLog,
        gpus: Gpus,
        state: DriverState,
        branches: DriverBranches,
        architectures: GpuArchitectures,
    ) -> None:
        self._pci = pci
        self._nvml = nvml
        self._cuda = cuda_driver
        self._driver = driver
        self._log = log
        self._gpus = gpus
        self._state = state
        self._branches = branches
        self._support = DriverSupport(architectures, branches)
        self._architectures = architectures

    def unserved(self) -> list[Gpu]:
        """Return the GPUs on the bus that do not occur in any answer of the driver."""
        on_bus = self._gpus.on_bus()
        listed = self._nvml.gpus or []
        if len(listed) >= len(on_bus) or (self._cuda.device_count or 0) >= len(on_bus):
            return []
        addresses = {gpu.pci_address for gpu in listed}
        if None in addresses:
            return []
        return [gpu for gpu in on_bus if gpu.pci_address not in addresses]

    def unsupported(self) -> list[Unsupported]:
        """Return the unserved GPUs that the driver cannot support.

        Raises:
            UnknownFactError: there are unserved GPUs, and the driver's release is unknown.
        """
        gpus = self.unserved()
        if not gpus:
            return []
        by_log = [found for gpu in gpus if (found := self._by_log(gpu)) is not None]
        judged = {found.gpu.pci_address for found in by_log}
        left = [gpu for gpu in gpus if gpu.pci_address not in judged and not self._is_dropped(gpu)]
        by_flavour = [found for gpu in left if (found := self._by_flavour(gpu)) is not None]
        judged |= {found.gpu.pci_address for found in by_flavour}
        left = [gpu for gpu in gpus if gpu.pci_address not in judged and gpu.compute_capability]
        if not left:
            return by_log + by_flavour
        by_branch = [found for gpu in left if (found := self._by_branch(gpu)) is not None]
        return by_log + by_flavour + by_branch

    def _by_branch(self, gpu: Gpu) -> Unsupported | None:
        capability = gpu.compute_capability or ""
        release, cuda, fact = self._installed()
        drives = self._support.drives(capability, release=release, cuda=cuda)
        facts = (fact, *gpu.facts)
        what = (
            say("{release} is installed", release=release)
            if release
            else say("the installed one supports CUDA up to {cuda}", cuda=cuda)
        )
        if drives == "dropped":
            last = self._support.last([capability])
            why = say(
                "branch {branch} is the last that supports it, and {what}", branch=last, what=what
            )
            if self._lacks_modules_for(gpu, release):
                why = say(
                    "branch {branch} is the last that supports it, and {what}, whose packages have "
                    "only the open kernel modules",
                    branch=last,
                    what=what,
                )
            return Unsupported(gpu=gpu, why=why, kind="dropped", branch=last, facts=facts)
        if drives == "too-old":
            first = self._support.first(capability)
            why = say(
                "branch {branch} is the first that supports it, and {what}", branch=first, what=what
            )
            return Unsupported(gpu=gpu, why=why, kind="too-new", branch=first, facts=facts)
        return None

    def _is_dropped(self, gpu: Gpu) -> bool:
        """Whether the installed branch has dropped the GPU: no kernel modules of it would help."""
        try:
            release, cuda, _fact = self._installed()
        except UnknownFactError:
            return False
        drives = self._support.drives(gpu.compute_capability or "", release=release, cuda=cuda)
        return drives == "dropped"

    def _installed(self) -> tuple[str | None, str | None, str]:
        """Return the driver's release, or the CUDA that it reports, and the fact that has it."""
        try:
            release, fact = self._state.any_release()
        except UnknownFactError:
            if not self._state.reports_cuda():
                raise
            return None, self._state.cuda(), self._state.cuda_fact()
        return release, None, fact

    def _lacks_modules_for(self, gpu: Gpu, release: str | None) -> bool:
        if release is None or not self._branches.is_open_only(release):
            return False
        modules = self._architectures.modules(gpu.compute_capability or "")
        return modules is not None and modules.open == "unsupported"

    def _by_flavour(self, gpu: Gpu) -> Unsupported | None:
        flavour = self._driver.module_flavour
        if not flavour or not gpu.compute_capability:
            return None
        product = gpu.product if gpu.has_product else None
        modules = self._architectures.modules(gpu.compute_capability, product)
        if modules is None:
            return None
        facts = ("driver.module_flavour", *gpu.facts)
        apart = self._architectures.share_no_modules(
            (other.compute_capability, other.product if other.has_product else None)
            for other in self._gpus.on_bus()
        )
        if flavour == "open" and modules.open == "unsupported":
            why = _PROPRIETARY_ALONE if apart else _PROPRIETARY_ONLY
            return Unsupported(gpu=gpu, why=why, kind="flavour", facts=facts)
        if flavour == "proprietary" and modules.proprietary == "unsupported":
            why = _OPEN_ALONE if apart else _OPEN_ONLY
            return Unsupported(gpu=gpu, why=why, kind="flavour", facts=facts)
        return None

    def _by_log(self, gpu: Gpu) -> Unsupported | None:
        """Read the driver's own messages, which span several lines of the log.

        They begin with the address of the GPU, or with its name.
        """
        lines = self._log.nvrm or []
        address = gpu.pci_address.partition(":")[2]
        product = gpu.product.removeprefix("NVIDIA ") if gpu.has_product else ""
        for at, line in enumerate(lines):
            if not any(name and name in line for name in (address, product)):
                continue
            words = " ".join(part.partition("NVRM:")[2] or part for part in lines[at : at + 4])
            words = " ".join(words.split())  # a sentence is cut where a line ends, and indented
            facts = ("kernel_log.nvrm", *gpu.facts)
            if _NEEDS_OPEN in words:
                return Unsupported(gpu=gpu, why=_OPEN_ONLY, kind="flavour", facts=facts)
            if _NEEDS_PROPRIETARY in words:
                return Unsupported(gpu=gpu, why=_PROPRIETARY_ONLY, kind="flavour", facts=facts)
            if (legacy := re.search(_LEGACY, words)) is not None:
                branch = int(legacy[1])
                why = say(
                    "the driver says that branch {branch} is the last that supports it",
                    branch=branch,
                )
                return Unsupported(gpu=gpu, why=why, kind="dropped", branch=branch, facts=facts)
        return None


_OPEN_ONLY = say(
    "this GPU works only with the open kernel modules, and the proprietary ones are installed"
)
_PROPRIETARY_ONLY = say(
    "this GPU works only with the proprietary kernel modules, and the open ones are installed"
)
_OPEN_ALONE = say(
    "it works only with the open kernel modules, and another GPU here only with the proprietary "
    "ones"
)
_PROPRIETARY_ALONE = say(
    "it works only with the proprietary kernel modules, and another GPU here only with the open "
    "ones"
)
