"""The driver as a whole: its release, the CUDA it supports, whether it serves the GPUs."""

from gpucheck.derived.base import Derived
from gpucheck.derived.gpus import Gpus
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.driver import CudaDriver, Driver, NvidiaSmi, Nvml
from gpucheck.facts.system import Container, System
from gpucheck.language import say
from gpucheck.tables.driver import DriverBranches
from gpucheck.tables.error_codes import CudaErrors, NvmlErrors

_NO_DEVICE = 100
"""The result of ``cuInit`` if a mask, or anything else, hides every GPU."""
_STUB = 34  # CUDA_ERROR_STUB_LIBRARY


class DriverState(Derived):
    """The driver as a whole: its release, the CUDA it supports, whether it serves the GPUs."""

    def __init__(  # noqa: PLR0913, PLR0917  # every section that may describe the driver
        self,
        driver: Driver,
        nvml: Nvml,
        cuda_driver: CudaDriver,
        smi: NvidiaSmi,
        system: System,
        container: Container,
        gpus: Gpus,
        branches: DriverBranches,
        nvml_errors: NvmlErrors,
        cuda_errors: CudaErrors,
    ) -> None:
        self._driver = driver
        self._nvml = nvml
        self._cuda = cuda_driver
        self._smi = smi
        self._system = system
        self._container = container
        self._gpus = gpus
        self._branches = branches
        self._nvml_errors = nvml_errors
        self._cuda_errors = cuda_errors

    def release(self) -> str:
        """Return the release of the running driver (on WSL: of the Windows driver).

        Raises:
            UnknownFactError: no source has it.
        """
        return self._release()[0]

    def release_fact(self) -> str:
        """Return the path of the fact that contains the release."""
        return self._release()[1]

    def cuda(self) -> str:
        """Return the CUDA version that the driver supports, such as ``12.2``.

        ``libcuda`` itself comes first, because a cuda-compat library raises the version; then NVML,
        then nvidia-smi, and last the table of driver branches.

        Raises:
            UnknownFactError: no source has it.
        """
        return self._cuda_version()[0]

    def cuda_fact(self) -> str:
        """Return the path of the fact that contains the CUDA version."""
        return self._cuda_version()[1]

    def reports_cuda(self) -> bool:
        """Whether the driver itself reported which CUDA it supports (not the table)."""
        return bool(self._cuda.cuda or self._nvml.cuda or self._smi.cuda)

    def unread_compat(self) -> str:
        """Return why the CUDA version of the loaded cuda-compat library is unknown, else ""."""
        asked = self._cuda.cuda is not None or self._cuda.init_code is not None
        if asked or "compat" not in (self._cuda.library or "").split("/"):
            return ""
        return self._cuda.problem("cuda")

    def serves(self) -> bool:
        """Whether the driver answers for at least one GPU, hidden by a mask or not.

        False only if a rule names the reason: an unexplained failure must leave the question open.

        Raises:
            UnknownFactError: neither NVML nor libcuda answered, or their answers prove nothing.
        """
        if self._cuda.init_code == 0 and self._cuda.device_count:
            return True
        if self._cuda.init_code not in (0, None, _NO_DEVICE):
            return self._explained("cuda_driver.init_code", self._cuda.init_code)
        if (self._nvml.gpus and self._nvml.init_code in (0, None)) or self._smi.gpu_names:
            return self._unmasked()
        if self._nvml.init_code == 0 and self._nvml.gpus == []:
            if self._container.runtime:
                return False  # container-no-gpu judges whether it should have one
            raise UnknownFactError("nvml.gpus", say("NVML answers but lists no GPU"))
        if self._nvml.init_code not in (0, None):
            return self._explained("nvml.init_code", self._nvml.init_code)
        if self._nvml.library_found is False and self._cuda.library == "":
            return False
        reason = self._nvml.problem("init_code") or self._cuda.problem("init_code")
        raise UnknownFactError("nvml.init_code", reason)

    def works(self) -> bool:
        """Whether CUDA was seen to start; rules about starting it must not contradict this."""
        return self._cuda.init_code == 0

    def has_libcuda(self) -> bool:
        """Whether the driver's libcuda exists; stubs and cuda-compat do not count.

        Raises:
            UnknownFactError: the library folders could not be read.
        """
        if self._cuda.library and self._cuda.init_code not in (None, _STUB):
            return True
        libraries = known(self._driver.libcuda, "driver.libcuda")
        return any(library.kind not in ("stub", "compat") for library in libraries)

    def any_release(self) -> tuple[str, str]:
        """Return the running release, or that of the installed libraries, and its fact.

        Raises:
            UnknownFactError: no source has it.
        """
        try:
            return self._release()
        except UnknownFactError:
            for at, library in enumerate(self._driver.libcuda or ()):
                if library.kind == "driver" and library.release:
                    return library.release, f"driver.libcuda.{at}.release"
            raise

    def _explained(self, fact: str, code: int | None) -> bool:
        """Return False for a code that belongs to a finding; otherwise leave the question open."""
        table = self._cuda_errors if fact.startswith("cuda") else self._nvml_errors
        row = table.error(code or 0)
        if row is not None and row.slugs:
            return False
        raise UnknownFactError(fact, say("error {code}, for which no cause was found", code=code))

    def _unmasked(self) -> bool:
        """Answer for GPUs that NVML or nvidia-smi lists; a mask may hide them from cuInit.

        Their answer is not enough if libcuda could not be loaded, hung or crashed.
        """
        if self._cuda.init_code != _NO_DEVICE and self._cuda.device_count != 0:
            why = self._cuda.problem("init_code") if self._cuda.init_code is None else ""
            if why and (self._cuda.library == "" or why.startswith(("timed-out", "crashed"))):
                raise UnknownFactError("cuda_driver.init_code", why)
            return True
        mask = self._gpus.mask()
        if mask.kind != "unset" and not mask.chosen:
            return True
        raise UnknownFactError("cuda_driver.init_code", say("NVML lists GPUs, libcuda sees none"))

    def installed(self) -> bool:
        """Whether user-space driver libraries are installed (stubs do not count).

        Raises:
            UnknownFactError: the library folders could not be read.
        """
        if self._nvml.library_found or self._nvml.init_code == 0:
            return True
        libraries = known(self._driver.libcuda, "driver.libcuda")
        return any(library.kind in ("driver", "wsl") for library in libraries) or any(
            library.kind in ("driver", "wsl") for library in self._driver.libnvidia_ml or ()
        )

    def _release(self) -> tuple[str, str]:
        for value, fact in (
            (self._nvml.driver_release, "nvml.driver_release"),
            (self._driver.module_release, "driver.module_release"),
            (self._smi.driver_release, "nvidia_smi.driver_release"),
        ):
            if value:
                return value, fact
        raise UnknownFactError(
            "nvml.driver_release", self._nvml.problem("driver_release") or say("no driver runs")
        )

    def _cuda_version(self) -> tuple[str, str]:
        for value, fact in (
            (self._cuda.cuda, "cuda_driver.cuda"),
            (self._nvml.cuda, "nvml.cuda"),
            (self._smi.cuda, "nvidia_smi.cuda"),
        ):
            if value:
                return value, fact
        release, fact = self._release()
        return known(self._branches.cuda_of(release), "nvml.cuda"), fact
