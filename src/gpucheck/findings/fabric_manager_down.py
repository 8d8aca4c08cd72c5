"""The NVSwitch fabric is not ready: its Fabric Manager is not running or has the wrong release.

On machines with NVSwitch (HGX and DGX boards) CUDA starts only after NVIDIA's Fabric Manager, a
service of the host, has set up the fabric.

Symptoms: CUDA returns 802 (cudaErrorSystemNotReady): "system not yet initialized". PyTorch says
"Unexpected error from cudaGetDeviceCount() ... Error 802", and ``torch.cuda.is_available()`` is
False, while nvidia-smi shows every GPU and no fault.

Causes: the package is not installed; the service is not enabled; or its release is not exactly that
of the driver, for example after an update of the driver alone: then the service refuses to start.
Right after the machine has booted the service may need a minute.

Fix: install the Fabric Manager in the driver's release and enable its service.
"""

import shlex

from gpucheck.derived import DriverState
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import CudaDriver, Driver, Nvml
from gpucheck.facts.system import Container, Pci, System
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("the NVSwitch fabric is not ready"),
    severity=Severity.ERROR,
    family="driver",
    refuted_by=("device-placement", "cublas-matmul"),
    suppressed_by=("kernel-module-not-loaded", "driver-library-mismatch"),
    refuted_by_cuda="always",
    named_by=("nccl",),
    compat_keys=("cuda_error", "nvswitch"),
    preflight=InPreflight(exit_class=1),
)

_NOT_READY = 802  # CUDA_ERROR_SYSTEM_NOT_READY
_WAITING = ("not-started", "in-progress")
_GUIDE = "https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/"
_SERVICE = "nvidia-fabricmanager"
_ENABLE = f"sudo systemctl enable --now {_SERVICE}"
_RESTART = f"sudo systemctl restart {_SERVICE}"
_INSTALLED = (f"sudo systemctl enable {_SERVICE}", _RESTART)
"""After an installation: one that runs already, in the old release, is not started by enable."""
_WHY_NOT = f"journalctl -u {_SERVICE} --no-pager -n 30"


@RULE.check
def check(  # CUDA, NVML, the bus and the service
    cuda: CudaDriver,
    nvml: Nvml,
    pci: Pci,
    driver: Driver,
    state: DriverState,
    system: System,
    container: Container,
    says: SelfTestSays,
) -> Judgement:
    """Take CUDA's own error; without it, look for NVSwitches whose service does not run."""
    release = _release(state)
    seen = ("cuda_driver.init_code",) if cuda.init_code == _NOT_READY else says.points_at(RULE.slug)
    if seen:
        return Hit(
            headline=say("CUDA is not ready (error 802): {why}", why=_why(driver, release, pci)),
            evidence=(*seen, *_facts(driver, pci)),
            fixes=_in_order(_fixes(driver, system, container, release), pci),
            confidence=Confidence.CERTAIN if pci.nvswitches else Confidence.LIKELY,
        )
    if cuda.init_code == 0:
        return Fine(say("CUDA starts"))
    if pci.nvswitches is None and system.os in ("windows", "macos"):
        return NotApplicable(say("there is no NVSwitch"))
    if not known(pci.nvswitches, "pci.nvswitches"):
        return NotApplicable(say("there is no NVSwitch"))
    if cuda.init_code is not None:
        return Fine(say("CUDA fails, but not because of the fabric"))
    if known(driver.fabric_manager_running, "driver.fabric_manager_running"):
        return Fine(say("the Fabric Manager is running"))
    at = next((at for at, g in enumerate(nvml.gpus or ()) if g.fabric_state in _WAITING), None)
    shown = () if at is None else (f"nvml.gpus.{at}.fabric_state",)
    return Hit(
        headline=say(
            "This machine has {nvswitches} NVSwitches, but {why}",
            nvswitches=pci.nvswitches,
            why=_why(driver, release, pci),
        ),
        evidence=(*shown, *_facts(driver, pci)),
        fixes=_fixes(driver, system, container, release),
        confidence=Confidence.LIKELY,
    )


