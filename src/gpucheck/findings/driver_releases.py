"""Releases of the driver that are too old for PyTorch, or get no more updates."""

from datetime import datetime, timezone

from gpucheck.advice import DriverFixes, TorchFixes
from gpucheck.derived import DriverState, Gpus
from gpucheck.derived.extensions import ExtensionPtx, NewerPtx
from gpucheck.derived.gpu_support import GpuSupport
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity, or_else
from gpucheck.facts.driver import Nvml
from gpucheck.facts.system import System
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays
from gpucheck.language import Sentence, in_series, say
from gpucheck.tables import OperatingSystem
from gpucheck.tables.cuda import CudaDrivers
from gpucheck.tables.driver import BranchRow, DriverBranches
from gpucheck.tables.versions import at_least, parse

DRIVER_TOO_OLD = Rule(
    "driver-too-old",
    page="""\
The NVIDIA driver is too old for the CUDA that PyTorch was built with, or for the GPU.

A CUDA build of PyTorch brings its own CUDA runtime, but not the driver. Builds of CUDA 11 need a
driver that supports at least CUDA 11.0, builds of CUDA 12 one that supports at least 12.0, and so
on: within a major version any driver is enough (minor-version compatibility). So CUDA 12.4 builds
run on a driver whose nvidia-smi says "CUDA Version: 12.2", and the toolkit of the machine does not
matter. Builds for CUDA 10.2 and older need at least the driver of their own CUDA release.

Symptoms: ``torch.cuda.is_available()`` is False, with the warning "The NVIDIA driver on your system
is too old (found version 11040)", or CUDA error 35 (cudaErrorInsufficientDriver).

When it is reported: the CUDA version that the driver itself reports decides. It already includes an
installed cuda-compat library. Only if this version is unknown, gpucheck compares the driver's
release number with NVIDIA's table. On a Jetson it never does: the CUDA of the board's JetPack
decides there, because its driver has a number of its own (580.00 on Thor, with CUDA 13.0).

A driver that is older than the GPU does not support it at all: nvidia-smi says "No devices were
found", and the kernel log says "installed in this system is not supported by the NVIDIA ... driver
release". Then only a newer driver helps.

A compiled extension may have only PTX for the GPU, made with a newer CUDA than the driver supports.
The driver refuses this PTX on the first call: "the provided PTX was compiled with an unsupported
toolchain" (CUDA error 222). Machine code for the GPU is not affected.

Fix: install a newer driver, or a PyTorch build for an older CUDA that still has code for your GPU.
""",
    title=say("the driver is too old for this PyTorch or this GPU"),
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    suppressed_by=(
        "driver-library-mismatch",
        "libcuda-stub-loaded",
        "torch-mixed-install",
        "torch-rocm-or-other-build",  # a Jetson with a build for servers: its driver is JetPack's
    ),
    refuted_by_cuda="always",
    decides_use=True,
    compat_keys=(
        "os",
        "arch",
        "driver",
        "driver_cuda",
        "torch",
        "torch_source",
        "cuda",
        "extension.name",
        "extension.built_with_cuda",
        "extension.code",
        "extension.cubins",
    ),
    preflight=InPreflight(
        fix=say("Update the NVIDIA driver on the named host."),
    ),
)


@DRIVER_TOO_OLD.check
def check_driver_too_old(  # noqa: PLR0913, PLR0917  # GPU, driver, torch and tables
    gpus: Gpus,
    nvml: Nvml,
    support: GpuSupport,
    driver: DriverState,
    torch: TorchBuild,
    system: System,
    around: Surroundings,
    drivers: CudaDrivers,
    update: DriverFixes,
    reinstall: TorchFixes,
    says: SelfTestSays,
    ptx: ExtensionPtx,
) -> Judgement:
    """Compare the driver with the CUDA that torch was built for, then with the GPUs."""
    if _surely_no_gpu(gpus):
        return NotApplicable(say("there is no NVIDIA GPU"))
    older_than_gpu = None if around.in_container() and nvml.gpus else _for_gpu(support, update)
    if torch.installed is False:
        return older_than_gpu or NotApplicable(say("torch is not installed"))
    if older_than_gpu is None or torch.built_for is not None:
        built_for = known(torch.built_for, "torch.built_for")
        if built_for != "cuda":
            return older_than_gpu or NotApplicable(say("this torch was not built for CUDA"))
        judged = _for_torch(driver, torch, system, drivers, update, reinstall)
        if isinstance(judged, Hit):
            return judged
        if seen := says.points_at(DRIVER_TOO_OLD.slug):
            return _refused(seen, torch, update)
        newer = [newer_ptx for newer_ptx in ptx.newer() if newer_ptx.built_with]
        if newer and older_than_gpu is None:
            return _refused_ptx(newer[0], update)
        return older_than_gpu or judged
    return older_than_gpu


