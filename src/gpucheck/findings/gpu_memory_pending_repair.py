"""Bad memory was found on a GPU, and its repair waits for a reset.

Data-centre GPUs replace bad rows (row remapping, from Ampere on) or exclude bad pages (page
retirement, before Ampere) by themselves. The repair takes effect at the next reset of the GPU;
until then the bad memory may be used again.

Symptoms: ``nvidia-smi -q`` says "Pending : Yes" under Remapped Rows or Retired Pages; the kernel
log has Xid 63; jobs occasionally fail with an ECC error (Xid 48, 94 or 95).

The GPU works, so this is a warning. A failed repair is another finding, gpu-hardware-fault.

Fix: reset the GPU or reboot when no job runs on it.
"""

from gpucheck.advice import DriverFixes
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Fix, Severity, or_else
from gpucheck.facts.driver import Nvml, NvmlGpu
from gpucheck.facts.system import Container, System
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, OnGpu, Rule
from gpucheck.language import in_series, say

RULE = Rule(
    __name__,
    title=say("a repair of GPU memory is pending until a reset"),
    severity=Severity.WARNING,
    family="driver",
    concern="hardware",
    suppressed_by=("gpu-hardware-fault", "gpu-fallen-off-bus"),
    needs_gpu=True,
    compat_keys=("row_remap_pending",),
    preflight=InPreflight(exit_class=1, breaks_node=False),
    # Such a GPU may take new work (docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt, Error Recovery
    # and Response Flags), so nobody has to drain a node for it.
    on_gpu=OnGpu(
        "watch",
        say(
            "NVIDIA lets such a GPU take new work; a reset, when nothing runs on it, repairs its "
            "memory"
        ),
    ),
)


@RULE.check
def check(nvml: Nvml, system: System, container: Container, driver: DriverFixes) -> Judgement:
    """Look for a pending row remap or page retirement."""
    gpus = known(nvml.gpus, "nvml.gpus")
    if not gpus:
        return NotApplicable(say("there is no NVIDIA GPU"))
    pending = [
        (at, field)
        for at, gpu in enumerate(gpus)
        for field in ("rows_pending", "pages_pending")
        if getattr(gpu, field)
    ]
    if not pending:
        for at, gpu in enumerate(gpus):
            if gpu.rows_pending is None and gpu.pages_pending is None and not _has_none(at, nvml):
                raise UnknownFactError(f"nvml.gpus.{at}.rows_pending", gpu.problem("rows_pending"))
        return Fine(say("no repair of GPU memory is pending"))
    places = sorted({at for at, _ in pending})
    indices = [_index(at, gpus[at]) for at in places]
    names = in_series([f"GPU {index}" for index in indices])
    is_of_rows = any(field == "rows_pending" for _, field in pending)
    # The names by which nvidia-smi, DCGM and NVIDIA's pages call it: people search for them.
    headline = (
        say("Row remapping is pending on {gpus}: a reset repairs the defective memory", gpus=names)
        if is_of_rows
        else say(
            "Page retirement is pending on {gpus}: a reset repairs the defective memory", gpus=names
        )
    )
    return Hit(
        headline=headline,
        evidence=tuple(f"nvml.gpus.{at}.{field}" for at, field in pending),
        fixes=(
            _reset(indices, system, container),
            or_else(driver.reboot(say("this resets every GPU"))),
        ),
        gpus=RULE.names(f"nvml.gpus.{at}" for at in places),
    )


def _index(at: int, gpu: NvmlGpu) -> int:
    return at if gpu.index is None else gpu.index


def _has_none(at: int, nvml: Nvml) -> bool:
    """Whether the GPU has no such repair mechanism: consumer cards do not."""
    gpu = (nvml.gpus or [])[at]
    problems = (gpu.problem("rows_pending"), gpu.problem("pages_pending"))
    return all("not supported" in problem.lower() for problem in problems)


def _reset(indices: list[int], system: System, container: Container) -> Fix:
    if container.runtime:
        return Fix(
            text=say(
                "On the host, when no job uses the GPU: {command}.",
                command="nvidia-smi --gpu-reset -i INDEX",
            )
        )
    sudo = "" if system.os == "windows" else "sudo "
    return Fix(
        text=say("Reset the GPU when no job uses it. On an NVSwitch system all GPUs must be idle."),
        commands=tuple(f"{sudo}nvidia-smi --gpu-reset -i {index}" for index in indices),
    )
