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

Fix: check the cooling (dust, fans, air flow, ambient temperature); for the power brake check the
power supply, its cables and the limits of the rack.
"""

from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Fix, Severity
from gpucheck.facts.nvml import Nvml, NvmlGpu
from gpucheck.facts.selftests import SelfTests
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, Rule

RULE = Rule(
    __name__,
    title="the GPU is slowed down by heat or by its power supply",
    severity=Severity.WARNING,
    family="runtime",
    concern="hardware",
    suppressed_by=("gpu-fallen-off-bus",),
    needs_gpu=True,
    preflight=InPreflight(exit_class=5),
)

_TROUBLES = {
    "hw-thermal-slowdown": "it is overheated (hardware thermal slowdown)",
    "sw-thermal-slowdown": "it is too hot (the driver's thermal slowdown)",
    "hw-power-brake-slowdown": "its power supply asks it to (power brake)",
    "hw-slowdown": "the hardware asks for it (heat or power)",
}


@RULE.check
def check(nvml: Nvml, tests: SelfTests) -> Judgement:
    """Look for a harmful throttle reason, now or under the load of the self-tests."""
    under_load = _under_load(tests)
    if under_load is not None:
        return under_load
    gpus = known(nvml.gpus, "nvml.gpus")
    if not gpus:
        return NotApplicable("there is no NVIDIA GPU")
    slowed = [(at, why) for at, gpu in enumerate(gpus) if (why := _why(gpu)) is not None]
    if not slowed:
        for at, gpu in enumerate(gpus):
            if gpu.throttle is None:
                raise UnknownFactError(f"nvml.gpus.{at}.throttle", gpu.problem("throttle"))
        return Fine("no GPU is slowed down by heat or power")
    at, why = slowed[0]
    gpu = gpus[at]
    index = gpu.index if gpu.index is not None else at
    heat = f" at {gpu.temperature_c} °C" if gpu.temperature_c is not None else ""
    more = f" (and {len(slowed) - 1} more GPUs)" if len(slowed) > 1 else ""
    return Hit(
        headline=f"GPU {index} ({gpu.device_name or 'NVIDIA'}){heat} is slowed down because "
        f"{_TROUBLES[why]}{more}",
        evidence=tuple(fact for place, _ in slowed for fact in _facts(place, gpus[place])),
        fixes=(_fix(why),),
    )


def _under_load(tests: SelfTests) -> Hit | None:
    """Judge a GPU that was slowed down while self-tests were running on it."""
    for at, gpu in enumerate(tests.under_load or ()):
        why = next((reason for reason in _TROUBLES if reason in (gpu.held_down or ())), None)
        if why is None:
            continue
        index = gpu.index if gpu.index is not None else at
        path = f"selftests.under_load.{at}"
        heat = gpu.temperature_max_c
        shown = f" at {heat} °C" if heat is not None else ""
        return Hit(
            headline=f"GPU {index} ({gpu.device_name or 'NVIDIA'}){shown} was slowed down during "
            f"the self-tests because {_TROUBLES[why]}",
            evidence=(
                f"{path}.held_down",
                *((f"{path}.temperature_max_c",) if heat is not None else ()),
            ),
            fixes=(_fix(why),),
        )
    return None


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
        text = "Look at the power supply: its size, the GPU's power cables, the limit of the rack."
    elif why == "hw-slowdown":
        text = "Look at cooling and at the power supply and its cables."
    else:
        text = "Look at the cooling: dust, fans, air flow around the card, the room's temperature."
    return Fix(text=text, verify=verify)