def _refused(seen: tuple[str, ...], torch: TorchBuild, update: DriverFixes) -> Hit:
    """Report that the driver refused a self-test although its release should be new enough."""
    return Hit(
        headline=say(
            "The driver refuses the code of PyTorch {version} (CUDA {cuda}): the code is newer "
            "than the driver",
            version=torch.version or "",
            cuda=torch.cuda,
        ),
        evidence=(*seen, "torch.cuda"),
        fixes=(
            update.install(reason=say("which runs PyTorch builds of CUDA {cuda}", cuda=torch.cuda)),
        ),
        confidence=Confidence.LIKELY,
    )


def _refused_ptx(newer: NewerPtx, update: DriverFixes) -> Hit:
    """Report that the driver runs torch but cannot compile an extension's PTX for the GPU."""
    name = newer.package.title
    gpus = in_series([gpu.label for gpu in newer.gpus])
    return Hit(
        headline=say(
            "{name} has only PTX of CUDA {built_with} for {gpus}, and the driver refuses to "
            "compile this PTX because it supports CUDA only up to {driver_cuda}",
            name=name,
            built_with=newer.built_with,
            gpus=gpus,
            driver_cuda=newer.speaks,
        ),
        evidence=newer.facts,
        fixes=(
            update.install(None, say("one that supports CUDA {cuda}", cuda=newer.built_with)),
            Fix(
                text=say(
                    "Or install a build of {name} with machine code for {gpus}, or compile it "
                    "with CUDA {driver_cuda} or older.",
                    name=name,
                    gpus=gpus,
                    driver_cuda=newer.speaks,
                ),
            ),
        ),
        confidence=Confidence.LIKELY,
        refutable=False,  # a self-test runs PyTorch's own code
    )


def _surely_no_gpu(gpus: Gpus) -> bool:
    """Whether there is surely no GPU; a driver that answers is judged without a list of GPUs."""
    try:
        return not gpus.present()
    except UnknownFactError:
        return False


def _for_gpu(support: GpuSupport, update: DriverFixes) -> Hit | None:
    """Find a GPU that only newer branches support; None if that is unknown."""
    try:
        found = [
            unsupported for unsupported in support.unsupported() if unsupported.kind == "too-new"
        ]
    except UnknownFactError:
        return None
    if not found:
        return None
    newest = max(found, key=lambda unsupported: unsupported.branch or 0)
    gpu = newest.gpu.label
    reason = say("the first branch that supports {gpu}", gpu=gpu)
    return Hit(
        headline=say("The driver is too old for {gpu}: {why}", gpu=gpu, why=newest.why),
        evidence=tuple(dict.fromkeys(fact for unsupported in found for fact in unsupported.facts)),
        fixes=(update.install(str(newest.branch), reason),),
    )


def _for_torch(  # driver, torch and tables
    driver: DriverState,
    torch: TorchBuild,
    system: System,
    drivers: CudaDrivers,
    update: DriverFixes,
    reinstall: TorchFixes,
) -> Judgement:
    cuda = known(torch.cuda, "torch.cuda")
    os: OperatingSystem = "windows" if system.os == "windows" or system.wsl else "linux"
    # A board's driver is not the desktop release of that number: Thor's 580.00 has CUDA 13.0.
    reported = driver.cuda() if driver.reports_cuda() or system.jetson else None
    release = _release(driver) if reported else driver.release()
    runs = known(drivers.driver_runs(cuda, os, driver=release, driver_cuda=reported), "torch.cuda")
    name = _named(release, reported)
    if runs:
        return Fine(say("{driver} can run builds of CUDA {cuda}", driver=name, cuda=cuda))
    if why := driver.unread_compat():
        raise UnknownFactError("cuda_driver.cuda", why)
    oldest = None if system.jetson else drivers.oldest_driver(cuda, os)
    if oldest and _is_new_enough(release, oldest):
        return _old_libcuda(name, cuda, driver)
    evidence = [driver.release_fact()] if release else []
    evidence += [driver.cuda_fact()] if reported else []
    return Hit(
        headline=_older(name, oldest, cuda),
        evidence=(*dict.fromkeys(evidence), "torch.cuda", "torch.version"),
        # Windows is the user's own PC, where a newer driver is a download and keeps this PyTorch.
        fixes=_fixes(update, reinstall, oldest, cuda, driver_first=os == "windows"),
    )


def _named(release: str | None, cuda: str | None) -> Sentence:
    """Return the driver as the subject of a sentence."""
    if release and cuda:
        return say("Driver {release} (CUDA {cuda})", release=release, cuda=cuda)
    if release:
        return say("Driver {release}", release=release)
    return say("The driver (CUDA {cuda})", cuda=cuda) if cuda else say("The driver")


