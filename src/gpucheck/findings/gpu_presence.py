"""There is no GPU, or fewer than required, or they are hidden."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from gpucheck.advice import TorchFixes
from gpucheck.derived import Gpus
from gpucheck.derived.gpus import Mask
from gpucheck.derived.surroundings import Surroundings, scheduler_of, slurm_gave_none
from gpucheck.derived.torch_code import TorchCode
from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Fix, Severity, or_else
from gpucheck.facts.driver import CudaDriver, Nvml
from gpucheck.facts.request import Request
from gpucheck.facts.system import Environment, Pci, System
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.language import in_series, in_turn, listed, say, say_many
from gpucheck.tables.gpus import GpuProducts

NO_NVIDIA_GPU = Rule(
    "no-nvidia-gpu",
    page="""\
There is no NVIDIA GPU here, or fewer than required.

A CUDA build of PyTorch runs on a machine without an NVIDIA GPU, but only on the CPU. Integrated,
AMD and Intel GPUs do not run CUDA, nor does a Mac.

Symptoms: ``torch.cuda.is_available()`` is False, ``torch.cuda.device_count()`` is 0, and
``.cuda()`` says "Found no NVIDIA driver on your system", "No CUDA GPUs are available" or CUDA error
100 (cudaErrorNoDevice).

Causes: the machine has graphics of another vendor; a cloud machine is of a type without a GPU; or
the GPU is disabled in the firmware, unplugged or assigned to a virtual machine.

When it is reported: with ``--gpus N`` also if there are some GPUs here, but fewer than N. If a host
only builds or submits jobs, nothing is wrong: say so with ``--gpus 0``. A CPU build on a machine
without a GPU is fine.

