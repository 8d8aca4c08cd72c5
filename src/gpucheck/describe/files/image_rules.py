"""Images, services and jobs that lack a compiler, a newer driver, or GPUs to work on."""

import re
from collections.abc import Iterator

from gpucheck.describe.files.complaint import Complaint, FileTarget
from gpucheck.describe.files.model import Image, Pin, Project, Stage, Workload
from gpucheck.facts.claims import Severity
from gpucheck.findings.container import CONTAINER_NO_GPU
from gpucheck.findings.driver_releases import DRIVER_TOO_OLD
from gpucheck.findings.limits import SHM_TOO_SMALL
from gpucheck.findings.toolkit import TOOLKIT_MISSING
from gpucheck.language import say
from gpucheck.tables import Tables
from gpucheck.tables.cuda import CudaDrivers
from gpucheck.tables.driver import ForwardCompat, kind_of
from gpucheck.tables.gpus import GpuProducts
from gpucheck.tables.meant_products import meant_by
from gpucheck.tables.packages import KnownPackages

# Stages that compile CUDA code without a compiler for it, or keep one that they do not use.

_WITHOUT = ("base", "runtime")
_BRINGS = (
    "cuda-toolkit", "cuda-nvcc", "cuda-minimal-build", "cuda-compiler", "nvidia-cuda-toolkit",
    "cudatoolkit-dev", "cuda-libraries-dev", "cuda-command-line-tools", "nvidia-cuda-nvcc",
)  # fmt: skip
_WHOLE_TOOLKIT = re.compile(r"cuda(?:[-=][0-9].{0,60})?")
_BUILDS = (
    "cmake", "ninja", "make", "gcc", "g++", "build-essential", "setup.py", "nvcc", "cargo", "git",
    "flash-attn", "flash_attn", "deepspeed", "vllm", "git+", "-e", ".", "wheel", "bdist_wheel",
    "ninja-build", "--no-build-isolation", "go", "python3-dev", "build",
)  # fmt: skip
_SHELLS = (".sh", ".py")


def compiler_complaints(project: Project, tables: Tables) -> Iterator[Complaint]:
    """Yield the commands that need nvcc in an image without it, and a final image with it."""
    for stage in project.stages:
        if stage.image is None or not stage.image.cuda:
            continue
        if stage.image.flavour in _WITHOUT and not _brings_toolkit(stage):
            yield from _missing(stage, stage.image, tables)
        elif stage.final and stage.image.flavour == "devel" and not _builds(stage, project):
            yield Complaint(
                line=stage.line,
                severity=Severity.INFO,
                rule="devel-image",
                sentence=say(
                    "The final image is made of {image}, which has a CUDA compiler, and no step "
                    "compiles anything.",
                    image=stage.image.reference,
                ),
                fix=say(
                    "A runtime image is several GB smaller, if no program compiles when it runs."
                ),
            )


def _missing(stage: Stage, image: Image, tables: Tables) -> Iterator[Complaint]:
    for command in stage.commands:
        if command.words[0].rpartition("/")[2] == "nvcc" and not command.conditional:
            yield _complaint(Pin("nvcc", "", command.line), image, Severity.ERROR)
            return
    known = tables.get(KnownPackages)
    for install in stage.installs:
        if install.tool == "conda" or install.conditional:
            continue
        for pin in install.pins:
            row = known.known(pin.name)
            if row is not None and row.pypi == ("source",) and not install.indexes:
                yield Complaint(
                    line=pin.line,
                    severity=Severity.WARNING,
                    rule=TOOLKIT_MISSING.slug,
                    sentence=say(
                        "PyPI has only the source of {package}, and {image} has no nvcc to compile "
                        "it: it fails unless its setup finds a wheel that was made for this torch.",
                        package=pin.name,
                        image=image.reference,
                    ),
                    fix=_fix(),
                )


def _complaint(pin: Pin, image: Image, severity: Severity) -> Complaint:
    return Complaint(
        line=pin.line,
        severity=severity,
        rule=TOOLKIT_MISSING.slug,
        sentence=say(
            "{command} is run, but {image} has none.", command=pin.name, image=image.reference
        ),
        fix=_fix(),
    )


def _fix() -> str:
    return say("Compile in a stage of the devel image, and copy the result into this one.")


def _brings_toolkit(stage: Stage) -> bool:
    """Whether a step may bring nvcc: a package, an installer, a copy, or a script."""
    return stage.copies_toolkit or any(
        _may_bring(word) for command in stage.commands for word in command.words
    )


def _may_bring(word: str) -> bool:
    return bool(
        word == "COPY"
        or word.startswith((*_BRINGS, "nvidia/label"))
        or word.endswith((".run", ".sh"))
        or "cuda_" in word
        or _WHOLE_TOOLKIT.fullmatch(word)
    )


def _builds(stage: Stage, project: Project) -> bool:
    """Whether a step may compile something."""
    found = [word for command in stage.commands for word in command.words]
    return (
        not found
        or len(project.stages) == 1
        or any(
            word in _BUILDS or word.startswith("git+") or word.endswith(_SHELLS) for word in found
        )
    )


