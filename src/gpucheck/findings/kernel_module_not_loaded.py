"""The NVIDIA driver is installed, but its kernel module is not loaded.

Symptoms: nvidia-smi says "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA
driver. Make sure that the latest NVIDIA driver is installed and running." NVML returns 9 (driver
not loaded), /proc/driver/nvidia does not exist, and PyTorch says "Found no NVIDIA driver on your
system".

Causes, in the order in which gpucheck checks them:
- The kernel was updated, and no module was built for the running kernel (DKMS had no headers, or
  the machine was not restarted).
- A line in modprobe.d blocks the module.
- nouveau holds the card.
- Secure Boot refuses an unsigned module.
- Nothing has loaded the module.

Fix: it depends on the cause; gpucheck prints it. Reinstalling CUDA or PyTorch does not help.
"""

from gpucheck.advice.driver import DRIVER_PAGE
from gpucheck.advice.kernel_module import ModuleFixes
from gpucheck.derived import DriverState, Gpus
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import Driver, NvidiaSmi, Nvml
from gpucheck.facts.system import Pci, System
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("the kernel module of the driver is not loaded"),
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    suppressed_by=("driver-missing", "driver-dropped-gpu"),
    refuted_by_cuda="always",
    compat_keys=("nvml_error", "nvidia_module_loaded"),
    preflight=InPreflight(drains_node=True),
)

_NOT_LOADED = 9  # NVML_ERROR_DRIVER_NOT_LOADED
_AGAIN_ON_WINDOWS = Fix(
    text=say(
        "Restart Windows. If the driver is not loaded then either, install it again from {page}; "
        "the Device Manager says why it did not start.",
        page=DRIVER_PAGE,
    ),
    commands=("sudo reboot",),
)
_NO_COMMUNICATION = "couldn't communicate with the NVIDIA driver"


@RULE.check
def check(  # noqa: PLR0913, PLR0917  # it joins the bus, both sides of the driver and the way to load it
    driver: Driver,
    nvml: Nvml,
    smi: NvidiaSmi,
    pci: Pci,
    gpus: Gpus,
    state: DriverState,
    around: Surroundings,
    advice: ModuleFixes,
    system: System,
) -> Judgement:
    """Look for an installed driver whose module is not loaded, and for the reason."""
    quoted = _driver_facts(nvml, smi)
    on_windows = system.os == "windows"
    # Windows names the driver of a GPU also if that has failed to start.
    loaded = driver.module_loaded and not (on_windows and quoted)
    if loaded or nvml.init_code == 0 or state.works():
        return Fine(say("the kernel module is loaded"))
    if quoted and (driver.module_loaded is None or on_windows):
        if pci.gpus == []:
            return NotApplicable(say("there is no NVIDIA GPU that the module could drive"))
        return Hit(
            headline=say("NVIDIA's driver says that its kernel module is not loaded"),
            evidence=quoted,
            fixes=(_AGAIN_ON_WINDOWS if on_windows else advice.load(),),
            confidence=Confidence.LIKELY,
        )
    if elsewhere := around.without_linux_driver():
        return NotApplicable(elsewhere)
    known(driver.module_loaded, "driver.module_loaded")
    if not gpus.present():
        return NotApplicable(say("there is no NVIDIA GPU that the module could drive"))
    if not state.installed():
        return NotApplicable(say("no driver is installed"))
    cause = advice.cause()
    return Hit(
        headline=say(
            "NVIDIA's driver is installed, but its kernel module is not loaded: {why}",
            why=cause.why,
        ),
        evidence=("driver.module_loaded", *quoted, *cause.facts, *gpus.seen_by()),
        fixes=_on_host(cause.fixes) if around.in_container() else cause.fixes,
        confidence=cause.confidence,
    )


def _driver_facts(nvml: Nvml, smi: NvidiaSmi) -> tuple[str, ...]:
    """Return the facts in which the driver itself says so."""
    facts = []
    if nvml.init_code == _NOT_LOADED:
        facts.append("nvml.init_code")
    if _NO_COMMUNICATION in (smi.message or ""):
        facts.append("nvidia_smi.message")
    return tuple(facts)


def _on_host(fixes: tuple[Fix, ...]) -> tuple[Fix, ...]:
    return tuple(
        Fix(
            text=say("On the host, not in this container: {text}", text=fix.text),
            commands=fix.commands,
        )
        for fix in fixes
    )
