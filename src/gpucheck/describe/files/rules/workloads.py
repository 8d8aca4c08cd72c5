"""Services, pods and batch jobs that need GPUs and do not ask for them."""

from collections.abc import Iterator

from gpucheck.describe.files.model import Image, Project, Workload
from gpucheck.describe.files.rules.complaint import Complaint
from gpucheck.facts.claims import Severity
from gpucheck.findings import container_no_gpu, shm_too_small
from gpucheck.language import say


def complaints(project: Project) -> Iterator[Complaint]:
    """Yield what is started without the GPUs or the shared memory that it needs."""
    for one in project.workloads:
        image = one.image
        if image is None or not image.for_gpus:
            continue
        if one.asks_for_gpu is None:
            continue
        if not one.asks_for_gpu:
            yield _without_gpu(one, image)
        elif image.has_torch and (one.gpus or 0) > 1 and not one.shared_memory:
            yield _little_memory(one)
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


def _without_gpu(one: Workload, image: Image) -> Complaint:
    if one.by == "compose":
        return Complaint(
            line=one.line,
            severity=Severity.WARNING,
            rule=container_no_gpu.RULE.slug,
            sentence=say(
                "The service {name} runs {image} without a GPU, unless Docker's default runtime "
                "is nvidia.",
                name=one.name,
                image=image.reference,
            ),
            fix=say(
                "Reserve it: deploy.resources.reservations.devices with driver nvidia, count, and "
                "capabilities [gpu]."
            ),
        )
    if one.runtime_class is not None:
        return Complaint(
            line=one.runtime_class.line,
            severity=Severity.INFO,
            rule=container_no_gpu.RULE.slug,
            sentence=say(
                "The container {name} relies on the runtime class {runtime}: Kubernetes does not "
                "count the GPUs that it uses.",
                name=one.name,
                runtime=one.runtime_class.name,
            ),
            fix=_limit(),
        )
    return Complaint(
        line=one.line,
        severity=Severity.WARNING,
        rule=container_no_gpu.RULE.slug,
        sentence=say(
            "The container {name} runs {image}, and asks for no GPU.",
            name=one.name,
            image=image.reference,
        ),
        fix=_limit(),
    )


def _limit() -> str:
    return say("Set resources.limits of the container: nvidia.com/gpu: 1.")


def _little_memory(one: Workload) -> Complaint:
    if one.by == "compose":
        fix = say("Set shm_size: 8gb, or ipc: host.")
    else:
        fix = say("Mount an emptyDir with medium: Memory at /dev/shm.")
    return Complaint(
        line=one.line,
        severity=Severity.WARNING,
        rule=shm_too_small.RULE.slug,
        sentence=say(
            "{name} uses {gpus} GPUs with 64 MB in /dev/shm, which is too little for NCCL and for "
            "the workers of a DataLoader.",
            name=one.name,
            gpus=one.gpus,
        ),
        fix=fix,
    )
