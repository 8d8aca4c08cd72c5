"""GPUs that are slower than they should be."""

import re

import msgspec

from gpucheck.derived.gpu_labels import is_superchip, numbered_gpu
from gpucheck.derived.selftest_results import BoardRates, Published, SameModel, Speed
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import CudaDriver, Nvml, NvmlGpu
from gpucheck.facts.selftests import GpuUnderLoad, SelfTests
from gpucheck.facts.system import Pci, PciGpu, System
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, OnGpu, Rule
from gpucheck.language import and_more, say, say_many

_LOOK = "nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE,POWER"

GPU_SLOW = Rule(
    "gpu-slow",
    page="""\
A GPU is far slower than others of the same model in this machine.

Symptoms: one rank is always the last, and every step takes as long as the slowest GPU needs.

When it is reported: gpucheck compares the self-tests of GPUs of one model that ran at the same
time, from ``--level standard`` on. It takes the load of ``sustained`` if that test ran, otherwise
matrix products, in the format in which a GPU compares best with the others. Below 50 % of their
median it is an error, below 80 % a warning. A GPU on which another process computes is not judged.

If this shows nothing, each GPU is compared with the rates that were published for its board. This
comparison never blames a GPU, because published rates come from other sizes, releases and power
limits. Below half of the highest rate you get a note, which changes neither the verdict nor the
exit status. The share of the vendor's peak is among the measurements of the self-tests (``-v``,
JSON). Healthy boards reach 58 % to 94 % of it with their best shape, so it gives no usable
threshold.

Heat and power (thermal-or-power-throttle), a PCIe link with too few lanes (pcie-link-degraded), or
another process on the GPU (gpu-memory-held) are reported instead if they are seen.

``gpucheck preflight`` compares every GPU of the job with the median of its model, and with its own
baseline if one was saved. A slow GPU is measured again before it is named. Copies of pinned memory
are compared with the same slot of other nodes. If there are no other nodes, less than half of the
median is a warning, and less than a quarter an error. Ranks on the CPU are reported below 40 %
only.

Fix: compare ``nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE,POWER`` of this GPU and of a fast one
under the same load. Swap the slots of the two cards to find out whether the card or the slot is
slow. After a note, check whether a power limit, locked clocks, an MPS share or the program of
another container slows the GPU down: none of these is a fault.
""",
    title=say("a GPU is much slower than it should be"),
    severity=Severity.WARNING,
    family="runtime",
    concern="hardware",
    suppressed_by=("thermal-or-power-throttle", "pcie-link-degraded", "gpu-memory-held"),
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=5,
        fix=say("Compare its clocks, temperature and power with those of a fast GPU under load."),
        commands=(_LOOK,),
        breaks_node=True,
    ),
    # It computes right values. A job of many GPUs may leave it out; others lose little by it.
    on_gpu=OnGpu("watch", say("it computes right values, but much slower than its peers")),
)

# Shares of the median. Healthy GPUs of one model in one machine differ by 5 % (docs/evidence.md,
# The speed of healthy GPUs). Chosen: four times that is worth a look; half is no chance.
_ERROR, _WARNING = 0.5, 0.8
_NOTE = 0.5
"""The share of the published rate below which a GPU is slow. It is half, because 8192 is not the
best shape of every board, and because a lower power limit may be set."""
_VERIFY = "gpucheck selftest --tests cublas-matmul,sustained --level stress"


@GPU_SLOW.check
def check_gpu_slow(
    tests: SelfTests, same: SameModel, boards: BoardRates, cuda: CudaDriver, nvml: Nvml
) -> Judgement | None:
    """Compare each GPU with the median of the others of its model, else with published rates."""
    if tests.results is None:
        return None
    busy = _busy(cuda, nvml)
    speeds = same.speeds()
    slow = [speed for speed in speeds if speed.share < _WARNING and speed.device not in busy]
    if slow:
        return _slower_than_peers(sorted(slow, key=lambda speed: speed.share))
    published = boards.published()
    low = [speed for speed in published if speed.share < _NOTE and speed.device not in busy]
    if low:
        return _far_below(min(low, key=lambda speed: speed.share))
    if speeds:
        return Fine(say("no GPU is much slower than the others of its model"))
    if published:
        first = published[0]
        return Fine(
            say(
                "{device} reaches {share:.0%} of the highest rate that was published for {model}",
                device=first.device,
                share=first.share,
                model=first.model,
            )
        )
    return NotApplicable(
        say(
            "there is nothing to compare: this needs --level standard, and two GPUs of one model "
            "or a published rate of this board"
        )
    )


