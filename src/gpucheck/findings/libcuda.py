"""A libcuda that is not the driver's: of cuda-compat, or the toolkit's stub."""

import posixpath

from gpucheck.advice import DriverFixes
from gpucheck.derived import Gpu, Gpus
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity, and_then, or_else
from gpucheck.facts.driver import CudaDriver, Driver, Nvml
from gpucheck.facts.libraries import LoadedLibrary, Loading
from gpucheck.facts.system import System
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays
from gpucheck.language import say
from gpucheck.tables.cuda import CudaDrivers
from gpucheck.tables.driver import ForwardCompat, kind_of
from gpucheck.tables.gpus import GpuProducts

FORWARD_COMPAT_UNSUPPORTED = Rule(
    "forward-compat-unsupported",
    page="""\
A cuda-compat library is loaded on a GPU that does not support forward compatibility.

NVIDIA's cuda-compat packages put a newer ``libcuda`` in front of the driver's, so that an older
driver runs programs built for a newer CUDA. This works on NVIDIA's data-centre GPUs, on selected
RTX boards and on Jetson, with Linux drivers only. On any other GPU (GeForce above all) ``cuInit``
fails with error 804. CUDA images contain such a library below ``/usr/local/cuda/compat``, and some
put it on LD_LIBRARY_PATH.

Symptoms: ``torch.cuda.is_available()`` is False with "Error 804: forward compatibility was
attempted on non supported HW".

The same error appears when the kernel module and the libraries are of different releases after an
update. If their releases show this, it is reported as driver-library-mismatch. On a GPU that is
known to support cuda-compat, different releases are the likely cause.

Fix: remove the compat folder from LD_LIBRARY_PATH, so that the driver's own libcuda is loaded. If
the driver is then too old for this PyTorch, update it.
""",
    title=say("forward compatibility is not supported on this GPU"),
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    suppressed_by=("driver-library-mismatch", "wsl-driver-problem"),
    needs_gpu=True,
    refuted_by_cuda="always",
    compat_keys=("gpu_kind", "cuda_compat", "cuda_compat_active"),
)

_NOT_SUPPORTED = 804  # CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE
_SAME_RELEASE = Fix(
    text=say(
        "Compare the release of the loaded kernel module with those of libcuda: they must be the "
        "same. After an update of the driver, restart; remove a libcuda that another installer "
        "left."
    ),
    commands=("cat /proc/driver/nvidia/version", "ldconfig -p | grep libcuda.so"),
    restart="machine",
)


@FORWARD_COMPAT_UNSUPPORTED.check
def check_forward_compat_unsupported(  # noqa: PLR0913, PLR0917  # libcuda, the GPUs, and what a fix needs
    cuda: CudaDriver,
    driver: Driver,
    gpus: Gpus,
    around: Surroundings,
    update: DriverFixes,
    table: ForwardCompat,
    products: GpuProducts,
    says: SelfTestSays,
    torch: TorchBuild,
    drivers: CudaDrivers,
    nvml: Nvml,
) -> Judgement:
    """Look for error 804, and for a compat library that is loaded first."""
    seen = says.points_at(FORWARD_COMPAT_UNSUPPORTED.slug)
    if cuda.init_code == _NOT_SUPPORTED:
        seen = ("cuda_driver.init_code",)
    elif not seen:
        known(cuda.init_code, "cuda_driver.init_code")
        return Fine(say("cuInit did not refuse forward compatibility"))
    path = _compat_library(cuda, driver)
    without = _without(path, driver, around)
    evidence = (*seen, *(("cuda_driver.library",) if cuda.library else ()))
    runs = _runs(nvml.driver_release or driver.module_release, torch, drivers)
    able = _able(gpus, table, products)
    if able:
        return Hit(
            headline=_other_release(able.label, path),
            evidence=(*evidence, able.facts[0]),
            fixes=(without, or_else(_SAME_RELEASE)) if path else (_SAME_RELEASE,),
            confidence=Confidence.LIKELY,
            rows=((able.facts[0], row),)
            if (kind := kind_of(able.product, products)) and (row := table.kind(kind))
            else (),
        )
    return Hit(
        headline=_not_supported(path),
        evidence=evidence,
        fixes=_fixes(path, runs, without, _newer_driver(torch, drivers, update)),
        confidence=Confidence.CERTAIN if path else Confidence.LIKELY,
    )


