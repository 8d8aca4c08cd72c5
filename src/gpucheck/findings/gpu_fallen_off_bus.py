"""A GPU no longer answers: it has fallen off the bus, or never came up.

Symptoms: nvidia-smi says "Unable to determine the device handle for GPU 0000:05:00.0: GPU is lost.
Reboot the system to recover this GPU", or simply lists one GPU fewer; the kernel log has "NVRM: Xid
(PCI:0000:05:00): 79, GPU has fallen off the bus". Running programs fail with "CUDA error:
unspecified launch failure" or error 999, and new ones see fewer GPUs, or none.

Causes: power (a weak or shared cable, a power supply that cannot follow the peaks), heat, a riser
or slot with a bad contact, firmware, or a failing card.

When it is reported: gpucheck also reports a GPU on the PCI bus that the driver is bound to but does
not list, unless the branch or the flavour of the driver explains it. A GPU that answers again is
fine: it was reset.

Fix: restart. If the GPU stays away, switch the power off and on. If it comes back, find the cause
before the next long job.
"""

from gpucheck.advice import DriverFixes
from gpucheck.derived.gpu_labels import at_pci, gpu_names
from gpucheck.derived.gpu_support import GpuSupport
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import DeviceNodes, KernelLog, NvidiaSmi, Nvml
from gpucheck.facts.system import Pci
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, OnGpu, Rule
from gpucheck.language import in_series, say, say_many

RULE = Rule(
    __name__,
    title=say("a GPU has fallen off the bus"),
    severity=Severity.ERROR,
    family="driver",
    concern="hardware",
    suppressed_by=("driver-dropped-gpu", "driver-library-mismatch"),
    preflight=InPreflight(exit_class=1),
    # Xid 79 is RESTART_BM in NVIDIA's catalogue (compat_tables/xid.json), and contacting support is
    # what comes after: a loose cable is as likely as the card.
    on_gpu=OnGpu(
        "drain", say("it does not answer; NVIDIA's Xid catalogue asks for a restart (Xid 79)")
    ),
)

_NO_HANDLE = "Unable to determine the device handle"
_LOST = "GPU is lost"


@RULE.check
def check(
    nvml: Nvml,
    log: KernelLog,
    smi: NvidiaSmi,
    pci: Pci,
    nodes: DeviceNodes,
    support: GpuSupport,
    around: Surroundings,
    update: DriverFixes,
) -> Judgement:
    """Ask NVML and nvidia-smi, then the log; else compare the bus with the driver's list."""
    restart = update.reboot(say("this brings the GPU back if it still works"))
    fixes = (restart, *_THEN)
    lost = [at for at, gpu in enumerate(nvml.gpus or ()) if gpu.lost]
    answering = {gpu.pci_address for gpu in nvml.gpus or ()}
    fallen = [address for address in log.fallen_off_bus or () if address not in answering]
    ours = not nvml.gpus or not (around.in_container() or _is_refused(nodes))
    if not ours or None in answering:
        fallen = []
    named = RULE.names((*(f"nvml.gpus.{at}" for at in lost), *fallen))
    if lost:
        found = [(nvml.gpus or [])[at].pci_address for at in lost]
        where = [address for address in found if address and ":" in address]
        headline = say_many(
            len(lost),
            "{gpus} does not answer: it has fallen off the bus",
            "{gpus} do not answer: they have fallen off the bus",
            gpus=gpu_names(nvml.gpus or [], lost),
        )
        if where:
            headline = say(
                "{headline} (PCI {addresses})", headline=headline, addresses=in_series(where)
            )
        return Hit(
            headline=headline,
            evidence=tuple(f"nvml.gpus.{at}.lost" for at in lost),
            fixes=fixes,
            gpus=named,
        )
    if _NO_HANDLE in (smi.message or "") or _LOST in (smi.message or ""):
        return Hit(
            headline=say("nvidia-smi cannot reach a GPU: it has fallen off the bus"),
            evidence=("nvidia_smi.message",),
            fixes=fixes,
            gpus=named,
        )
    if fallen:
        return Hit(
            headline=say(
                "The kernel's log says that {at_pci} has fallen off the bus (Xid 79)",
                at_pci=at_pci(fallen),
            ),
            evidence=("kernel_log.fallen_off_bus", *(("nvml.gpus",) if nvml.gpus else ())),
            fixes=fixes,
            confidence=Confidence.LIKELY if nvml.gpus is None else Confidence.CERTAIN,
            gpus=named,
        )
    if around.in_container():
        return NotApplicable(say("a container sees more GPUs on the bus than it was given"))
    if nvml.gpus is None and pci.gpus == []:
        return NotApplicable(say("there is no NVIDIA GPU on the bus, and the log names none"))
    return _compare(nvml, pci, nodes, support, fixes)


def _compare(
    nvml: Nvml, pci: Pci, nodes: DeviceNodes, support: GpuSupport, fixes: tuple[Fix, ...]
) -> Judgement:
    """Compare the bus with NVML's list, unless something else keeps a GPU out of that list."""
    gpus = known(nvml.gpus, "nvml.gpus")
    if not gpus:
        return NotApplicable(say("NVML lists no GPU: the problem is the driver as a whole"))
    on_bus = known(pci.gpus, "pci.gpus")
    if _is_refused(nodes):
        return NotApplicable(say("this process may not open every GPU"))
    explained = {unsupported.gpu.pci_address for unsupported in support.unsupported()}
    bound = {gpu.address for gpu in on_bus if gpu.bound_driver == "nvidia"}
    missing = [
        gpu.pci_address
        for gpu in support.unserved()
        if gpu.pci_address in bound and gpu.pci_address not in explained
    ]
    if not missing:
        return Fine(say("every GPU that the driver has claimed responds"))
    places = [at for at, gpu in enumerate(on_bus) if gpu.address in missing]
    return Hit(
        headline=say_many(
            len(missing),
            "The driver holds the GPU at PCI {addresses} but does not list it: the GPU does not "
            "answer",
            "The driver holds the GPUs at PCI {addresses} but does not list them: they do not "
            "answer",
            addresses=in_series(missing),
        ),
        evidence=("nvml.gpus", *(f"pci.gpus.{at}.bound_driver" for at in places)),
        fixes=fixes,
        confidence=Confidence.LIKELY,
        gpus=RULE.names(f"pci.gpus.{at}" for at in places),
    )


def _is_refused(nodes: DeviceNodes) -> bool:
    """Whether this process may not use some of the GPUs: a job was given only a part."""
    return any(node.opens in ("EPERM", "EACCES") for node in nodes.nodes or ())


_THEN = (
    Fix(
        text=say(
            "If the GPU does not come back, or falls off the bus again: switch the power off and "
            "on, check the card's cables, seating and temperature, and read the kernel log. In a "
            "cloud, stop and start the machine to get other hardware."
        ),
        commands=("sudo dmesg | grep -i -E 'xid|fallen off|pcieport'",),
        restart="machine",
    ),
)