# Images whose CUDA needs a newer driver than the target machine has.


def driver_complaints(project: Project, target: FileTarget, tables: Tables) -> Iterator[Complaint]:
    """Yield the images that are started and that this driver does not run."""
    if not target.driver:
        return
    images = [stage.image for stage in project.stages if stage.final]
    images += [workload.image for workload in project.workloads]
    drivers = tables.get(CudaDrivers)
    for image in images:
        if image is None or not image.cuda:
            continue
        if drivers.driver_runs(image.cuda, "linux", driver=target.driver) is not False:
            continue
        needed = drivers.oldest_driver(image.cuda, "linux")
        if _may_use_compat(image, target, tables):
            yield Complaint(
                line=image.line,
                severity=Severity.WARNING,
                rule=DRIVER_TOO_OLD.slug,
                sentence=say(
                    "{image} needs driver {needed} or newer, not {driver}; only on data-center "
                    "GPUs its cuda-compat library may make up for that.",
                    image=image.reference,
                    needed=needed,
                    driver=target.driver,
                ),
                fix=_driver_fix(),
            )
        else:
            yield Complaint(
                line=image.line,
                severity=Severity.ERROR,
                rule=DRIVER_TOO_OLD.slug,
                sentence=say(
                    "{image} needs driver {needed} or newer, not {driver}.",
                    image=image.reference,
                    needed=needed,
                    driver=target.driver,
                ),
                fix=_driver_fix(),
            )


def _driver_fix() -> str:
    return say("Install a newer driver on the machine, or use an image of an older CUDA.")


def _may_use_compat(image: Image, target: FileTarget, tables: Tables) -> bool:
    branch = target.driver.partition(".")[0]
    compat = tables.get(ForwardCompat)
    if compat.state(image.cuda, branch) in ("not-compatible", "not-applicable"):
        return False
    products = tables.get(GpuProducts)
    names = [(meant_by(gpu, tables) or (gpu, ""))[0] for gpu in target.gpus]
    kinds = [kind_of(name, products) for name in names]
    return not kinds or any(kind is None or compat.allowed_on(kind) is not False for kind in kinds)


# Services, pods and batch jobs that need GPUs and do not ask for them.


def workloads_complaints(project: Project) -> Iterator[Complaint]:
    """Yield what is started without the GPUs or the shared memory that it needs."""
    for workload in project.workloads:
        image = workload.image
        if image is None or not image.for_gpus:
            continue
        if workload.asks_for_gpu is None:
            continue
        if not workload.asks_for_gpu:
            yield _without_gpu(workload, image)
        elif image.has_torch and (workload.gpus or 0) > 1 and not workload.shared_memory:
            yield _little_memory(workload)
    for batch in project.batches:
        if batch.uses is not None and not batch.asks_for_gpu:
            yield Complaint(
                line=batch.uses.line,
                severity=Severity.WARNING,
                rule="gpu-not-requested",
                sentence=say(
                    "{command} needs GPUs, but no line asks Slurm for any.", command=batch.uses.name
                ),
                fix=say("Add the line #SBATCH --gpus-per-node=N, or --gres=gpu:N."),
            )


def _without_gpu(workload: Workload, image: Image) -> Complaint:
    if workload.by == "compose":
        return Complaint(
            line=workload.line,
            severity=Severity.WARNING,
            rule=CONTAINER_NO_GPU.slug,
            sentence=say(
                "The service {name} runs {image} without a GPU, unless Docker's default runtime "
                "is nvidia.",
                name=workload.name,
                image=image.reference,
            ),
            fix=say(
                "Reserve it: deploy.resources.reservations.devices with driver nvidia, count, and "
                "capabilities [gpu]."
            ),
        )
    if workload.runtime_class is not None:
        return Complaint(
            line=workload.runtime_class.line,
            severity=Severity.INFO,
            rule=CONTAINER_NO_GPU.slug,
            sentence=say(
                "The container {name} relies on the runtime class {runtime}: Kubernetes does not "
                "count the GPUs that it uses.",
                name=workload.name,
                runtime=workload.runtime_class.name,
            ),
            fix=_limit(),
        )
    return Complaint(
        line=workload.line,
        severity=Severity.WARNING,
        rule=CONTAINER_NO_GPU.slug,
        sentence=say(
            "The container {name} runs {image}, and asks for no GPU.",
            name=workload.name,
            image=image.reference,
        ),
        fix=_limit(),
    )


def _limit() -> str:
    return say("Set resources.limits of the container: nvidia.com/gpu: 1.")


def _little_memory(workload: Workload) -> Complaint:
    if workload.by == "compose":
        fix = say("Set shm_size: 8gb, or ipc: host.")
    else:
        fix = say("Mount an emptyDir with medium: Memory at /dev/shm.")
    return Complaint(
        line=workload.line,
        severity=Severity.WARNING,
        rule=SHM_TOO_SMALL.slug,
        sentence=say(
            "{name} uses {gpus} GPUs with 64 MB in /dev/shm, which is too little for NCCL and for "
            "the workers of a DataLoader.",
            name=workload.name,
            gpus=workload.gpus,
        ),
        fix=fix,
    )
