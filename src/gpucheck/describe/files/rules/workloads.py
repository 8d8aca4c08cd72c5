"""Services, pods and batch jobs that need GPUs and do not ask for them."""

from collections.abc import Iterator

from gpucheck.describe.files.model import Image, Project, Workload
from gpucheck.describe.files.rules.complaint import Complaint
from gpucheck.facts.claims import Severity
from gpucheck.findings import container_no_gpu, shm_too_small
from gpucheck.language import say


def complaints(project: Project) -> Iterator[Complaint]:
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
            rule=container_no_gpu.RULE.slug,
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
            rule=container_no_gpu.RULE.slug,
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
        rule=container_no_gpu.RULE.slug,
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
        rule=shm_too_small.RULE.slug,
        sentence=say(
            "{name} uses {gpus} GPUs with 64 MB in /dev/shm, which is too little for NCCL and for "
            "the workers of a DataLoader.",
            name=workload.name,
            gpus=workload.gpus,
        ),
        fix=fix,
    )