def _slower_than_peers(slow: list[Speed]) -> Hit:
    first = slow[0]
    headline = say_many(
        first.others,
        "{device} ({model}) reaches {share:.0%} of what the other GPU of its model reaches: "
        "{value:.4g} against {peers:.4g} TFLOP/s ({rate})",
        "{device} ({model}) reaches {share:.0%} of what {count} others of its model reach: "
        "{value:.4g} against {peers:.4g} TFLOP/s ({rate})",
        device=first.device,
        model=first.model,
        share=first.share,
        value=first.value,
        peers=first.peers,
        rate=first.rate,
    )
    more = len(slow) - 1
    return Hit(
        headline=say_many(
            more,
            "{headline} (and {count} more GPU)",
            "{headline} (and {count} more GPUs)",
            headline=headline,
        )
        if more
        else headline,
        evidence=tuple(f"{speed.path}.measurements" for speed in slow[:4]),
        fixes=(
            Fix(
                text=say(
                    "Compare its clocks, temperature and power with those of a fast GPU under load."
                ),
                commands=(_LOOK,),
                verify=_VERIFY,
            ),
        ),
        severity=Severity.ERROR if first.share < _ERROR else Severity.WARNING,
        gpus=GPU_SLOW.names(speed.device for speed in slow),
    )


def _far_below(low: Published) -> Hit:
    return Hit(
        headline=say(
            "{device} ({model}) multiplies bf16 matrices at {value:.4g} TFLOP/s, {share:.0%} of "
            "the highest rate that was published for this board ({best:.4g})",
            device=low.device,
            model=low.model,
            value=low.value,
            share=low.share,
            best=low.best,
        ),
        evidence=(f"{low.path}.measurements",),
        fixes=(
            Fix(
                text=say(
                    "Check whether a power limit, locked clocks or another program slows it down."
                ),
                commands=(_LOOK, "nvidia-smi"),
                verify=_VERIFY,
            ),
        ),
        severity=Severity.INFO,
        confidence=Confidence.POSSIBLE,
        rows=((f"{low.path}.measurements", low.row),),
    )


def _busy(cuda: CudaDriver, nvml: Nvml) -> set[str]:
    """Return the CUDA devices on which another process computes."""
    by_uuid = {gpu.uuid: gpu for gpu in nvml.gpus or () if gpu.uuid}
    found = set()
    for at, device in enumerate(cuda.devices or ()):
        gpu = by_uuid.get(device.uuid or "")
        if gpu is not None and any(process.kind == "compute" for process in gpu.processes or ()):
            found.add(f"cuda:{at}")
    return found


THERMAL_OR_POWER_THROTTLE = Rule(
    "thermal-or-power-throttle",
    page="""\
The GPU slows itself down because it is too hot or its power supply fails.

Four of the reasons that the driver gives for low clocks are problems: the hardware slowdown and its
two kinds (overheated, external power brake), and the driver's thermal slowdown. The others are
normal and never reported: idle, clocks set by the user, synchronous boost, a display, and the
software power cap, at which a busy GPU runs all day.

Symptoms: the same job takes two or ten times as long, for some minutes or on one of the GPUs;
``nvidia-smi -q -d PERFORMANCE`` shows "HW Thermal Slowdown : Active" or "HW Power Brake Slowdown :
Active".

When it is reported: gpucheck reports what the driver says at this moment, and what it says during
the self-tests of the levels standard and stress. A GPU that is idle while gpucheck runs may still
throttle under load.

Fix: check the cooling (dust, fans, air flow, ambient temperature). For the power brake, check the
power supply, its cables and the limits of the rack.
""",
    title=say("the GPU is slowed down by heat or by its power supply"),
    severity=Severity.WARNING,
    family="runtime",
    concern="hardware",
    suppressed_by=("gpu-fallen-off-bus",),
    needs_gpu=True,
    preflight=InPreflight(exit_class=5),
    # It computes right values: cooling or power is to be mended, and a reset changes neither.
    on_gpu=OnGpu("watch", say("it works, but heat or its power supply slows it down")),
)

