"""The loaded kernel module and the driver's libraries are of different releases.

Symptoms: nvidia-smi says "Failed to initialize NVML: Driver/library version mismatch" (NVML error
18), and CUDA returns 803 (cudaErrorSystemDriverMismatch): "system has unsupported display driver /
cuda driver combination". PyTorch says "Unexpected error from cudaGetDeviceCount()", and
``torch.cuda.is_available()`` is False.

Causes: mostly the driver was updated, often automatically, and the old module stays loaded until a
restart. Less often, two drivers are installed and the loader takes the wrong libcuda, an image has
driver libraries of its own, or a cuda-compat library is older than the driver.

When it is reported: a cuda-compat library that is newer than the module is meant to differ and is
not a fault.

Fix: restart, or reload the modules while nothing uses the GPU. You need not install a driver.
"""

from gpucheck.advice import DriverFixes
from gpucheck.advice.kernel_module import ModuleFixes
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import CudaDriver, Driver, DriverLibrary, NvidiaSmi, Nvml
from gpucheck.facts.system import System
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays
from gpucheck.language import Sentence, say
from gpucheck.tables.versions import compare, parse

RULE = Rule(
    __name__,
    title=say("the kernel module and the driver libraries differ"),
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    compat_keys=("cuda_error", "nvml_error"),
    preflight=InPreflight(drains_node=True),
)

_NVML_MISMATCH = 18  # NVML_ERROR_LIB_RM_VERSION_MISMATCH
_CUDA_MISMATCH = 803  # CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
_COMPAT_REFUSED = 804  # CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
_MESSAGE = "Driver/library version mismatch"


@RULE.check
def check(  # noqa: PLR0913, PLR0917  # both sides of the driver, and both ways to ask it
    driver: Driver,
    nvml: Nvml,
    cuda: CudaDriver,
    smi: NvidiaSmi,
    system: System,
    around: Surroundings,
    update: DriverFixes,
    modules: ModuleFixes,
    says: SelfTestSays,
) -> Judgement:
    """Take the driver's own error; if it could not be asked, compare the releases."""
    if system.wsl:
        return NotApplicable(say("in WSL the module and the libraries both come from Windows"))
    quoted = _driver_facts(nvml, cuda, smi) + says.points_at(RULE.slug)
    at = _first(driver.libcuda)
    library = driver.libcuda[at] if driver.libcuda and at is not None else None
    differ = _differ(driver.module_release, library)
    if not quoted and nvml.init_code == 0 and cuda.init_code != _COMPAT_REFUSED:
        return Fine(say("the driver responds"))
    if cuda.init_code == 0 and not says.points_at(RULE.slug):
        return Fine(say("CUDA starts"))
    if cuda.init_code == _COMPAT_REFUSED and differ:
        quoted = ("cuda_driver.init_code",)
    if not quoted and not differ:
        return _nothing(driver, library)
    shown = ("driver.module_release", f"driver.libcuda.{at}.release") if differ else ()
    return Hit(
        headline=_headline(driver, library if differ else None),
        evidence=(*quoted, *shown),
        fixes=_fixes(driver, library if differ else None, around, update, modules, system),
        confidence=Confidence.CERTAIN if quoted else Confidence.LIKELY,
    )


def _driver_facts(nvml: Nvml, cuda: CudaDriver, smi: NvidiaSmi) -> tuple[str, ...]:
    facts = []
    if nvml.init_code == _NVML_MISMATCH:
        facts.append("nvml.init_code")
    if cuda.init_code == _CUDA_MISMATCH:
        facts.append("cuda_driver.init_code")
    if _MESSAGE in (smi.message or ""):
        facts.append("nvidia_smi.message")
    return tuple(facts)


def _first(libraries: list[DriverLibrary] | None) -> int | None:
    """Return the index of the libcuda that is loaded; stubs are judged by another rule."""
    if not libraries or libraries[0].kind not in ("driver", "compat"):
        return None
    return 0


def _differ(module: str | None, library: DriverLibrary | None) -> bool:
    """Whether both releases are known and do not work together."""
    loaded, installed = parse(module), parse(library.release if library else None)
    if not loaded or not installed or library is None:
        return False
    order = compare(installed, loaded)
    return order < 0 if library.kind == "compat" else order != 0


def _nothing(driver: Driver, library: DriverLibrary | None) -> Judgement:
    if driver.module_loaded is False:
        return NotApplicable(say("no kernel module is loaded"))
    if library is None or not library.release or not driver.module_release:
        return Fine(say("nothing shows that the releases differ"))
    return Fine(
        say(
            "the kernel module {module} and libcuda {libcuda} are compatible",
            module=driver.module_release,
            libcuda=library.release,
        )
    )


def _headline(driver: Driver, library: DriverLibrary | None) -> Sentence:
    if library is None or not driver.module_release:
        return say("NVML and the loaded kernel module come from different driver versions")
    if library.kind == "compat":
        return say(
            "The loaded kernel module is {module}, but the cuda-compat library that programs load "
            "is {library}",
            module=driver.module_release,
            library=library.release,
        )
    return say(
        "The loaded kernel module is {module}, but the libcuda that programs load is {library}",
        module=driver.module_release,
        library=library.release,
    )


def _fixes(
    driver: Driver,
    library: DriverLibrary | None,
    around: Surroundings,
    update: DriverFixes,
    modules: ModuleFixes,
    system: System,
) -> tuple[Fix, ...]:
    if library is not None and (wrong := _wrong_library(driver, library, around)) is not None:
        return (wrong,)
    if around.in_container():
        return (
            Fix(
                text=say(
                    "Restart this container, so that it gets the libraries of the driver that runs "
                    "now. If nvidia-smi says the same on the host, restart the host first. An "
                    "image must not have driver libraries of its own."
                ),
                restart="container",
            ),
        )
    reboot = update.reboot(say("this loads the module of the installed release"))
    return (reboot,) if system.os == "windows" else (reboot, modules.reload())


def _wrong_library(driver: Driver, library: DriverLibrary, around: Surroundings) -> Fix | None:
    """Return the fix where a restart would not help: the loader takes the wrong library."""
    others = [libcuda.release for libcuda in driver.libcuda or () if libcuda.kind == "driver"]
    if library.kind != "compat" and driver.module_release not in others:
        return None
    folder = (library.path or "").rpartition("/")[0]
    commands = around.path_without("LD_LIBRARY_PATH", {folder}) if folder else ()
    if commands:
        return Fix(text=_out_of_path(library, folder), commands=commands)
    return Fix(text=_remove(library), commands=("sudo ldconfig",))


def _out_of_path(library: DriverLibrary, folder: str) -> Sentence:
    if library.kind == "compat":
        return say(
            "Remove {folder} from LD_LIBRARY_PATH: the libcuda in it is older than the driver.",
            folder=folder,
        )
    return say(
        "Remove {folder} from LD_LIBRARY_PATH: another driver left the libcuda in it.",
        folder=folder,
    )


def _remove(library: DriverLibrary) -> Sentence:
    path = library.path or say("that library")
    if library.kind == "compat":
        return say(
            "Remove {path}, or the package that owns it: it is older than the driver, and the "
            "loader finds it before the right one. Then refresh the loader's cache.",
            path=path,
        )
    return say(
        "Remove {path}, or the package that owns it: another driver left it, and the loader finds "
        "it before the right one. Then refresh the loader's cache.",
        path=path,
    )
