"""What of a file is not judged, or less strictly, and why."""

from collections.abc import Iterator

from gpucheck.describe.files.builds import FAMILY
from gpucheck.describe.files.composed import Beside
from gpucheck.describe.files.machines import ASSUMED, KNOWN
from gpucheck.describe.files.model import UNKNOWN, Image, Install, Project
from gpucheck.describe.files.rules.complaint import Target
from gpucheck.language import say


def unjudged(project: Project, beside: Beside, target: Target) -> Iterator[str]:
    """Yield a sentence for each reason."""
    places = [
        (stage.line, stage.machine)
        for stage in project.stages
        if any(_has_torch(install) for install in stage.installs)
    ]
    if not project.stages:
        places = [
            (install.line, install.machine) for install in project.installs if _has_torch(install)
        ]
    for line, machine in places:
        if machine == UNKNOWN:
            yield say(
                "Line {line} leaves the platform to the build: what is wrong on x86_64 or on "
                "aarch64 alone is not reported.",
                line=line,
            )
        elif machine and machine not in KNOWN:
            yield say(
                "The tables have no builds of PyTorch for the platform of line {line}, {machine}: "
                "what depends on the platform is not judged.",
                line=line,
                machine=machine,
            )
    if target.gpus:
        yield from _images(project)
    lacking = [
        workload
        for workload in project.workloads
        if workload.asks_for_gpu is None and _for_gpus(workload.image)
    ]
    if beside.maybe and lacking:
        yield _about(beside)


def _has_torch(install: Install) -> bool:
    return any(pin.name in FAMILY for pin in install.pins)


def _for_gpus(image: Image | None) -> bool:
    return image is not None and image.for_gpus


def _images(project: Project) -> Iterator[str]:
    started = [(stage.image, stage.machine) for stage in project.stages if stage.final]
    started += [(workload.image, workload.machine) for workload in project.workloads]
    for image, machine in started:
        if image is not None and image.torch and machine not in ("", ASSUMED):
            yield say(
                "The tables know only what {image} has on x86_64, so it is not judged for the GPU.",
                image=image.reference,
            )


def _about(beside: Beside) -> str:
    if beside.readable:
        return say(
            "{file} may give these services their GPUs. Name both files, and they are judged "
            "together.",
            file=beside.maybe,
        )
    return say(
        "{file} may add the GPUs that nothing here asks for, so that is not judged.",
        file=beside.maybe,
    )
