"""Links between GPUs and nodes: the fabric, NVLink, their speed."""

import shlex
from collections import defaultdict

from gpucheck.advice.nccl_surroundings import look_at_nvlinks
from gpucheck.derived import DriverState
from gpucheck.derived.gpu_labels import LostLinks, gpu_index, lost_links
from gpucheck.facts import UnknownFactError, known
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import CudaDriver, Driver, Nvml, NvmlGpu
from gpucheck.facts.system import Container, Pci, System
from gpucheck.findings.form import Fine, Hit, InPreflight, Judgement, NotApplicable, OnGpu, Rule
from gpucheck.findings.witnesses.selftest_says import SelfTestSays
from gpucheck.language import in_series, say, say_many

FABRIC_MANAGER_DOWN = Rule(
    "fabric-manager-down",
    page="""\
The NVSwitch fabric is not ready: its Fabric Manager is not running or has the wrong release.

On machines with NVSwitch (HGX and DGX boards) CUDA starts only after NVIDIA's Fabric Manager, a
service of the host, has set up the fabric.

Symptoms: CUDA returns 802 (cudaErrorSystemNotReady): "system not yet initialized". PyTorch says
"Unexpected error from cudaGetDeviceCount() ... Error 802", and ``torch.cuda.is_available()`` is
False, while nvidia-smi shows every GPU and no fault.

Causes: the package is not installed; the service is not enabled; or its release is not exactly that
of the driver, for example after an update of the driver alone: then the service refuses to start.
Right after the machine has booted the service may need a minute.

Fix: install the Fabric Manager in the driver's release and enable its service.
""",
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


@FABRIC_MANAGER_DOWN.check
def check_fabric_manager_down(  # CUDA, NVML, the bus and the service
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
    seen = (
        ("cuda_driver.init_code",)
        if cuda.init_code == _NOT_READY
        else says.points_at(FABRIC_MANAGER_DOWN.slug)
    )
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
            "NVIDIA's Fabric Manager is release {managers}, but the driver is {drivers}",
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
            "Install exactly the driver's release of the Fabric Manager. NVIDIA's guide: {guide}",
            guide=_GUIDE,
        )
        return Fix(text=text, commands=_INSTALLED)
    text = say(
        "Install release {release} of the Fabric Manager: it must be exactly the driver's. "
        "NVIDIA's guide: {guide}",
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


_LOOK = look_at_nvlinks()

NVLINK_DOWN = Rule(
    "nvlink-down",
    page="""\
A GPU has fewer active NVLinks than most others of its model in this machine.

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
""",
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


@NVLINK_DOWN.check
def check_nvlink_down(nvml: Nvml, pci: Pci) -> Judgement:
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
        gpus=NVLINK_DOWN.names(f"nvml.gpus.{at}" for at in lost),
    )


REPLACE_THE_LINK = Fix(
    text=say(
        "Find out where the packets get lost: look at the counters of errors and drops on both "
        "hosts, and at those of the switch ports between them. Replace the cable or transceiver, "
        "or use another port."
    ),
    commands=("ip -s link", "ethtool -S INTERFACE | grep -iE 'err|drop|discard|crc'"),
    verify="gpucheck preflight",
)
"""What to do about such a link."""

LINK_SLOW = Rule(
    "link-slow",
    page="""\
The links between GPUs or nodes are far slower than they should be.

Symptoms: nccl-tests show a bus bandwidth far below that of comparable machines. NVLink, PCIe
peer-to-peer, InfiniBand or the network may be the cause.

When it is reported: below 50 % of the reference it is an error, below 80 % a warning. If the cause
is visible, it is reported instead: a link that is down (nvlink-down, nccl-infiniband), or NCCL that
uses sockets in place of InfiniBand (nccl-network-interface).

``gpucheck preflight`` measures the bus bandwidth (as nccl-tests define it) of pairs and groups. It
compares each with groups of the same kind in the job, otherwise with the baseline of this machine,
otherwise with a published value for exactly this board, number of GPUs, NVLinks and size. A slow
group is measured again before it is named. From three nodes on, all nodes are measured in pairs,
and a host that is slow with every partner is named. Ranks on the CPU are reported only below 40 %,
and not if the machine was busy.

If a collective did not end, or took more than a quarter of its time limit, and nobody is to blame,
a link between two hosts is named on which at least 5 % of the TCP packets got lost, or a host whose
links to several others lose them.

Fix: check ``nvidia-smi topo -m`` and ``nvidia-smi nvlink --status`` on the machine. Between nodes,
check ``ibstat`` and the lines "NET/" of NCCL_DEBUG=INFO.
""",
    title=say("links between GPUs or nodes are slower than they should be"),
    severity=Severity.WARNING,
    family="cluster",
    suppressed_by=(
        "nvlink-down",
        "nccl-infiniband",
        "nccl-network-interface",
    ),
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=5,
        fix=say("Look at the links of the hosts that are named."),
        commands=("nvidia-smi topo -m", "nvidia-smi nvlink --status", "ibstat"),
        breaks_node=True,
    ),
)