def _other_release(gpu: str, path: str) -> str:
    if not path:
        return say(
            "cuInit fails with error 804 although {gpu} supports cuda-compat: libcuda is most "
            "likely of another release than the loaded kernel module",
            gpu=gpu,
        )
    return say(
        "cuInit fails with error 804 although {gpu} supports cuda-compat: {path}, which is loaded, "
        "is most likely of another release than the loaded kernel module",
        gpu=gpu,
        path=path,
    )


def _not_supported(path: str) -> str:
    if not path:
        return say("cuInit fails with error 804: this GPU does not support cuda-compat")
    return say(
        "cuInit fails with error 804: this GPU does not support cuda-compat, but {path} is loaded",
        path=path,
    )


def _runs(release: str | None, torch: TorchBuild, drivers: CudaDrivers) -> bool | None:
    """Whether the driver runs this torch by itself, without cuda-compat; None if unknown."""
    return drivers.driver_runs(torch.cuda, "linux", driver=release) if torch.cuda else None


def _fixes(path: str, runs: bool | None, without: Fix, newer: Fix) -> tuple[Fix, ...]:  # noqa: FBT001
    """Return the fixes; the driver's own libcuda is half of one if the driver is too old."""
    if runs is False:
        return (and_then(without, newer),)
    if runs:
        return (without,) if path else (without, or_else(_SAME_RELEASE))
    return (without, or_else(newer))


def _newer_driver(torch: TorchBuild, drivers: CudaDrivers, update: DriverFixes) -> Fix:
    """Return the fix that installs a driver which runs the CUDA of this torch by itself."""
    oldest = drivers.oldest_driver(torch.cuda, "linux") if torch.cuda else None
    if oldest is None:
        return update.install(None, say("it needs no cuda-compat"))
    return update.install(
        oldest,
        say(
            "which also runs PyTorch builds of CUDA {cuda} and needs no cuda-compat",
            cuda=torch.cuda,
        ),
    )


def _able(gpus: Gpus, table: ForwardCompat, products: GpuProducts) -> Gpu | None:
    """Return one of the GPUs if all are known to support cuda-compat."""
    try:
        found = gpus.all()
    except UnknownFactError:
        return None
    kinds = [kind_of(gpu.product, products) if gpu.has_product else None for gpu in found]
    allowed = [kind is not None and table.allowed_on(kind) for kind in kinds]
    return found[0] if found and all(allowed) else None


def _compat_library(cuda: CudaDriver, driver: Driver) -> str:
    """Return the compat library that was loaded, or that the loader would find first."""
    loaded = cuda.library or ""
    if "compat" in posixpath.dirname(loaded).split("/"):
        return loaded
    first = driver.libcuda[0] if driver.libcuda else None
    return first.path or "" if first is not None and first.kind == "compat" else ""


def _without(path: str, driver: Driver, around: Surroundings) -> Fix:
    # The loader reports where a link leads; the variable has the folder with the link.
    by_variable = [
        copy.path or ""
        for copy in driver.libcuda or ()
        if copy.kind == "compat" and copy.found_via == "LD_LIBRARY_PATH"
    ]
    folders = {posixpath.dirname(copy) for copy in (path, *by_variable) if copy}
    commands = around.path_without("LD_LIBRARY_PATH", folders)
    if commands:
        text = (
            say(
                "Load the driver's own libcuda: remove the cuda-compat folder from "
                "LD_LIBRARY_PATH, here and in the image, or it is back in the next container."
            )
            if around.in_container()
            else say(
                "Load the driver's own libcuda: remove the cuda-compat folder from "
                "LD_LIBRARY_PATH, here and wherever it is set."
            )
        )
        return Fix(text=text, commands=commands)
    return Fix(
        text=say(
            "Load the driver's own libcuda: remove the cuda-compat folder from LD_LIBRARY_PATH and "
            "from the loader's configuration, then refresh its cache. The first command shows the "
            "lines, the second one turns them into comments and keeps a copy of each file."
        ),
        commands=(
            "grep -rn 'cuda.*/compat' /etc/ld.so.conf.d",
            # Redaction takes a bare slash before a word for the start of a path.
            "sudo sed -E -i.bak 's,^[^#]*cuda.*[/]compat.*$,#&,' /etc/ld.so.conf.d/*.conf",
            "sudo ldconfig",
        ),
    )


