"""CUDA_VISIBLE_DEVICES hides GPUs that this program should use.

CUDA reads the list from the left and stops at the first entry that names no GPU; everything after
it is hidden. So an empty value, ``-1``, an index that does not exist, a wrong UUID, a word
(``all``) or a duplicate entry can hide every GPU. nvidia-smi ignores the variable and shows every
GPU.

Symptoms: ``torch.cuda.is_available()`` is False, ``device_count()`` is 0, and ``.cuda()`` says "No
CUDA GPUs are available" (error 100). If only the end of the list is lost,
``torch.device("cuda:3")`` says "invalid device ordinal" (error 101).

When it is reported: a list that names GPUs of this machine is fine, however short, because that is
its purpose. If a process should see no GPU, say so with ``--gpus 0``.

Fix: unset the variable, or name GPUs that exist, before Python starts. In a job of a batch
scheduler (Slurm, PBS, LSF), request a GPU instead: the others are in use by other jobs.
"""

from collections.abc import Sequence

from gpucheck.derived import Gpus
from gpucheck.derived.gpus import Mask
from gpucheck.derived.surroundings import Surroundings, scheduler_of, slurm_gave_none
from gpucheck.facts import known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.driver import CudaDriver, Nvml
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.language import in_series, in_turn, say, say_many

RULE = Rule(
    __name__,
    title=say("CUDA_VISIBLE_DEVICES hides GPUs"),
    severity=Severity.ERROR,
    family="driver",
    area="GPUs",
    suppressed_by=(
        "container-no-gpu",
        "driver-missing",
        "wsl-driver-problem",
        "kernel-module-not-loaded",
        "driver-library-mismatch",
        "driver-dropped-gpu",
        "libcuda-stub-loaded",
        "gpu-fallen-off-bus",
        "device-permission",
        "fabric-manager-down",
    ),
)

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_ALL = "all"
"""What Docker's NVIDIA_VISIBLE_DEVICES accepts, and CUDA does not."""
_REQUESTS = {
    "Slurm": "srun --gres=gpu:{} gpucheck",
    "PBS": "qsub -I -l select=1:ngpus={}",
    "LSF": "bsub -I -gpu num={} gpucheck",
}
_ALTERED = Fix(
    text=say(
        "Slurm gave this job GPUs, and sets {variable} to them itself. Remove the line that sets "
        "another value from your job script or shell, then submit the job again.",
        variable=_VARIABLE,
    )
)
_FACT = f"environment.variables.{_VARIABLE}"


@RULE.check
def check(  # the mask, the GPUs behind it, and who wants them
    environment: Environment,
    gpus: Gpus,
    cuda: CudaDriver,
    torch: TorchBuild,
    request: Request,
    around: Surroundings,
    nvml: Nvml,
) -> Judgement:
    """Apply CUDA_VISIBLE_DEVICES as CUDA does; the number that CUDA itself reports decides."""
    known(environment.variables, "environment.variables")
    value = environment.get(_VARIABLE)
    if value is None:
        return Fine(say("{variable} is not set", variable=_VARIABLE))
    if request.gpus == 0:
        return Fine(say("no GPU is to be used"))
    if torch.installed is not False and torch.built_for == "cpu":
        return NotApplicable(say("a CPU build of PyTorch uses no GPU"))
    if not gpus.present():
        return NotApplicable(say("there is no NVIDIA GPU"))
    mask = gpus.mask()
    if mask.kind == "mig":
        return NotApplicable(say("{variable} names MIG instances", variable=_VARIABLE))
    seen = len(mask.chosen)
    if cuda.init_code == 0 and cuda.device_count is not None:
        seen = cuda.device_count
    count = len(gpus.all())
    short = request.gpus is not None and seen < request.gpus <= count
    if seen >= count or (seen and not mask.lost and not short):
        return Fine(
            say(
                "{variable}={value} shows {seen} of {count} GPUs, as intended",
                variable=_VARIABLE,
                value=value,
                seen=seen,
                count=count,
            )
        )
    evidence = [_FACT, *gpus.seen_by()]
    if cuda.init_code is not None:
        evidence.append("cuda_driver.init_code")
    if short:
        evidence.append("request.gpus")
    uuids = [gpu.uuid for gpu in nvml.gpus or ()]
    return Hit(
        headline=_headline(value, mask, seen, count),
        evidence=tuple(evidence),
        fixes=_fixes(value, mask, uuids, count, request.gpus, environment, around),
        severity=Severity.WARNING if seen and not short else Severity.ERROR,
    )


def _headline(value: str, mask: Mask, seen: int, count: int) -> str:
    shown = f'{_VARIABLE}="{value}"'
    if not seen:
        if count == 1:
            all_hidden = say("{setting} hides the GPU", setting=shown)
        elif count == 2:  # noqa: PLR2004  # nobody says "all 2"
            all_hidden = say("{setting} hides both GPUs", setting=shown)
        else:
            all_hidden = say("{setting} hides all {count} GPUs", setting=shown, count=count)
        if mask.kind == "empty":
            return all_hidden
        return say("{what}: {why}", what=all_hidden, why=mask.why)
    if mask.lost:
        return say(
            "{setting} shows {seen} of {count} GPUs, and hides {lost}: {why}",
            setting=shown,
            seen=seen,
            count=count,
            lost=in_series(mask.lost),
            why=mask.why,
        )
    return say(
        "{setting} shows {seen} of {count} GPUs, fewer than requested",
        setting=shown,
        seen=seen,
        count=count,
    )


def _fixes(
    value: str,
    mask: Mask,
    uuids: Sequence[str | None],
    count: int,
    gpus: int | None,
    environment: Environment,
    around: Surroundings,
) -> tuple[Fix, ...]:
    if scheduler := scheduler_of(environment):
        own = scheduler == "Slurm" and not slurm_gave_none(environment)
        is_altered = own and (bool(mask.bad) or not mask.chosen)
        return (_ALTERED if is_altered else _request(scheduler, gpus or 1),)
    everything = Fix(
        text=say(
            "Unset the variable where it is set (a shell, script, notebook or image), before "
            "Python starts. CUDA then sees every GPU."
        ),
        commands=around.unset(_VARIABLE),
    )
    if count == 1:
        return (everything,)
    asked = 0 if value.strip() == _ALL else len(mask.lost)
    chosen = mask.chosen or range(min(asked, count) or count)
    name = (
        say("Or name only GPUs that exist.") if value.strip() else say("Or name the GPUs to use.")
    )
    if mask.kind == "uuids":
        named = ",".join(uuids[at] or "" for at in chosen)
        by_uuid = Fix(
            text=in_turn([name, say("The first command lists their UUIDs.")]),
            commands=("nvidia-smi -L", *around.set(_VARIABLE, named)),
        )
        return everything, by_uuid
    by_index = Fix(
        text=name,
        commands=around.set(_VARIABLE, ",".join(map(str, chosen))),
    )
    return everything, by_index


def _request(scheduler: str, gpus: int) -> Fix:
    """Return the fix in a job: a GPU that it was not given may be at work for somebody else."""
    return Fix(
        text=say_many(
            gpus,
            "Request {count} GPU from {scheduler}, and do not set {variable} yourself: the GPUs "
            "that this job was not given are those of other jobs.",
            "Request {count} GPUs from {scheduler}, and do not set {variable} yourself: the GPUs "
            "that this job was not given are those of other jobs.",
            scheduler=scheduler,
            variable=_VARIABLE,
        ),
        commands=(_REQUESTS[scheduler].format(gpus),),
    )
