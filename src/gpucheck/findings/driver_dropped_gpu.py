"""The installed driver no longer supports this GPU, or has the wrong kernel modules for it.

NVIDIA ends the support of a GPU architecture with a driver branch: later branches do not support
these GPUs at all. The kernel modules also come in two flavours: the open ones support no GPU older
than Turing, the proprietary ones no GPU from Blackwell on (nor Grace Hopper).

Symptoms: nvidia-smi says "No devices were found", or lists only the other GPUs; the kernel log says
"is supported through the NVIDIA 470.xx Legacy drivers", "not supported by open nvidia.ko" or
"requires use of the NVIDIA open kernel modules"; PyTorch says "No CUDA GPUs are available".

Causes: an upgrade went past the last branch that supports the GPU, or installed the other flavour.

When it is reported: a GPU that NVML lists is supported, whatever a table says. A display card next
to GPUs that work is only mentioned if the installed PyTorch has no code for it.

Fix: install the last branch that supports all GPUs of the machine; or the same branch with the
other kernel modules.
"""

from gpucheck.advice import DriverFixes
from gpucheck.derived import Gpus
from gpucheck.derived.gpu_support import GpuSupport, Unsupported
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.nvml import Nvml
from gpucheck.facts.pci import Pci
from gpucheck.facts.request import Request
from gpucheck.facts.system import System
from gpucheck.facts.torch_build import TorchBuild
from gpucheck.findings.form import Fine, Hit, Judgement, NotApplicable, Rule
from gpucheck.tables.cubin_rules import CubinRules, Runs

RULE = Rule(
    __name__,
    title="a GPU that the installed driver does not drive",
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    compat_keys=("driver", "kernel_module"),
)


@RULE.check
def check(  # noqa: PLR0913, PLR0917  # GPUs, driver, who wants them, and where
    gpus: Gpus,
    support: GpuSupport,
    nvml: Nvml,
    torch: TorchBuild,
    request: Request,
    around: Surroundings,
    cubins: CubinRules,
    install: DriverFixes,
    pci: Pci,
    system: System,
) -> Judgement:
    """Judge every GPU that is on the bus and that the driver does not list."""
    if around.in_container() and nvml.gpus:
        return NotApplicable("the driver is the host's, and this container has been given a GPU")
    elsewhere = around.without_linux_driver()
    if elsewhere and (system.os == "macos" or system.jetson or not pci.gpus):
        return NotApplicable(elsewhere)  # Windows and WSL show no bus, but it may be described
    if not gpus.present():
        return NotApplicable("there is no NVIDIA GPU")
    found = [one for one in support.unsupported() if one.kind != "too-new"]
    if not found:
        return Fine("the driver drives every GPU that it does not list, as far as the tables tell")
    wanted = request.gpus is not None and request.gpus > len(nvml.gpus or ())
    could = {_torch_could(torch, cubins, one) for one in found}
    severity = Severity.WARNING if None in could else Severity.INFO
    if not nvml.gpus or wanted or True in could:
        severity = Severity.ERROR
    told = nvml.gpus is not None or any("kernel_log.nvrm" in one.facts for one in found)
    return Hit(
        headline="The installed driver does not drive "
        + "; nor ".join(f"{one.gpu.label}: {one.why}" for one in found),
        evidence=tuple(dict.fromkeys(fact for one in found for fact in one.facts)),
        fixes=tuple(_fixes(found, install)),
        severity=severity,
        confidence=Confidence.CERTAIN if told else Confidence.LIKELY,
    )


def _torch_could(torch: TorchBuild, cubins: CubinRules, found: Unsupported) -> bool | None:
    """Whether the installed PyTorch could use the GPU; None if that is unknown."""
    if not torch.arch_list or not found.gpu.compute_capability:
        return None
    return cubins.covers(torch.arch_list, found.gpu.compute_capability, torch.cuda) is not Runs.NO


def _fixes(found: list[Unsupported], install: DriverFixes) -> list[Fix]:
    branches = [one.branch for one in found if one.branch is not None]
    if not branches:
        flavour = "open" if "only with the open" in found[0].why else "proprietary"
        return [install.install(None, f"with the {flavour} kernel modules")]
    last = min(branches)
    return [install.install(None, f"branch {last} is the last for {found[0].gpu.label}")]
