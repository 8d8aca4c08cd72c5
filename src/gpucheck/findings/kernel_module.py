"""The driver's kernel module: not loaded, of another release, or not for this GPU."""

from gpucheck.advice import DriverFixes
from gpucheck.advice.driver import DRIVER_PAGE
from gpucheck.advice.kernel_module import ModuleFixes
from gpucheck.derived import DriverState, Gpus
from gpucheck.derived.gpu_support import GpuSupport, Unsupported
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import CudaDriver, Driver, DriverLibrary, NvidiaSmi, Nvml
from gpucheck.facts.request import Request
from gpucheck.facts.system import Pci, System
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays
from gpucheck.language import Sentence, in_turn, say
from gpucheck.tables.compilers import CubinRules, Runs
from gpucheck.tables.versions import compare, parse

KERNEL_MODULE_NOT_LOADED = Rule(
    "kernel-module-not-loaded",
    page="""\
The NVIDIA driver is installed, but its kernel module is not loaded.

Symptoms: nvidia-smi says "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA
driver. Make sure that the latest NVIDIA driver is installed and running." NVML returns 9 (driver
not loaded), /proc/driver/nvidia does not exist, and PyTorch says "Found no NVIDIA driver on your
system".

Causes, in the order in which gpucheck checks them:
- The kernel was updated, and no module was built for the running kernel (DKMS had no headers, or
  the machine was not restarted).
- A line in modprobe.d blocks the module.
- nouveau holds the card.
- Secure Boot refuses an unsigned module.
- Nothing has loaded the module.

Fix: it depends on the cause; gpucheck prints it. Reinstalling CUDA or PyTorch does not help.
""",
    title=say("the kernel module of the driver is not loaded"),
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    suppressed_by=("driver-missing", "driver-dropped-gpu"),
    refuted_by_cuda="always",
    compat_keys=("nvml_error", "nvidia_module_loaded"),
    preflight=InPreflight(drains_node=True),
)

_NOT_LOADED = 9  # NVML_ERROR_DRIVER_NOT_LOADED
_AGAIN_ON_WINDOWS = Fix(
    text=say(
        "Restart Windows. If the driver is not loaded then either, install it again from {page}; "
        "the Device Manager says why it did not start.",
        page=DRIVER_PAGE,
    ),
    commands=("sudo reboot",),
)
_NO_COMMUNICATION = "couldn't communicate with the NVIDIA driver"


@KERNEL_MODULE_NOT_LOADED.check
def check_kernel_module_not_loaded(  # noqa: PLR0913, PLR0917  # it joins the bus, both sides of the driver and the way to load it
    driver: Driver,
    nvml: Nvml,
    smi: NvidiaSmi,
    pci: Pci,
    gpus: Gpus,
    state: DriverState,
    around: Surroundings,
    advice: ModuleFixes,
    system: System,
) -> Judgement:
    """Look for an installed driver whose module is not loaded, and for the reason."""
    quoted = _driver_facts(nvml, smi)
    on_windows = system.os == "windows"
    # Windows names the driver of a GPU also if that has failed to start.
    loaded = driver.module_loaded and not (on_windows and quoted)
    if loaded or nvml.init_code == 0 or state.works():
        return Fine(say("the kernel module is loaded"))
    if quoted and (driver.module_loaded is None or on_windows):
        if pci.gpus == []:
            return NotApplicable(say("there is no NVIDIA GPU that the module could drive"))
        return Hit(
            headline=say("NVIDIA's driver says that its kernel module is not loaded"),
            evidence=quoted,
            fixes=(_AGAIN_ON_WINDOWS if on_windows else advice.load(),),
            confidence=Confidence.LIKELY,
        )
    if elsewhere := around.without_linux_driver():
        return NotApplicable(elsewhere)
    known(driver.module_loaded, "driver.module_loaded")
    if not gpus.present():
        return NotApplicable(say("there is no NVIDIA GPU that the module could drive"))
    if not state.installed():
        return NotApplicable(say("no driver is installed"))
    cause = advice.cause()
    return Hit(
        headline=say(
            "NVIDIA's driver is installed, but its kernel module is not loaded: {why}",
            why=cause.why,
        ),
        evidence=("driver.module_loaded", *quoted, *cause.facts, *gpus.seen_by()),
        fixes=_on_host(cause.fixes) if around.in_container() else cause.fixes,
        confidence=cause.confidence,
    )


def _driver_facts(nvml: Nvml, smi: NvidiaSmi) -> tuple[str, ...]:
    """Return the facts in which the driver itself says so."""
    facts = []
    if nvml.init_code == _NOT_LOADED:
        facts.append("nvml.init_code")
    if _NO_COMMUNICATION in (smi.message or ""):
        facts.append("nvidia_smi.message")
    return tuple(facts)


def _on_host(fixes: tuple[Fix, ...]) -> tuple[Fix, ...]:
    return tuple(
        Fix(
            text=say("On the host, not in this container: {text}", text=fix.text),
            commands=fix.commands,
        )
        for fix in fixes
    )


