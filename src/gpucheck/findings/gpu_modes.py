"""Modes of a GPU that keep CUDA from using it as intended."""

from gpucheck.derived.gpu_labels import gpu_index, gpu_names
from gpucheck.derived.gpus import GpuPlaces
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity, or_else
from gpucheck.facts.driver import CudaDriver, GpuProcess, Nvml, NvmlGpu
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays
from gpucheck.language import Sentence, say, say_many

COMPUTE_MODE_EXCLUSIVE = Rule(
    "compute-mode-exclusive",
    page="""\
The compute mode of the GPU keeps this process out.

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
""",
    title=say("the compute mode keeps this process out"),
    severity=Severity.ERROR,
    family="driver",
    suppressed_by=("gpu-fallen-off-bus",),
    needs_gpu=True,
    compat_keys=("compute_mode", "other_processes"),
)

_EXCLUSIVE = ("exclusive-process", "exclusive-thread")
_MPS = "nvidia-cuda-mps"


@COMPUTE_MODE_EXCLUSIVE.check
def check_compute_mode_exclusive(
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
    if exclusive and (seen := says.points_at(COMPUTE_MODE_EXCLUSIVE.slug)):
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


MIG_MISCONFIGURED = Rule(
    "mig-misconfigured",
    page="""\
A GPU is in MIG mode, but CUDA cannot use it as intended.

MIG splits a GPU into instances. Three things can go wrong:
- In MIG mode without any instance the GPU is invisible to CUDA: "No CUDA GPUs are available",
  although nvidia-smi shows it.
- CUDA_VISIBLE_DEVICES names an instance that does not exist. The names change whenever the
  instances are created again.
- One process sees only one instance, the first in the list. Several instances do not work as
  several GPUs for DistributedDataParallel or ``device_map="auto"``.

A change of the mode takes effect after a reset of the GPU or a restart.

Fix: create instances, or turn MIG off; name an instance that ``nvidia-smi -L`` lists; start one
process for each instance.
""",
    title=say("MIG mode that CUDA cannot use as intended"),
    severity=Severity.ERROR,
    family="driver",
    area="GPUs",
    suppressed_by=("driver-library-mismatch", "gpu-fallen-off-bus", "device-permission"),
    needs_gpu=True,
)

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_FACT = f"environment.variables.{_VARIABLE}"
_OLD_NAMES = "MIG-GPU-"
_MOST_NAMED = 4  # chosen: a GPU may have seven, and the first ones show the form of the name


@MIG_MISCONFIGURED.check
def check_mig_misconfigured(
    nvml: Nvml, cuda: CudaDriver, environment: Environment, request: Request, around: Surroundings
) -> Judgement:
    """Look at the names in CUDA_VISIBLE_DEVICES, then at each GPU in MIG mode."""
    if request.gpus == 0:
        return Fine(say("no GPU is to be used"))
    value = environment.get(_VARIABLE) or ""
    names = [name for entry in value.split(",") if (name := entry.strip())]
    gpus = nvml.gpus or []
    if names and names[0].startswith("MIG-"):
        return _judge_names(names, gpus, cuda, around)
    if nvml.gpus is None:
        if value:
            return NotApplicable(say("{variable} names no MIG instance", variable=_VARIABLE))
        raise UnknownFactError("nvml.gpus")
    empty = [at for at, gpu in enumerate(gpus) if gpu.mig_enabled and gpu.mig_devices == []]
    if empty and not (cuda.device_count and (value or around.in_container())):
        return _hit_empty(empty, gpus, around, others_work=bool(cuda.device_count))
    pending = [
        at
        for at, gpu in enumerate(gpus)
        if None not in (gpu.mig_enabled, gpu.mig_pending) and gpu.mig_enabled != gpu.mig_pending
    ]
    if pending:
        return _hit_pending(pending, gpus)
    if not any(gpu.mig_enabled for gpu in gpus):
        return NotApplicable(say("no GPU is known to be in MIG mode"))
    return Fine(say("every GPU in MIG mode that is used has instances"))


def _judge_names(
    names: list[str], gpus: list[NvmlGpu], cuda: CudaDriver, around: Surroundings
) -> Judgement:
    instances = [mig.uuid for gpu in gpus for mig in gpu.mig_devices or ()]
    if cuda.init_code != 0 and not names[0].startswith(_OLD_NAMES):
        unknown = None in instances or any(gpu.mig_devices is None for gpu in gpus) or not gpus
        if unknown:
            raise UnknownFactError("nvml.gpus", say("the names of the MIG instances are not known"))
        if not any(uuid and uuid.startswith(names[0]) for uuid in instances):
            return Hit(
                headline=say(
                    "{variable} names the MIG instance {instance}, which does not exist",
                    variable=_VARIABLE,
                    instance=names[0],
                ),
                evidence=(_FACT, *(_names_of(gpus) or ("nvml.gpus",))),
                fixes=(_name_one(around, [uuid for uuid in instances if uuid]),),
            )
    if len(names) > 1 and (cuda.device_count or 0) < len(names):
        observed = cuda.device_count is not None
        return Hit(
            headline=say(
                "{variable} names {count} MIG instances, but a process sees only the first of them",
                variable=_VARIABLE,
                count=len(names),
            ),
            evidence=(_FACT, *(("cuda_driver.device_count",) if observed else ())),
            fixes=(_one_each(), _switch_off(gpus, around)),
            confidence=Confidence.CERTAIN if observed else Confidence.LIKELY,
        )
    return Fine(say("{variable} names a MIG instance", variable=_VARIABLE))


def _names_of(gpus: list[NvmlGpu]) -> tuple[str, ...]:
    """Return the facts that name the instances, of the first ones."""
    return tuple(
        f"nvml.gpus.{at}.mig_devices.{number}.uuid"
        for at, gpu in enumerate(gpus)
        for number, _instance in enumerate(gpu.mig_devices or ())
    )[:_MOST_NAMED]


def _name_one(around: Surroundings, instances: list[str]) -> Fix:
    if not instances:
        return Fix(
            text=say(
                "There is no MIG instance: unset the variable, or ask an administrator to create "
                "an instance."
            ),
            commands=around.unset(_VARIABLE),
        )
    return Fix(
        text=say("Name an instance that exists (the list shows the sizes)."),
        commands=("nvidia-smi -L", *around.set(_VARIABLE, instances[0])),
    )


def _one_each() -> Fix:
    return Fix(
        text=say(
            "Start one process for each instance, and set the variable to another UUID of the "
            "list in each of them."
        ),
        commands=("nvidia-smi -L",),
    )


def _switch_off(gpus: list[NvmlGpu], around: Surroundings) -> Fix:
    """Return the fix that gives one process a whole GPU: only an administrator can do that."""
    split = [at for at, gpu in enumerate(gpus) if gpu.mig_enabled]
    index = gpu_index(gpus, split[0] if split else 0)
    if around.in_container():
        return Fix(
            text=say(
                "Or, to use a whole GPU in one process, ask an administrator of the host to switch "
                "MIG off. That removes the instances of everyone who uses this GPU."
            )
        )
    return Fix(
        text=say(
            "Or, to use a whole GPU in one process, switch MIG off, as root and while nothing uses "
            "the GPU. That removes the instances of everyone who uses it."
        ),
        commands=(f"sudo nvidia-smi -i {index} -mig 0",),
    )


def _hit_empty(
    empty: list[int], gpus: list[NvmlGpu], around: Surroundings, *, others_work: bool
) -> Hit:
    index = gpu_index(gpus, empty[0])
    if around.in_container():
        fixes = [
            Fix(
                text=say(
                    "Give the container an instance when it starts: {counted} as {listing} counts "
                    "them on the host; in Kubernetes a resource such as {resource}.",
                    counted="`GPU:INSTANCE`",
                    listing="nvidia-smi -L",
                    resource="nvidia.com/mig-1g.10gb",
                ),
                commands=(f"docker run --gpus '\"device={index}:0\"' ...",),
            )
        ]
    else:
        fixes = [
            Fix(
                text=say(
                    "Create instances, as root. The first command lists the profiles of this GPU "
                    "with their IDs. The second command creates one instance of the whole GPU "
                    "(profile 0) with its compute instance. For smaller instances, give the IDs of "
                    "other profiles instead of 0, separated by commas. Instances are gone after a "
                    "reboot: create them again."
                ),
                commands=(
                    f"sudo nvidia-smi mig -i {index} -lgip",
                    f"sudo nvidia-smi mig -i {index} -cgi 0 -C",
                ),
            ),
            Fix(
                text=say(
                    "Or, to use the whole GPU without MIG, switch MIG off, as root and while "
                    "nothing uses the GPU."
                ),
                commands=(f"sudo nvidia-smi -i {index} -mig 0",),
            ),
        ]
    return Hit(
        headline=say_many(
            len(empty),
            "{gpus} is in MIG mode without any instance, so CUDA cannot use it",
            "{gpus} are in MIG mode without any instance, so CUDA cannot use them",
            gpus=gpu_names(gpus, empty),
        ),
        evidence=tuple(
            f"nvml.gpus.{at}.{field}" for at in empty for field in ("mig_enabled", "mig_devices")
        ),
        fixes=tuple(fixes),
        severity=Severity.WARNING if others_work else None,
    )


def _hit_pending(pending: list[int], gpus: list[NvmlGpu]) -> Hit:
    reset = Fix(
        text=say("Reset the GPU while nothing uses it, or restart."),
        restart="machine",
        commands=(f"sudo nvidia-smi --gpu-reset -i {gpu_index(gpus, pending[0])}",),
    )
    return Hit(
        headline=say(
            "A change of MIG mode is pending on {gpus}: it takes effect at the next reset",
            gpus=gpu_names(gpus, pending),
        ),
        evidence=tuple(
            f"nvml.gpus.{at}.{field}" for at in pending for field in ("mig_enabled", "mig_pending")
        ),
        fixes=(reset,),
        severity=Severity.WARNING,
    )
