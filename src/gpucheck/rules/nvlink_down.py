"""A GPU has fewer active NVLinks than others of its model in this machine.

GPUs of one model in one server are wired alike, so a GPU with 17 active links among seven with 18
has lost one.

Symptoms: collectives (all-reduce) are far slower than on other machines, NCCL uses another path, or
the fabric manager reports errors when it starts; Xid 74 or 144 to 150 in the kernel log.

When it is reported: the wiring differs from board to board, so gpucheck compares only GPUs of one
machine. A single GPU, or two with the same number, are accepted as they are. It is a warning as
long as nothing fails because of it.

``gpucheck preflight`` compares all GPUs of a model in the job in the same way, and reports an error
if a collective fails as well.

Fix: reset or reboot. If the link stays down, the bridge, the baseboard or the GPU needs service.
"""

from collections import defaultdict

from gpucheck.facts import UnknownFactError, known
from gpucheck.findings import Fine, Fix, Hit, Judgement, NotApplicable, Severity
from gpucheck.probes.nvml import Nvml, NvmlGpu
from gpucheck.probes.pci import Pci
from gpucheck.rules import InPreflight, Rule

_SERVICE = (
    "Look which link is down and at its error counters; then reboot. If it stays down, the "
    "bridge, the baseboard or the GPU needs service."
)
_LOOK = ("nvidia-smi nvlink --status", "nvidia-smi nvlink -e")

RULE = Rule(
    __name__,
    title="a GPU has lost NVLinks",
    severity=Severity.WARNING,
    family="cluster",
    suppressed_by=("fabric-manager-down", "gpu-fallen-off-bus", "gpu-hardware-fault"),
    needs_gpu=True,
    preflight=InPreflight(
        fix=_SERVICE,
        commands=_LOOK,
    ),
)


@RULE.check
def check(nvml: Nvml, pci: Pci) -> Judgement:
    """Compare the active links of GPUs of one model."""
    gpus = known(nvml.gpus, "nvml.gpus")
    models: dict[str, list[int]] = defaultdict(list)
    for at, gpu in enumerate(gpus):
        if gpu.device_name:
            models[gpu.device_name].append(at)
    peers = {name: places for name, places in models.items() if len(places) > 1}
    if not peers:
        return NotApplicable("there are no two GPUs of one model to compare")
    switched = bool(pci.nvswitches)
    down = [at for places in peers.values() for at in _behind(gpus, places, switched=switched)]
    if down:
        return _hit(gpus, peers, down)
    for places in peers.values():
        for at in places:
            if gpus[at].nvlinks is None and gpus[at].mig_enabled is not True:
                raise UnknownFactError(f"nvml.gpus.{at}.nvlinks", gpus[at].problem("nvlinks"))
    return Fine("GPUs of one model have equally many NVLinks up")


def _active(gpu: NvmlGpu) -> int | None:
    return None if gpu.nvlinks is None else sum(gpu.nvlinks)


def _behind(gpus: list[NvmlGpu], places: list[int], *, switched: bool) -> list[int]:
    """Return the GPUs with fewer active links than one of their peers.

    Bridges may join some of the GPUs only, so none at all is a loss only where switches join all.
    """
    counts = {at: count for at in places if (count := _active(gpus[at])) is not None}
    most = max(counts.values(), default=0)
    return [at for at, count in counts.items() if count < most and (count or switched)]


def _hit(gpus: list[NvmlGpu], peers: dict[str, list[int]], down: list[int]) -> Hit:
    first = gpus[down[0]]
    same = peers[first.device_name or ""]
    most = max(_active(gpus[at]) or 0 for at in same)
    names = ", ".join(f"GPU {gpus[at].index if gpus[at].index is not None else at}" for at in down)
    other = next(at for at in same if _active(gpus[at]) == most)
    verb = "has" if len(down) == 1 else "have"
    return Hit(
        headline=f"{names} ({first.device_name}) {verb} fewer NVLinks up than other GPUs of the "
        f"model: {_active(first)} of {most}",
        evidence=tuple(f"nvml.gpus.{at}.nvlinks" for at in (*down, other)),
        fixes=(
            Fix(
                text=_SERVICE,
                commands=_LOOK,
                verify=_LOOK[0],
            ),
        ),
    )
