"""The compute mode of the GPU keeps this process out.

The compute mode of a GPU determines how many processes may use it: ``Default`` allows any number,
``Exclusive_Process`` one, ``Prohibited`` none.

Symptoms: PyTorch says "CUDA error: all CUDA-capable devices are busy or unavailable" (error 46),
although nvidia-smi shows free memory. Under Windows and WSL the same error has other causes: a GPU
of the driver model WDDM, such as every GeForce, is always in the default mode.

When it is reported: exclusive mode by itself is a common setting on clusters, and NVIDIA recommends
it together with MPS. gpucheck reports this only when another process holds the GPU, or when no
process may use it.

If other GPUs are open, a prohibited GPU is only mentioned: somebody set this on purpose, and a DGX
Station ships with its display card in this mode.

Fix: end the process that holds the GPU, use another GPU, or set the mode back to the default.
"""

from gpucheck.derived.gpu_labels import gpu_index, gpu_names
from gpucheck.derived.gpus import GpuPlaces
from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Fix, Severity, or_else
from gpucheck.facts.driver import GpuProcess, Nvml, NvmlGpu
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays
from gpucheck.language import Sentence, say, say_many

RULE = Rule(
    __name__,
    title=say("the compute mode keeps this process out"),
    severity=Severity.ERROR,
    family="driver",
    suppressed_by=("gpu-fallen-off-bus",),
    needs_gpu=True,
    compat_keys=("compute_mode", "other_processes"),
)

_EXCLUSIVE = ("exclusive-process", "exclusive-thread")
_MPS = "nvidia-cuda-mps"


@RULE.check
def check(
    nvml: Nvml,
    places: GpuPlaces,
    environment: Environment,
    request: Request,
    says: SelfTestSays,
) -> Judgement:
    """Look whether every GPU that this process would see is closed to it."""
    if request.gpus == 0:
        return Fine(say("no GPU is to be used"))
    gpus = known(nvml.gpus, "nvml.gpus")
    closed = {at for at, gpu in enumerate(gpus) if gpu.compute_mode == "prohibited"}
    exclusive = {at for at, gpu in enumerate(gpus) if gpu.compute_mode in _EXCLUSIVE}
    if not closed and not exclusive:
        if any(gpu.compute_mode is None for gpu in gpus):
            at = next(at for at, gpu in enumerate(gpus) if gpu.compute_mode is None)
            known(gpus[at].compute_mode, f"nvml.gpus.{at}.compute_mode")
        return Fine(say("every GPU is open to any number of processes"))
    visible = places.visible()
    if not visible:
        return NotApplicable(say("no GPU is visible"))
    held = set() if _under_mps(environment) else {at for at in exclusive if _holder(gpus[at])}
    shut = [at for at in visible if at in closed | held]
    if len(shut) == len(visible):
        return _hit(shut, gpus)
    if any(at in closed for at in shut):
        return _warn([at for at in shut if at in closed], gpus)
    if exclusive and (seen := says.points_at(RULE.slug)):
        return _refused(sorted(exclusive), gpus, seen)
    return Fine(say("a GPU in exclusive mode is free for this process"))


def _refused(exclusive: list[int], gpus: list[NvmlGpu], seen: tuple[str, ...]) -> Hit:
    """Report that CUDA found the device taken, by a process that NVML does not show here."""
    return Hit(
        headline=say_many(
            len(exclusive),
            "{gpus} is in exclusive mode, and CUDA reports that it is taken",
            "{gpus} are in exclusive mode, and CUDA reports that they are taken",
            gpus=gpu_names(gpus, exclusive),
        ),
        evidence=(*(f"nvml.gpus.{at}.compute_mode" for at in exclusive), *seen),
        fixes=(_end(GpuProcess()), or_else(_default_mode(gpu_index(gpus, exclusive[0])))),
        confidence=Confidence.LIKELY,
    )


def _under_mps(environment: Environment) -> bool:
    return bool(environment.get("CUDA_MPS_PIPE_DIRECTORY"))


def _holder(gpu: NvmlGpu) -> GpuProcess | None:
    """Return the process that has the GPU to itself; NVIDIA's MPS shares the GPU it holds."""
    holders = [process for process in gpu.processes or () if process.kind == "compute"]
    if any((process.process_name or "").startswith(_MPS) for process in holders):
        return None
    return holders[0] if holders else None


def _hit(shut: list[int], gpus: list[NvmlGpu]) -> Hit:
    at = shut[0]
    holder = _holder(gpus[at])
    index = gpu_index(gpus, at)
    evidence = [f"nvml.gpus.{gpu_at}.compute_mode" for gpu_at in shut]
    if gpus[at].compute_mode == "prohibited" or holder is None:
        return Hit(
            headline=say_many(
                len(shut),
                "{gpus} is in compute mode Prohibited: no process may use CUDA there",
                "{gpus} are in compute mode Prohibited: no process may use CUDA there",
                gpus=gpu_names(gpus, shut),
            ),
            evidence=tuple(evidence),
            fixes=(_default_mode(index),),
        )
    return Hit(
        headline=say_many(
            len(shut),
            "{gpus} is in exclusive mode and held by {holder}",
            "{gpus} are in exclusive mode and held by {holder}",
            gpus=gpu_names(gpus, shut),
            holder=_named(holder),
        ),
        evidence=(*evidence, f"nvml.gpus.{at}.processes"),
        fixes=(_end(holder), or_else(_default_mode(index))),
        confidence=Confidence.CERTAIN if holder.process_name else Confidence.LIKELY,
    )


def _named(holder: GpuProcess) -> Sentence:
    if holder.pid is None:
        return say("another process")
    if not holder.process_name:
        return say("process {pid}", pid=holder.pid)
    return say("{name} (pid {pid})", name=holder.process_name, pid=holder.pid)


def _end(holder: GpuProcess) -> Fix:
    if holder.pid is None:
        return Fix(
            text=say("Wait for the process that holds it, or end it if it is yours."),
            commands=("nvidia-smi --query-compute-apps=gpu_uuid,pid,process_name --format=csv",),
        )
    return Fix(
        text=say("Wait for process {pid}, or end it if it is yours.", pid=holder.pid),
        commands=(f"ps -fp {holder.pid}",),
    )


def _warn(closed: list[int], gpus: list[NvmlGpu]) -> Hit:
    return Hit(
        headline=say_many(
            len(closed),
            "{gpus} is in compute mode Prohibited; other GPUs are open",
            "{gpus} are in compute mode Prohibited; other GPUs are open",
            gpus=gpu_names(gpus, closed),
        ),
        evidence=tuple(f"nvml.gpus.{at}.compute_mode" for at in closed),
        fixes=(_default_mode(gpu_index(gpus, closed[0])),),
        severity=Severity.INFO,
    )


def _default_mode(index: int) -> Fix:
    return Fix(
        text=say("Reset the mode to the default, as root."),
        commands=(f"sudo nvidia-smi -i {index} -c DEFAULT",),
    )