Fix: run on a machine with a GPU; or install the CPU build, which is far smaller.
""",
    title=say("no NVIDIA GPU, or fewer than required"),
    severity=Severity.ERROR,
    family="driver",
    area="GPUs",
    refuted_by=("device-placement", "cublas-matmul"),
    suppressed_by=(
        "container-no-gpu",
        "driver-missing",
        "wsl-driver-problem",
        "kernel-module-not-loaded",
        "driver-library-mismatch",
        "driver-dropped-gpu",
        "gpu-fallen-off-bus",
        "device-nodes-missing",
        "device-permission",
        "visible-devices-hides-gpus",
    ),
    refuted_by_cuda="always",
    compat_keys=("gpu", "compute_capability", "gpu_count"),
    preflight=InPreflight(
        fix=say(
            "Start the job where there are NVIDIA GPUs (in Slurm with --gpus-per-node=N, in "
            "Kubernetes with limits of nvidia.com/gpu). Without a GPU, a pre-flight tests only "
            "processes on the CPU and the network between them."
        ),
        commands=("gpucheck preflight --device cpu",),
    ),
)


_MEMORY = r" [0-9]{1,2} ?GB\Z"
"""Ends names such as GTX 1060 6GB; the product without it has the same code."""
_OF_LAPTOPS = r"Laptop|Mobile|Max-Q|\bMX[0-9]|[0-9]M\b"


@NO_NVIDIA_GPU.check
def check_no_nvidia_gpu(  # noqa: PLR0913, PLR0917  # the request, the bus, the driver and torch
    request: Request,
    gpus: Gpus,
    nvml: Nvml,
    pci: Pci,
    torch: TorchBuild,
    system: System,
    around: Surroundings,
    reinstall: TorchFixes,
    code: TorchCode,
    products: GpuProducts,
) -> Judgement:
    """Report a missing GPU, but only if somebody wants to use one."""
    if request.gpus == 0:
        return Fine(say("you said that this host uses no GPU"))
    wanted = request.gpus or 0
    if gpus.present():
        return _enough(wanted, gpus, nvml)
    evidence = [f"pci.{field}" for field in ("adapters", "former_gpus") if getattr(pci, field)]
    evidence.append("pci.gpus" if pci.gpus is not None else "system.os")
    if pci.other_display_vendors and not pci.adapters:
        evidence.append("pci.other_display_vendors")
    confidence = Confidence.LIKELY if around.in_container() else Confidence.CERTAIN
    none = _none(pci, in_container=around.in_container())
    if wanted:
        return Hit(
            headline=say_many(
                wanted,
                "{count} NVIDIA GPU is required, but {none}",
                "{count} NVIDIA GPUs are required, but {none}",
                none=none,
            ),
            evidence=("request.gpus", *evidence),
            fixes=(_find_one(pci, system),),
            confidence=confidence,
        )
    if torch.installed is False:
        return NotApplicable(say("there is no GPU, and no PyTorch that would use one"))
    if known(torch.built_for, "torch.built_for") != "cuda":
        return Fine(say("there is no NVIDIA GPU, and this PyTorch does not need one"))
    cpu_build = reinstall.install_cpu(say("it is enough if PyTorch is to run on the CPU"))
    only_builds = Fix(
        text=say("If this host only builds or submits work for other machines, tell gpucheck so."),
        commands=("gpucheck --gpus 0",),
        verify="gpucheck --gpus 0",
    )
    return Hit(
        headline=say(
            "PyTorch {version} is a CUDA build, but {none}", version=torch.version, none=none
        ),
        evidence=("torch.built_for", *evidence),
        fixes=(
            _and_its_build(_find_one(pci, system), pci, code, products),
            only_builds,
            *((or_else(cpu_build),) if cpu_build else ()),
        ),
        confidence=confidence,
    )


def _enough(wanted: int, gpus: Gpus, nvml: Nvml) -> Judgement:
    """Compare the number of GPUs with the request, which may also mean MIG instances."""
    if not wanted:
        return Fine(say("there is an NVIDIA GPU"))
    found = len(gpus.all())
    instances = sum(max(len(gpu.mig_devices or ()), 1) for gpu in nvml.gpus or ())
    if max(found, instances) >= wanted:
        return Fine(
            say_many(
                found,
                "there is {count} NVIDIA GPU, as required",
                "there are {count} NVIDIA GPUs, as required",
            )
        )
    look = Fix(
        text=say(
            "Compare this with what the machine or the job should have: the cards in their slots, "
            "the GPUs given to this container, job or virtual machine."
        ),
        commands=("lspci -d 10de:", "nvidia-smi -L"),
        verify=f"gpucheck --gpus {wanted}",
    )
    return Hit(
        headline=say_many(
            found,
            "{wanted} NVIDIA GPUs are required, but there is {count}",
            "{wanted} NVIDIA GPUs are required, but there are {count}",
            wanted=wanted,
        ),
        evidence=("request.gpus", *gpus.seen_by()),
        fixes=(look,),
    )


def _none(pci: Pci, *, in_container: bool) -> str:
    if pci.gpus and in_container:
        return say(
            "this container shows no NVIDIA GPU except those that are reserved for virtual "
            "machines (vfio-pci)"
        )
    if pci.gpus:
        return say(
            "this machine has no NVIDIA GPU except those that are reserved for virtual machines "
            "(vfio-pci)"
        )
    if in_container:
        return say("this container shows no NVIDIA GPU")
    if pci.former_gpus and pci.adapters:
        return say(
            "Windows sees no NVIDIA GPU now, only {adapters}; it has seen {gpus} here before",
            adapters=listed(pci.adapters),
            gpus=listed(pci.former_gpus),
        )
    if pci.former_gpus:
        return say(
            "Windows sees no NVIDIA GPU now; it has seen {gpus} here before",
            gpus=listed(pci.former_gpus),
        )
    if pci.adapters:
        return say(
            "this machine has no NVIDIA GPU, only {adapters}",
            adapters=listed(pci.adapters),
        )
    return say("this machine has no NVIDIA GPU")


def _and_its_build(find: Fix, pci: Pci, code: TorchCode, products: GpuProducts) -> Fix:
    """Add that a GPU which was here before needs another build, or it leads to the next fault."""
    builds = (
        (name, products.capability(re.sub(_MEMORY, "", name))) for name in pci.former_gpus or ()
    )
    needed = ((name, code.other_cuda_for(has)) for name, has in builds if has)
    former, cuda = next((found for found in needed if found[1]), ("", ""))
    if not cuda:
        return find
    also = say(
        "{gpu} also needs the build for CUDA {cuda} instead of this one, which has no code for it.",
        gpu=former,
        cuda=cuda,
    )
    return replace(find, text=in_turn((find.text, also)))


def _find_one(pci: Pci, system: System) -> Fix:
    if system.os == "macos":
        return Fix(
            text=say("Run on Linux or Windows with an NVIDIA GPU: CUDA does not exist on macOS.")
        )
    if pci.gpus:
        return Fix(
            text=say(
                "Run inside the virtual machine that has the GPU; or give the GPU back to the "
                "host: remove its IDs from the options of vfio-pci, and restart."
            ),
            commands=("grep -rn vfio /etc/modprobe.d /proc/cmdline",),
            restart="machine",
        )
    if pci.former_gpus:
        gpus = listed(pci.former_gpus)
        if re.search(_OF_LAPTOPS, gpus):
            return Fix(
                text=say(
                    "If {gpus} is still in this machine, switch it on: many laptops have a mode "
                    "without it (Eco mode, integrated graphics only), which the maker's own "
                    "software changes. If not, run on a machine with an NVIDIA GPU.",
                    gpus=gpus,
                )
            )
        return Fix(
            text=say(
                "If {gpus} is still in this machine, enable it in Device Manager; if it is not "
                "listed there, switch the machine off, unplug it, and reseat the card and its "
                "power cables. If it is gone, run on a machine with an NVIDIA GPU.",
                gpus=gpus,
            ),
            restart="machine",
        )
    text: str = say("Run on a machine with an NVIDIA GPU.")
    if system.virtualization:
        text = say(
            "Choose an instance type with an NVIDIA GPU, or pass one through to this machine."
        )
    if "amd" in (pci.other_display_vendors or ()) and system.os == "linux":
        rocm = say("An AMD GPU that ROCm supports needs PyTorch's ROCm build instead.")
        text = in_turn([text, rocm])
    return Fix(text=text)


VISIBLE_DEVICES_HIDES_GPUS = Rule(
    "visible-devices-hides-gpus",
    page="""\
CUDA_VISIBLE_DEVICES hides GPUs that this program should use.

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
""",
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


@VISIBLE_DEVICES_HIDES_GPUS.check
def check_visible_devices_hides_gpus(  # the mask, the GPUs behind it, and who wants them
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
