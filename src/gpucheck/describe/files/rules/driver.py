"""Images whose CUDA needs a newer driver than the target machine has."""

from collections.abc import Iterator

from gpucheck.describe.files.model import Image, Project
from gpucheck.describe.files.rules.complaint import Complaint, FileTarget
from gpucheck.facts.claims import Severity
from gpucheck.findings import driver_too_old
from gpucheck.language import say
from gpucheck.tables import Tables
from gpucheck.tables.cuda import CudaDrivers
from gpucheck.tables.forward_compat import ForwardCompat, kind_of
from gpucheck.tables.gpus import GpuProducts
from gpucheck.tables.meant_products import meant_by


def complaints(project: Project, target: FileTarget, tables: Tables) -> Iterator[Complaint]:
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
                rule=driver_too_old.RULE.slug,
                sentence=say(
                    "{image} needs driver {needed} or newer, not {driver}; only on data-center "
                    "GPUs its cuda-compat library may make up for that.",
                    image=image.reference,
                    needed=needed,
                    driver=target.driver,
                ),
                fix=_fix(),
            )
        else:
            yield Complaint(
                line=image.line,
                severity=Severity.ERROR,
                rule=driver_too_old.RULE.slug,
                sentence=say(
                    "{image} needs driver {needed} or newer, not {driver}.",
                    image=image.reference,
                    needed=needed,
                    driver=target.driver,
                ),
                fix=_fix(),
            )


def _fix() -> str:
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