def _release(state: DriverState) -> str | None:
    try:
        return state.release()
    except UnknownFactError:
        return None


def _facts(driver: Driver, pci: Pci) -> list[str]:
    facts = ["pci.nvswitches"] if pci.nvswitches is not None else []
    if driver.fabric_manager_installed is not None:
        facts.append("driver.fabric_manager_installed")
    if driver.fabric_manager_running is not None:
        facts.append("driver.fabric_manager_running")
    if driver.fabric_manager_release:
        facts.append("driver.fabric_manager_release")
    return facts


def _other_release(driver: Driver, release: str | None) -> bool:
    return bool(
        driver.fabric_manager_release and release and driver.fabric_manager_release != release
    )


def _in_order(of_fabric: tuple[Fix, ...], pci: Pci) -> tuple[Fix, ...]:
    """Add other reasons why CUDA is not ready; a single GPU has no NVSwitch."""
    if pci.nvswitches:
        return of_fabric
    single = len(pci.gpus or ()) == 1
    return (*_OTHERWISE, *of_fabric) if single else (*of_fabric, *_OTHERWISE)


_OTHERWISE = (
    Fix(
        text=say(
            "In a confidential virtual machine the GPU waits for its attestation; set it ready "
            "afterwards. On an NVLink rack (GB200 NVL72) the Fabric Manager runs on the switches: "
            "ask the people who operate them."
        ),
        commands=("sudo nvidia-smi conf-compute -srs 1",),
    ),
)


def _why(driver: Driver, release: str | None, pci: Pci) -> str:
    if (
        not pci.nvswitches
        and not driver.fabric_manager_running
        and not driver.fabric_manager_installed
    ):
        return say("the NVLink fabric, or the GPU itself, has not been set ready")
    if driver.fabric_manager_installed is False:
        return say("NVIDIA's Fabric Manager is not installed")
    if _other_release(driver, release):
        return say(
            "NVIDIA's Fabric Manager has release {managers}, but the driver has {drivers}",
            managers=driver.fabric_manager_release,
            drivers=release,
        )
    if driver.fabric_manager_running is False:
        return say("NVIDIA's Fabric Manager is not running")
    return say("the NVSwitch fabric has not been set up")


def _fixes(
    driver: Driver, system: System, container: Container, release: str | None
) -> tuple[Fix, ...]:
    if container.runtime:
        return (
            Fix(
                text=say(
                    "On the host, not in this container: start the Fabric Manager. It must have "
                    "exactly the driver's release."
                ),
                commands=(_ENABLE, _WHY_NOT),
            ),
        )
    if driver.fabric_manager_installed is False or _other_release(driver, release):
        return (_install(system, release),)
    if driver.fabric_manager_running:
        return (
            Fix(
                text=say(
                    "Restart the Fabric Manager, and look in its log for why the fabric is not "
                    "ready. Blackwell boards also need NVIDIA's NVLink service (nvlsm)."
                ),
                commands=(_RESTART, _WHY_NOT),
            ),
        )
    return (
        Fix(
            text=say(
                "Start the Fabric Manager, now and at every boot. If it does not run, its log "
                "shows why."
            ),
            commands=(_ENABLE, _WHY_NOT),
        ),
    )


def _install(system: System, release: str | None) -> Fix:
    if not release:
        text = say(
            "Install the Fabric Manager in exactly the driver's release. NVIDIA's guide: {guide}",
            guide=_GUIDE,
        )
        return Fix(text=text, commands=_INSTALLED)
    text = say(
        "Install the Fabric Manager in release {release}, which is exactly the driver's. NVIDIA's "
        "guide: {guide}",
        release=release,
        guide=_GUIDE,
    )
    if system.package_manager != "apt":
        return Fix(text=text, commands=_INSTALLED)
    package = f"nvidia-fabricmanager-{release.partition('.')[0]}"
    return Fix(
        text=text,
        commands=(
            "sudo apt-get update",
            f"sudo apt-get install -y {shlex.quote(f'{package}={release}*')}",
            *_INSTALLED,
        ),
    )