LIBCUDA_STUB_LOADED = Rule(
    "libcuda-stub-loaded",
    page="""\
Programs load the CUDA toolkit's stub of libcuda instead of the driver's libcuda.

The toolkit has an empty libcuda in a folder named ``stubs``, which exists only to link against.

Symptoms: when the loader finds the stub first, CUDA returns 34 (cudaErrorStubLibrary): "CUDA driver
is a stub library". ``torch.cuda.is_available()`` is False and PyTorch prints this as a warning.
nvidia-smi still works.

Causes: ``.../stubs`` is in LD_LIBRARY_PATH or in a file in /etc/ld.so.conf.d, often for a build
that needed it; or somebody linked the stub as libcuda.so.1. Stub folders belong in LIBRARY_PATH,
which only the linker reads.

When it is reported: the libcuda that torch's own libraries would load counts as well. A DT_RPATH or
a conda environment can lead them to a stub that no other program finds. On a host without a GPU,
where programs are only built, the stub is fine.

Fix: remove that folder from the loader's search path.
""",
    title=say("the stub of libcuda is loaded"),
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    suppressed_by=("container-no-gpu", "driver-missing", "wsl-driver-problem"),
    needs_gpu=True,
    refuted_by_cuda="always",
)

_STUB_LIBRARY = 34  # CUDA_ERROR_STUB_LIBRARY


@LIBCUDA_STUB_LOADED.check
def check_libcuda_stub_loaded(
    driver: Driver,
    cuda: CudaDriver,
    system: System,
    around: Surroundings,
    loading: Loading,
    says: SelfTestSays,
) -> Judgement:
    """Look for the stub's own error, or for a stub that the loader finds first."""
    first = driver.libcuda[0] if driver.libcuda else None
    stub_first = first is not None and first.kind == "stub"
    taken = _taken_by_torch(loading)
    if taken is not None and cuda.init_code != _STUB_LIBRARY and not stub_first:
        at, library = taken
        return Hit(
            headline=say(
                "PyTorch would load the CUDA toolkit's stub of libcuda ({path}) instead of the "
                "driver's",
                path=library.path,
            ),
            evidence=(f"loading.runtime_opened.{at}",),
            fixes=(_fix(library.path or "", around),),
        )
    seen = says.points_at(LIBCUDA_STUB_LOADED.slug)
    if cuda.init_code != _STUB_LIBRARY and not seen:
        if cuda.init_code is not None:
            return Fine(say("the libcuda that was loaded is not a stub"))
        if system.os in ("windows", "macos"):
            return NotApplicable(say("only Linux has stubs of libcuda"))
        known(driver.libcuda, "driver.libcuda")
        if not stub_first:
            return Fine(say("the first libcuda that the loader finds is not a stub"))
    path = cuda.library if cuda.init_code == _STUB_LIBRARY and cuda.library else ""
    evidence = ["cuda_driver.init_code"] if cuda.init_code == _STUB_LIBRARY else [*seen]
    if path:
        evidence.append("cuda_driver.library")
    if first is not None and stub_first:
        path = first.path or path
        evidence += ["driver.libcuda.0.path", "driver.libcuda.0.found_via"]
    return Hit(
        headline=say(
            "Programs load the CUDA toolkit's stub of libcuda ({path}) instead of the driver's",
            path=path,
        )
        if path
        else say("Programs load the CUDA toolkit's stub of libcuda instead of the driver's"),
        evidence=tuple(evidence),
        fixes=(_fix(path, around),),
    )


def _taken_by_torch(loading: Loading) -> tuple[int, LoadedLibrary] | None:
    """Return the stub that torch's CUDA runtime would open, and its index; None if none."""
    for at, library in enumerate(loading.runtime_opened or ()):
        if library.library == "cuda" and f"{library.path}:{library.real_path}".count("/stubs/"):
            return at, library
    return None


def _fix(path: str, around: Surroundings) -> Fix:
    folder = posixpath.dirname(path)
    commands = around.path_without("LD_LIBRARY_PATH", {folder}) if folder else ()
    if commands:
        return Fix(
            text=say(
                "Remove {folder} from LD_LIBRARY_PATH, here and wherever it is set (~/.bashrc, the "
                "image, a module file). If a build needs this folder, put it into LIBRARY_PATH "
                "instead.",
                folder=folder,
            ),
            commands=commands,
        )
    return Fix(
        text=say(
            "Remove the folder of stubs from the loader's configuration (or remove a link named "
            "libcuda.so.1 that leads there), then refresh the loader's cache."
        ),
        commands=("grep -rn stubs /etc/ld.so.conf.d /etc/ld.so.conf", "sudo ldconfig"),
    )
