"""A GPU has fewer active NVLinks than most others of its model in this machine.

GPUs of one model in one server are wired alike, so a GPU with 17 active links among seven with 18
has lost one. A GPU without any active link has lost them if NVSwitches connect the GPUs; bridges
may connect only some of them.

Symptoms: collectives (all-reduce) are far slower than on other machines, NCCL uses another path, or
the Fabric Manager reports errors when it starts; Xid 74 or 144 to 150 in the kernel log.

When it is reported: the wiring differs from board to board, so gpucheck compares only GPUs of one
machine. A single GPU is accepted as it is, and so are GPUs without a number of links that most of
them share. It is a warning as long as nothing fails because of it.

``gpucheck preflight`` compares all GPUs of a model in the job in the same way, and reports an error
if a collective fails as well.

Fix: reset or reboot. If the link stays down, the bridge, the baseboard or the GPU needs service.
"""

from collections import defaultdict

from gpucheck.advice.nccl_surroundings import look_at_nvlinks
from gpucheck.derived.gpu_labels import LostLinks, gpu_index, lost_links
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Severity
from gpucheck.facts.driver import Nvml, NvmlGpu
from gpucheck.facts.system import Pci
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, OnGpu, Rule
from gpucheck.language import in_series, say, say_many

_LOOK = look_at_nvlinks()

RULE = Rule(
    __name__,
    title=say("a GPU has lost NVLinks"),
    severity=Severity.WARNING,
    family="cluster",
    concern="hardware",
    suppressed_by=("fabric-manager-down", "gpu-fallen-off-bus", "gpu-hardware-fault"),
    needs_gpu=True,
    preflight=InPreflight(
        fix=_LOOK.text,
        commands=_LOOK.commands,
        restart=_LOOK.restart,
    ),
    # As long as nothing fails because of it: NVIDIA's catalogue has no action for Xid 74 as such,
    # but for the registers in its line. A pre-flight in which a collective fails as well makes it
    # an error, and then the node gets no more jobs.
    on_gpu=OnGpu("watch", say("it works, but has fewer NVLinks than its peers")),
)


@RULE.check
def check(nvml: Nvml, pci: Pci) -> Judgement:
    """Compare the active NVLinks of GPUs of the same model."""
    gpus = known(nvml.gpus, "nvml.gpus")
    models: dict[str, list[int]] = defaultdict(list)
    for at, gpu in enumerate(gpus):
        if gpu.device_name:
            models[gpu.device_name].append(at)
    peers = {name: places for name, places in models.items() if len(places) > 1}
    if not peers:
        return NotApplicable(say("there are no two GPUs of one model to compare"))
    switched = bool(pci.nvswitches)
    lost = {
        at: links
        for places in peers.values()
        for at, links in _lost(gpus, places, switched=switched).items()
    }
    if lost:
        return _hit(gpus, peers, lost)
    for places in peers.values():
        for at in places:
            if gpus[at].nvlinks is None and gpus[at].mig_enabled is not True:
                raise UnknownFactError(f"nvml.gpus.{at}.nvlinks", gpus[at].problem("nvlinks"))
    return Fine(say("no GPU has fewer active NVLinks than most others of its model"))


def _lost(gpus: list[NvmlGpu], places: list[int], *, switched: bool) -> dict[int, LostLinks]:
    """Return which GPUs of one model have lost links, by index, and how many."""
    active = {at: sum(links) for at in places if (links := gpus[at].nvlinks) is not None}
    return lost_links(active, switched=switched)


def _hit(gpus: list[NvmlGpu], peers: dict[str, list[int]], lost: dict[int, LostLinks]) -> Hit:
    first, lost_here = next(iter(lost.items()))
    model = gpus[first].device_name or ""
    names = in_series([f"GPU {gpu_index(gpus, at)}" for at in lost])
    other = next(at for at in peers[model] if sum(gpus[at].nvlinks or ()) == lost_here.usual)
    return Hit(
        headline=say_many(
            len(lost),
            "{gpus} ({model}) has fewer active NVLinks than other GPUs of this model: {links} of "
            "{usual}",
            "{gpus} ({model}) have fewer active NVLinks than other GPUs of this model: {links} of "
            "{usual}",
            gpus=names,
            model=model,
            links=lost_here.links,
            usual=lost_here.usual,
        ),
        evidence=tuple(f"nvml.gpus.{at}.nvlinks" for at in (*lost, other)),
        fixes=(_LOOK,),
        gpus=RULE.names(f"nvml.gpus.{at}" for at in lost),
    )
