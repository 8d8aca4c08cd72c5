"""The installed driver no longer supports this GPU, or has the wrong kernel modules for it.

Every GPU architecture has a last driver branch: later branches do not support its GPUs at all. The
kernel modules also come in two flavours. The open ones support no GPU older than Turing. The
proprietary ones support neither Grace Hopper nor any GPU from Blackwell on, and from R615 on no
package has them. So no driver of Linux serves a Volta beside a Blackwell.

Symptoms: nvidia-smi says "No devices were found", or lists only the other GPUs; the kernel log says
"is supported through the NVIDIA 470.xx Legacy drivers", "not supported by open nvidia.ko" or
"requires use of the NVIDIA open kernel modules"; PyTorch says "No CUDA GPUs are available".

Causes: an upgrade went past the last branch that supports the GPU, or installed the other flavour.

When it is reported: a GPU that NVML lists is supported, whatever a table says. If other GPUs work
and the installed PyTorch has no code for this one, such as a display card, it is only mentioned.

Fix: install the last branch that supports all GPUs of the machine, or the same branch with the
other kernel modules.
"""

from gpucheck.advice import DriverFixes
from gpucheck.derived import Gpus
from gpucheck.derived.gpu_support import GpuSupport, Unsupported
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import Nvml
from gpucheck.facts.request import Request
from gpucheck.facts.system import Pci, System
from gpucheck.facts.torch import TorchBuild
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.language import Sentence, in_turn, say
from gpucheck.tables.compilers import CubinRules, Runs

RULE = Rule(
    __name__,
    title=say("the installed driver does not support a GPU"),
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    compat_keys=("driver", "kernel_module"),
    preflight=InPreflight(drains_node=True),
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
        return NotApplicable(say("the driver belongs to the host, and this container has a GPU"))
    elsewhere = around.without_linux_driver()
    if elsewhere and (system.os == "macos" or system.jetson or not pci.gpus):
        return NotApplicable(elsewhere)  # Windows and WSL show no bus, but it may be described
    if not gpus.present():
        return NotApplicable(say("there is no NVIDIA GPU"))
    found = [unsupported for unsupported in support.unsupported() if unsupported.kind != "too-new"]
    if not found:
        return Fine(say("the tables list no GPU here that the driver does not support"))
    wanted = request.gpus is not None and request.gpus > len(nvml.gpus or ())
    could = {_torch_could(torch, cubins, unsupported) for unsupported in found}
    severity = Severity.WARNING if None in could else Severity.INFO
    if not nvml.gpus or wanted or True in could:
        severity = Severity.ERROR
    is_observed = nvml.gpus is not None or any(
        "kernel_log.nvrm" in unsupported.facts for unsupported in found
    )
    return Hit(
        headline=_headline(found),
        evidence=tuple(dict.fromkeys(fact for unsupported in found for fact in unsupported.facts)),
        fixes=tuple(_fixes(found, install)),
        severity=severity,
        confidence=Confidence.CERTAIN if is_observed else Confidence.LIKELY,
    )


def _headline(found: list[Unsupported]) -> str:
    """Return a sentence for each GPU, without the full stop of the last."""
    *before, last = found
    return in_turn([*(_ended(unsupported) for unsupported in before), _sentence(last)])


def _sentence(unsupported: Unsupported) -> Sentence:
    return say(
        "The installed driver does not support {gpu}: {why}",
        gpu=unsupported.gpu.label,
        why=unsupported.why,
    )


def _ended(unsupported: Unsupported) -> Sentence:
    return say(
        "The installed driver does not support {gpu}: {why}.",
        gpu=unsupported.gpu.label,
        why=unsupported.why,
    )


def _torch_could(torch: TorchBuild, cubins: CubinRules, found: Unsupported) -> bool | None:
    """Whether the installed PyTorch could use the GPU; None if that is unknown."""
    if not torch.arch_list or not found.gpu.compute_capability:
        return None
    return cubins.covers(torch.arch_list, found.gpu.compute_capability, torch.cuda) is not Runs.NO


def _fixes(found: list[Unsupported], install: DriverFixes) -> list[Fix]:
    branches = [unsupported.branch for unsupported in found if unsupported.branch is not None]
    if not branches:
        if "only with the open" in found[0].why:
            return [install.install(None, say("with the open kernel modules"))]
        return [install.install(None, say("with the proprietary kernel modules"))]
    last = min(branches)
    gpu = next(unsupported.gpu.label for unsupported in found if unsupported.branch == last)
    if install.branch() != last:
        why = say("branch {last} is the last that supports {gpu}", last=last, gpu=gpu)
    elif len(found) == 1:
        why = say("the last that supports this GPU")
    else:
        why = say("the last that supports {gpu}", gpu=gpu)
    return [install.install(None, why)]