# The last one only if no other says why: it is set beside the first and third as well.
_TROUBLES = {
    "hw-thermal-slowdown": say("it is overheated (hardware thermal slowdown)"),
    "sw-thermal-slowdown": say("it is too hot (thermal slowdown by the driver)"),
    "hw-power-brake-slowdown": say("its power supply requires it (power brake)"),
    "hw-slowdown": say("the hardware requires it (heat or power)"),
}


@THERMAL_OR_POWER_THROTTLE.check
def check_thermal_or_power_throttle(nvml: Nvml, tests: SelfTests) -> Judgement:
    """Look for a harmful throttle reason, now or under the load of the self-tests."""
    under_load = _under_load(tests)
    if under_load is not None:
        now = THERMAL_OR_POWER_THROTTLE.names(_slowed_now(nvml.gpus or []))
        return msgspec.structs.replace(under_load, gpus=(*under_load.gpus, *now))
    gpus = known(nvml.gpus, "nvml.gpus")
    if not gpus:
        return NotApplicable(say("there is no NVIDIA GPU"))
    slowed = [(at, why) for at, gpu in enumerate(gpus) if (why := _why(gpu)) is not None]
    if not slowed:
        for at, gpu in enumerate(gpus):
            if gpu.throttle is None:
                raise UnknownFactError(f"nvml.gpus.{at}.throttle", gpu.problem("throttle"))
        return Fine(say("no GPU is slowed down by heat or power"))
    at, why = slowed[0]
    gpu = gpus[at]
    return Hit(
        headline=and_more(_now(gpu, at, why), len(slowed) - 1),
        evidence=tuple(fact for place, _ in slowed for fact in _facts(place, gpus[place])),
        fixes=(_fix(why),),
        gpus=THERMAL_OR_POWER_THROTTLE.names(_slowed_now(gpus)),
    )


def _slowed_now(gpus: list[NvmlGpu]) -> list[str]:
    return [f"nvml.gpus.{at}" for at, gpu in enumerate(gpus) if _why(gpu) is not None]


def _under_load(tests: SelfTests) -> Hit | None:
    """Judge the GPUs that were slowed down while self-tests were running on them."""
    seen = tests.under_load or []
    slowed = [(at, why) for at, gpu in enumerate(seen) if (why := _held_down(gpu)) is not None]
    if not slowed:
        return None
    at, why = slowed[0]
    path = f"selftests.under_load.{at}"
    heat = seen[at].temperature_max_c
    return Hit(
        headline=_then(seen[at], at, why),
        evidence=(
            f"{path}.held_down",
            *((f"{path}.temperature_max_c",) if heat is not None else ()),
        ),
        fixes=(_fix(why),),
        gpus=THERMAL_OR_POWER_THROTTLE.names(
            f"selftests.under_load.{place}" for place, _ in slowed
        ),
    )


def _now(gpu: NvmlGpu, at: int, why: str) -> str:
    name = _named(gpu.index, gpu.device_name, at)
    if gpu.temperature_c is None:
        return say("{gpu} is slowed down because {why}", gpu=name, why=_TROUBLES[why])
    return say(
        "{gpu} is slowed down at {celsius} °C because {why}",
        gpu=name,
        celsius=gpu.temperature_c,
        why=_TROUBLES[why],
    )


def _then(gpu: GpuUnderLoad, at: int, why: str) -> str:
    name = _named(gpu.index, gpu.device_name, at)
    if gpu.temperature_max_c is None:
        return say(
            "{gpu} was slowed down during the self-tests because {why}",
            gpu=name,
            why=_TROUBLES[why],
        )
    return say(
        "{gpu} was slowed down at {celsius} °C during the self-tests because {why}",
        gpu=name,
        celsius=gpu.temperature_max_c,
        why=_TROUBLES[why],
    )


def _named(index: int | None, name: str | None, at: int) -> str:
    return numbered_gpu(at if index is None else index, name or "NVIDIA")


