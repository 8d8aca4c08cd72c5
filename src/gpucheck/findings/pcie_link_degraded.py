"""A GPU's PCIe link uses fewer lanes than both the card and its slot support.

If a card with 16 lanes, in a slot with 16 lanes, uses only 8 or 1 of them, it moves data to and
from the machine's memory at a fraction of the speed. Computation on the GPU is not slower.

Symptoms: slow data loading and slow ``tensor.cuda()``, slow exchange between GPUs without NVLink,
while ``nvidia-smi`` shows that the GPU waits.

When it is reported: only the number of lanes is judged, and only against the smaller of the two
maxima. An x16 card in an x8 slot is fine. The speed of a lane is not judged, because an idle GPU
lowers it to save power. In a virtual machine the slot is often not visible; the result is then
unknown. In a laptop, or with NVLink-C2C between the GPU and its processor (GH200, GB200), the lanes
are wired by the manufacturer; these GPUs are not judged either.

Fix: reseat the card. Check the riser or cable, the slot, and the BIOS settings (bifurcation).
"""

import re

from gpucheck.derived.gpu_labels import is_superchip
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.system import Pci, PciGpu, System
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, OnGpu, Rule
from gpucheck.language import and_more, say

_ADDRESS = r"[0-9a-fA-F:.]{1,20}"
# The GPU of a laptop is soldered: nobody can move it to another slot.
_LAPTOP = r"\b(?:Mobile|Laptop|Max-Q)\b"

RULE = Rule(
    __name__,
    title=say("the PCIe link of a GPU has lost lanes"),
    severity=Severity.WARNING,
    family="driver",
    concern="hardware",
    suppressed_by=("gpu-fallen-off-bus",),
    preflight=InPreflight(exit_class=5),
    # The card may as well be badly seated, or its slot be at fault: nobody replaces it for that.
    on_gpu=OnGpu("watch", say("it works, but its PCIe link has lost lanes")),
)


@RULE.check
def check(pci: Pci, system: System) -> Judgement:
    """Compare the lanes with those that both the card and the port support."""
    gpus = known(pci.gpus, "pci.gpus")
    if not gpus:
        return NotApplicable(say("there is no NVIDIA GPU on the bus"))
    degraded = [at for at, gpu in enumerate(gpus) if _is_degraded(gpu)]
    if degraded:
        return _hit(gpus, degraded, system)
    for at, gpu in enumerate(gpus):
        if gpu.link_width and gpu.link_width == gpu.link_width_max:
            continue  # no port could give more; a virtual machine shows none
        for field in ("link_width", "link_width_max", "port_width_max"):
            if getattr(gpu, field) is None:
                raise UnknownFactError(f"pci.gpus.{at}.{field}", gpu.problem(field))
    return Fine(say("every GPU uses all lanes that its card and slot support"))


def _is_degraded(gpu: PciGpu) -> bool:
    if not gpu.link_width or not gpu.link_width_max or not gpu.port_width_max:
        return False
    if _is_soldered(gpu.product or ""):
        return False
    return gpu.link_width < min(gpu.link_width_max, gpu.port_width_max)


def _is_soldered(product: str) -> bool:
    """Whether the GPU is soldered: in a laptop, or linked to its processor by NVLink-C2C."""
    return re.search(_LAPTOP, product) is not None or is_superchip(product)


def _hit(gpus: list[PciGpu], degraded: list[int], system: System) -> Hit:
    first = gpus[degraded[0]]
    widest = min(first.link_width_max or 0, first.port_width_max or 0)
    fields = ("link_width", "link_width_max", "port_width_max")
    check_again = "gpucheck"
    if re.fullmatch(_ADDRESS, first.address or ""):
        check_again = f"cat /sys/bus/pci/devices/{first.address}/current_link_width"
    virtual = bool(system.virtualization)
    return Hit(
        headline=and_more(
            say(
                "{product} at {address} uses only {used} of {widest} PCIe lanes",
                product=first.product or say("The GPU"),
                address=first.address,
                used=first.link_width,
                widest=widest,
            ),
            len(degraded) - 1,
        ),
        evidence=tuple(f"pci.gpus.{at}.{field}" for at in degraded for field in fields),
        fixes=(
            Fix(
                text=say(
                    "Switch the machine off and reseat the card. Then check the riser and the "
                    "power cables, try another slot, and check the slot's settings in the BIOS."
                )
                if not virtual
                else say(
                    "Report it to whoever runs the host: somebody must check the card and its slot."
                ),
                verify=check_again,
                restart="" if virtual else "machine",
            ),
        ),
        confidence=Confidence.POSSIBLE if virtual else Confidence.CERTAIN,
        gpus=RULE.names(f"pci.gpus.{at}" for at in degraded),
    )