def _older(name: Sentence, oldest: str | None, cuda: str) -> Sentence:
    if oldest is None:
        return say(
            "{driver} is too old: no driver of its age runs CUDA {cuda} builds of PyTorch",
            driver=name,
            cuda=cuda,
        )
    return say(
        "{driver} is older than {oldest}, the oldest that runs CUDA {cuda} builds of PyTorch",
        driver=name,
        oldest=oldest,
        cuda=cuda,
    )


def _is_new_enough(release: str | None, oldest: str) -> bool:
    have, need = parse(release), parse(oldest)
    return bool(have and need and at_least(have, need))


def _old_libcuda(name: Sentence, cuda: str, driver: DriverState) -> Hit:
    """Report that the driver is new enough, but a libcuda that is not its own is loaded."""
    return Hit(
        headline=say(
            "{driver} is new enough for CUDA {cuda} builds of PyTorch, but the loaded libcuda "
            "supports an older CUDA: it is not the driver's own",
            driver=name,
            cuda=cuda,
        ),
        evidence=(driver.release_fact(), driver.cuda_fact(), "cuda_driver.library", "torch.cuda"),
        fixes=(
            Fix(
                text=say(
                    "Find the older libcuda that the loader finds first: it is from cuda-compat or "
                    "was left by another driver. Remove its folder from LD_LIBRARY_PATH, or remove "
                    "the library."
                ),
                commands=("ldconfig -p | grep libcuda.so",),
            ),
        ),
        confidence=Confidence.LIKELY,
    )


def _release(driver: DriverState) -> str | None:
    try:
        return driver.release()
    except UnknownFactError:
        return None


def _fixes(
    update: DriverFixes,
    reinstall: TorchFixes,
    oldest: str | None,
    cuda: str,
    *,
    driver_first: bool,
) -> tuple[Fix, ...]:
    newer = update.install(oldest, say("which runs PyTorch for CUDA {cuda}", cuda=cuda))
    older_build = reinstall.install_for(say("the driver you have"))
    if older_build is None:
        return (newer,)
    if update.conflict(oldest):
        return (older_build,)
    if driver_first:
        return newer, or_else(older_build)
    return older_build, or_else(newer)


DRIVER_BRANCH_END_OF_LIFE = Rule(
    "driver-branch-end-of-life",
    page="""\
The driver branch gets no more updates from NVIDIA.

NVIDIA supports each data-centre driver branch until a stated month. After that there are no more
security fixes, and no support for new GPUs is added. Everything that works continues to work, so
this is information, not a fault.

Symptoms: none. It matters when you plan the next maintenance, or when a security scan asks for it.

Fix: when it suits you, move to a long-lived branch that still supports your GPU. Old GPUs may have
no newer branch; the last branch that supports them is then the right one.
""",
    title=say("NVIDIA no longer supports this driver branch"),
    severity=Severity.INFO,
    family="driver",
    suppressed_by=("driver-too-old", "driver-dropped-gpu", "driver-library-mismatch"),
)


@DRIVER_BRANCH_END_OF_LIFE.check
def check_driver_branch_end_of_life(
    gpus: Gpus,
    driver: DriverState,
    system: System,
    branches: DriverBranches,
    update: DriverFixes,
) -> Judgement:
    """Look up the branch of the running driver."""
    if system.jetson:
        return NotApplicable(say("the driver of a Jetson is part of its JetPack release"))
    if not gpus.present():
        return NotApplicable(say("there is no NVIDIA GPU"))
    release = driver.release()
    row = branches.branch_of(release)
    today = datetime.now(tz=timezone.utc).date()
    ended = branches.is_end_of_life(release, today)
    if ended is None:
        raise UnknownFactError(
            driver.release_fact(),
            say("the end of life of driver {release} is unknown", release=release),
        )
    if not ended:
        return Fine(say("the branch of driver {release} is supported", release=release))
    newer = update.branch(release.partition(".")[0])
    if newer is None or row is None or str(newer) == row.branch:
        return Fine(
            say(
                "NVIDIA no longer supports the branch of driver {release}, but no newer branch "
                "supports this GPU",
                release=release,
            )
        )
    return Hit(
        headline=_headline(release, row),
        evidence=(driver.release_fact(),),
        fixes=(update.install(f"{newer}", say("at a convenient time")),),
    )


def _headline(release: str, row: BranchRow) -> Sentence:
    if row.eol is not None:
        return say(
            "Driver {release} belongs to branch {branch}, which NVIDIA supported until {end}",
            release=release,
            branch=row.branch,
            end=row.eol,
        )
    return say(
        "Driver {release} belongs to branch {branch}, which NVIDIA had stopped supporting by {end}",
        release=release,
        branch=row.branch,
        end=row.ended_by,
    )