def _held_down(gpu: GpuUnderLoad) -> str | None:
    return next((reason for reason in _TROUBLES if reason in (gpu.held_down or ())), None)


def _why(gpu: NvmlGpu) -> str | None:
    """Return the most informative harmful reason."""
    return next((reason for reason in _TROUBLES if reason in (gpu.throttle or ())), None)


def _facts(at: int, gpu: NvmlGpu) -> tuple[str, ...]:
    path = f"nvml.gpus.{at}"
    heat = (f"{path}.temperature_c",) if gpu.temperature_c is not None else ()
    return (f"{path}.throttle", *heat)


def _fix(why: str) -> Fix:
    verify = "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER"
    if why == "hw-power-brake-slowdown":
        text = say(
            "Check the power supply: its capacity, the power cables of the GPU, the limit of the "
            "rack."
        )
    elif why == "hw-slowdown":
        text = say("Check the cooling, and the power supply with its cables.")
    else:
        text = say(
            "Check the cooling: dust, the fans of the card or of the server, the air flow around "
            "the card, the room temperature."
        )
    return Fix(text=text, verify=verify)


# The GPU of a laptop is soldered: nobody can move it to another slot.
_LAPTOP = r"\b(?:Mobile|Laptop|Max-Q)\b"

PCIE_LINK_DEGRADED = Rule(
    "pcie-link-degraded",
    page="""\
A GPU's PCIe link uses fewer lanes than both the card and its slot support.

If a card with 16 lanes, in a slot with 16 lanes, uses only 8 or 1 of them, it moves data to and
from the machine's memory at a fraction of the speed. Computation on the GPU is not slower.

Symptoms: slow data loading and slow ``tensor.cuda()``, slow exchange between GPUs without NVLink,
while ``nvidia-smi`` shows that the GPU waits.

When it is reported: only the number of lanes is judged, and only against the smaller of the two
maxima. An x16 card in an x8 slot is fine. The speed of a lane is not judged, because an idle GPU
lowers it to save power. nvidia-smi's manual says the same of the lanes: read them again under load.
In a virtual machine the slot is often not visible; the result is then unknown. In a laptop, or with
NVLink-C2C between the GPU and its processor (GH200, GB200), the lanes are wired by the
manufacturer; these GPUs are not judged either.

Fix: switch the machine off, unplug it, and reseat the card. Check the riser or cable, the slot, and
the BIOS settings (bifurcation).
""",
    title=say("the PCIe link of a GPU has lost lanes"),
    severity=Severity.WARNING,
    family="driver",
    concern="hardware",
    suppressed_by=("gpu-fallen-off-bus",),
    preflight=InPreflight(exit_class=5),
    # The card may as well be badly seated, or its slot be at fault: nobody replaces it for that.
    on_gpu=OnGpu("watch", say("it works, but its PCIe link has lost lanes")),
)


@PCIE_LINK_DEGRADED.check
def check_pcie_link_degraded(pci: Pci, system: System) -> Judgement:
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


# nvidia-smi's manual says of the link's generation and width: they may be lower while it is idle.
_LANES = (
    "nvidia-smi --query-gpu=pci.bus_id,pcie.link.width.current,pcie.link.width.max --format=csv"
)


def _hit(gpus: list[PciGpu], degraded: list[int], system: System) -> Hit:
    first = gpus[degraded[0]]
    widest = min(first.link_width_max or 0, first.port_width_max or 0)
    fields = ("link_width", "link_width_max", "port_width_max")
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
                    "While the GPU is busy, read the lanes again by the command at Verify (an idle "
                    "GPU may use fewer): {widest} is right. If they stay at {used}, switch the "
                    "machine off, unplug it, and reseat the card. Then check the riser and the "
                    "power cables, try another slot, and check the slot's settings in the BIOS.",
                    used=first.link_width,
                    widest=widest,
                )
                if not virtual
                else say(
                    "Report it to whoever runs the host: somebody must check the card and its slot."
                ),
                verify="gpucheck" if virtual else _LANES,
                restart="" if virtual else "machine",
            ),
        ),
        confidence=Confidence.POSSIBLE if virtual else Confidence.CERTAIN,
        gpus=PCIE_LINK_DEGRADED.names(f"pci.gpus.{at}" for at in degraded),
    )
