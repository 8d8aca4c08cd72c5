"""The driver as a whole: its release, the CUDA it supports, whether it serves the GPUs."""

import re
from collections.abc import Callable, Iterable

from gpucheck.derived.gpus import Gpu, Gpus
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.base import Derived
from gpucheck.facts.driver import CudaDriver, Driver, NvidiaSmi, Nvml
from gpucheck.facts.system import Container, System
from gpucheck.language import say
from gpucheck.tables.driver import DriverBranches
from gpucheck.tables.error_codes import CudaErrors, NvmlErrors
from gpucheck.tables.jetson import Jetpacks
from gpucheck.tables.versions import compare, parse

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
        jetpacks: Jetpacks,
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
        self._jetpacks = jetpacks
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
        then nvidia-smi, and last the tables of JetPack releases and of driver branches.

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
        of_board = self._jetpacks.cuda_of_driver(release) if self._system.jetson else None
        return known(of_board or self._branches.cuda_of(release), "nvml.cuda"), fact


# Whether driver and GPUs meet the requirement of a container image (``NVIDIA_REQUIRE_CUDA``).

_CONDITION = r"([a-z]{1,16})(>=|<=|!=|=|<|>)([A-Za-z0-9.]{1,32})"
_CUT = 4096
"""Number of characters kept of a variable: the end of a longer one is unknown."""
_BRANDS = {
    "geforce": ("geforce", "geforcertx"),
    "tesla": ("tesla",),
    "titan": ("titan", "titanrtx"),
}
"""Words in product names that show the brand, and the brands that NVML may report."""


class ImageRequirement(Derived):
    """The requirement as alternatives, each a list of conditions that must all hold."""

    def __init__(self, container: Container, driver: DriverState, gpus: Gpus) -> None:
        text = container.requirements or ""
        self._alternatives = [words.split(",") for words in text.split()]
        self._is_cut = len(text) >= _CUT
        self._driver = driver
        self._gpus = gpus

    def holds(self) -> bool | None:
        """Whether some alternative holds; None if an unknown value decides."""
        found = [_all(map(self._condition, words)) for words in self._alternatives]
        if True in found:
            return True
        return None if None in found or self._is_cut else False

    def unknown(self) -> str:
        """Return which condition could not be evaluated."""
        for words in self._alternatives:
            if _all(map(self._condition, words)) is None:
                unclear = next(word for word in words if self._condition(word) is None)
                return say("{unclear} cannot be judged", unclear=unclear[:60])
        return say("the requirement is too long and was cut off")

    def least_cuda(self) -> str | None:
        """Return the lowest CUDA that an alternative without other conditions requires: 12.4."""
        asked = [
            found[3]
            for words in self._alternatives
            if len(words) == 1 and (found := re.fullmatch(_CONDITION, words[0]))
            if found[1] == "cuda" and found[2] in (">=", "=") and parse(found[3])
        ]
        return min(asked, key=lambda cuda: parse(cuda) or (), default=None)

    def driver(self) -> str:
        """Return a description of the driver."""
        release, cuda = _known(self._driver.release), _known(self._driver.cuda)
        if cuda and release:
            return say("driver {release} supports CUDA up to {cuda}", release=release, cuda=cuda)
        if cuda:
            return say("the driver supports CUDA up to {cuda}", cuda=cuda)
        if release:
            return say("this is driver {release}", release=release)
        return say("the release of the driver is unknown")

    def facts(self) -> tuple[str, ...]:
        """Return the facts of the driver that decide."""
        asks = (self._driver.release_fact, self._driver.cuda_fact)
        return tuple(dict.fromkeys(fact for ask in asks if (fact := _known(ask))))

    def _condition(self, words: str) -> bool | None:
        found = re.fullmatch(_CONDITION, words)
        if found is None:
            return None
        subject, operator, value = found.groups()
        if subject == "cuda":
            return _compared(_known(self._driver.cuda), operator, value)
        if subject == "driver":
            return _compared(_known(self._driver.release), operator, value)
        if subject == "arch":
            return _same(
                _compared(gpu.compute_capability, operator, value) for gpu in self._every_gpu()
            )
        if subject == "brand" and operator in ("=", "!="):
            is_it = _same(_is_brand(gpu, value.lower()) for gpu in self._every_gpu())
            return is_it if operator == "=" or is_it is None else not is_it
        return None

    def _every_gpu(self) -> list[Gpu]:
        try:
            return self._gpus.all()
        except UnknownFactError:
            return []


def _all(answers: Iterable[bool | None]) -> bool | None:
    """Return whether all hold: a False decides first, then an unknown one."""
    found = list(answers)
    if False in found:
        return False
    return None if None in found else True


def _same(answers: Iterable[bool | None]) -> bool | None:
    """Return the common answer of all GPUs, None if they differ or there is no GPU."""
    found = set(answers)
    return found.pop() if len(found) == 1 else None


def _compared(have: str | None, operator: str, wanted: str) -> bool | None:
    left, right = parse(have), parse(wanted)
    if left is None or right is None:
        return None
    if len(left) == 1 < len(right) and left == right[:1]:
        return None  # "535" alone may be older or newer than 535.54
    order = compare(left, right)
    return {
        "=": order == 0,
        "!=": order != 0,
        "<": order < 0,
        "<=": order <= 0,
        ">": order > 0,
        ">=": order >= 0,
    }[operator]


def _is_brand(gpu: Gpu, wanted: str) -> bool | None:
    """Return whether a GPU is of a brand, by its name: some drivers call the A100 Tesla."""
    if not gpu.has_product or wanted == "unknown":
        return None
    words = gpu.product.lower().split()
    for word, brands in _BRANDS.items():
        if word in words:
            return None if wanted in brands and len(brands) > 1 else wanted in brands
    return None


def _known(ask: Callable[[], str]) -> str | None:
    try:
        return ask()
    except UnknownFactError:
        return None
