"""The GPU slows itself down because it is too hot or its power supply fails.

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
"""

import msgspec

from gpucheck.derived.gpu_labels import numbered_gpu
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.driver import Nvml, NvmlGpu
from gpucheck.facts.selftests import GpuUnderLoad, SelfTests
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, OnGpu, Rule
from gpucheck.language import and_more, say

RULE = Rule(
    __name__,
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


@RULE.check
def check(nvml: Nvml, tests: SelfTests) -> Judgement:
    """Look for a harmful throttle reason, now or under the load of the self-tests."""
    under_load = _under_load(tests)
    if under_load is not None:
        now = RULE.names(_slowed_now(nvml.gpus or []))
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
        gpus=RULE.names(_slowed_now(gpus)),
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
        gpus=RULE.names(f"selftests.under_load.{place}" for place, _ in slowed),
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