DRIVER_LIBRARY_MISMATCH = Rule(
    "driver-library-mismatch",
    page="""\
The loaded kernel module and the driver's libraries are of different releases.

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
""",
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


@DRIVER_LIBRARY_MISMATCH.check
def check_driver_library_mismatch(  # noqa: PLR0913, PLR0917  # both sides of the driver, and both ways to ask it
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
    quoted = _driver_library_mismatch_driver_facts(nvml, cuda, smi) + says.points_at(
        DRIVER_LIBRARY_MISMATCH.slug
    )
    at = _first(driver.libcuda)
    library = driver.libcuda[at] if driver.libcuda and at is not None else None
    differ = _differ(driver.module_release, library)
    if not quoted and nvml.init_code == 0 and cuda.init_code != _COMPAT_REFUSED:
        return Fine(say("the driver responds"))
    if cuda.init_code == 0 and not says.points_at(DRIVER_LIBRARY_MISMATCH.slug):
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


def _driver_library_mismatch_driver_facts(
    nvml: Nvml, cuda: CudaDriver, smi: NvidiaSmi
) -> tuple[str, ...]:
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


DRIVER_DROPPED_GPU = Rule(
    "driver-dropped-gpu",
    page="""\
The installed driver no longer supports this GPU, or has the wrong kernel modules for it.

Every GPU architecture has a last driver branch: later branches do not support its GPUs at all. The
kernel modules also come in two flavours. The open ones support no GPU older than Turing. The
proprietary ones support neither Grace Hopper nor any GPU from Blackwell on, and from R615 on no
package has them. So no driver of Linux serves a Volta beside a Blackwell.

Symptoms: nvidia-smi says "No devices were found", or lists only the other GPUs; the kernel log says
"is supported through the NVIDIA 470.xx Legacy drivers", "not supported by open nvidia.ko" or
"requires use of the NVIDIA open kernel modules"; PyTorch says "No CUDA GPUs are available".

Causes: an upgrade went past the last branch that supports the GPU, or installed the other flavour.

When it is reported: a GPU that NVML lists is supported, whatever a table says. If other GPUs work
and the installed PyTorch has no code for this one, such as a display card, it is only mentioned.

Fix: install the last branch that supports all GPUs of the machine, or the same branch with the
other kernel modules.
""",
    title=say("the installed driver does not support a GPU"),
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    compat_keys=("driver", "kernel_module"),
    preflight=InPreflight(drains_node=True),
)


@DRIVER_DROPPED_GPU.check
def check_driver_dropped_gpu(  # noqa: PLR0913, PLR0917  # GPUs, driver, who wants them, and where
    gpus: Gpus,
    support: GpuSupport,
    nvml: Nvml,
    torch: TorchBuild,
    request: Request,
    around: Surroundings,
    cubins: CubinRules,
    install: DriverFixes,
    pci: Pci,
    system: System,
) -> Judgement:
    """Judge every GPU that is on the bus and that the driver does not list."""
    if around.in_container() and nvml.gpus:
        return NotApplicable(say("the driver belongs to the host, and this container has a GPU"))
    elsewhere = around.without_linux_driver()
    if elsewhere and (system.os == "macos" or system.jetson or not pci.gpus):
        return NotApplicable(elsewhere)  # Windows and WSL show no bus, but it may be described
    if not gpus.present():
        return NotApplicable(say("there is no NVIDIA GPU"))
    found = [unsupported for unsupported in support.unsupported() if unsupported.kind != "too-new"]
    if not found:
        return Fine(say("the tables list no GPU here that the driver does not support"))
    wanted = request.gpus is not None and request.gpus > len(nvml.gpus or ())
    could = {_torch_could(torch, cubins, unsupported) for unsupported in found}
    severity = Severity.WARNING if None in could else Severity.INFO
    if not nvml.gpus or wanted or True in could:
        severity = Severity.ERROR
    is_observed = nvml.gpus is not None or any(
        "kernel_log.nvrm" in unsupported.facts for unsupported in found
    )
    return Hit(
        headline=_driver_dropped_gpu_headline(found),
        evidence=tuple(dict.fromkeys(fact for unsupported in found for fact in unsupported.facts)),
        fixes=tuple(_driver_dropped_gpu_fixes(found, install)),
        severity=severity,
        confidence=Confidence.CERTAIN if is_observed else Confidence.LIKELY,
    )


def _driver_dropped_gpu_headline(found: list[Unsupported]) -> str:
    """Return a sentence for each GPU, without the full stop of the last."""
    *before, last = found
    return in_turn([*(_ended(unsupported) for unsupported in before), _sentence(last)])


def _sentence(unsupported: Unsupported) -> Sentence:
    return say(
        "The installed driver does not support {gpu}: {why}",
        gpu=unsupported.gpu.label,
        why=unsupported.why,
    )


def _ended(unsupported: Unsupported) -> Sentence:
    return say(
        "The installed driver does not support {gpu}: {why}.",
        gpu=unsupported.gpu.label,
        why=unsupported.why,
    )


def _torch_could(torch: TorchBuild, cubins: CubinRules, found: Unsupported) -> bool | None:
    """Whether the installed PyTorch could use the GPU; None if that is unknown."""
    if not torch.arch_list or not found.gpu.compute_capability:
        return None
    return cubins.covers(torch.arch_list, found.gpu.compute_capability, torch.cuda) is not Runs.NO


def _driver_dropped_gpu_fixes(found: list[Unsupported], install: DriverFixes) -> list[Fix]:
    branches = [unsupported.branch for unsupported in found if unsupported.branch is not None]
    if not branches:
        if "only with the open" in found[0].why:
            return [install.install(None, say("with the open kernel modules"))]
        return [install.install(None, say("with the proprietary kernel modules"))]
    last = min(branches)
    gpu = next(unsupported.gpu.label for unsupported in found if unsupported.branch == last)
    if install.branch() != last:
        why = say("branch {last} is the last that supports {gpu}", last=last, gpu=gpu)
    elif len(found) == 1:
        why = say("the last that supports this GPU")
    else:
        why = say("the last that supports {gpu}", gpu=gpu)
    return [install.install(None, why)]
