"""What NCCL fails at: peers, transports, networks, time."""

from gpucheck.derived import Gpus
from gpucheck.derived.job_network import Names
from gpucheck.derived.selftest_results import NcclControl, PassedWithout, settings
from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import KernelLog
from gpucheck.facts.selftests import SelfTests
from gpucheck.facts.system import Environment, Network, RdmaPort
from gpucheck.findings.form import Hit, InPreflight, Judgement, NotApplicable, Rule
from gpucheck.findings.witnesses.kernel_log import with_age
from gpucheck.findings.witnesses.selftest_says import SelfTestRanks, SelfTestSays, run_tests
from gpucheck.language import listed, say, say_many

NCCL_DUPLICATE_GPU = Rule(
    "nccl-duplicate-gpu",
    page="""\
Two ranks of one job use the same GPU, which NCCL refuses.

Every rank must have a GPU of its own. Without ``torch.cuda.set_device(LOCAL_RANK)`` all ranks of a
node use GPU 0. With more processes than GPUs some must share.

Symptoms: "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 7000", then
"ncclInvalidUsage".

Another cause is a scheduler that binds each task to one GPU (Slurm with --gpus-per-task) together
with a script that calls set_device(LOCAL_RANK): the two contradict each other.

``gpucheck preflight`` compares the UUIDs of all ranks and names those that share a GPU.

Fix: start one process per GPU (``torchrun --nproc-per-node`` at most the number of GPUs), call
set_device before the first collective, and use the same CUDA_VISIBLE_DEVICES for all ranks of a
node.
""",
    title=say("two ranks use the same GPU"),
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=4,
        fix=say(
            "Start one process for each GPU. Let either the launcher bind each process to its own "
            "GPU, or the program choose it by LOCAL_RANK, not both."
        ),
    ),
)


@NCCL_DUPLICATE_GPU.check
def check_nccl_duplicate_gpu(tests: SelfTests, nccl: NcclControl) -> Judgement | None:
    """Look at what NCCL said in a self-test."""
    if tests.results is None:
        return None
    found = nccl.duplicate()
    if found is None:
        return NotApplicable(say("no self-test found two ranks on one GPU"))
    path, (first_rank, other_rank), device = found
    return Hit(
        headline=say(
            "Ranks {one} and {other} use the same GPU (CUDA device {device}), which NCCL refuses",
            one=first_rank,
            other=other_rank,
            device=device,
        ),
        evidence=(f"{path}.detail",),
        fixes=(
            Fix(
                text=say(
                    "Start one process for each GPU, give all ranks of a machine the same "
                    "CUDA_VISIBLE_DEVICES, and choose the GPU before the first collective: {code}.",
                    code='torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))',
                ),
                verify="gpucheck selftest --tests all-reduce",
            ),
        ),
    )


NCCL_INFINIBAND = Rule(
    "nccl-infiniband",
    page="""\
InfiniBand or RoCE fails under NCCL: verbs errors, a port that is down, GID, locked memory.

NCCL talks to the adapters through the verbs library. A wrong GID index on RoCE, a low limit on
locked memory, a missing nvidia_peermem module, PCIe ACS, or a bad cable shows only when data flows.

Symptoms: "NET/IB : Got completion from peer ... with error 12", "Call to ibv_modify_qp failed",
"Got async event : port error", "ibv_reg_mr failed: Cannot allocate memory".

Status 12 is a timeout: the other side did not answer (routing, GID, switch). Status 4 is a local
protection error: registration of GPU memory (peermem, ACS). "NET/IB : No device found" alone is
fine: NCCL then uses sockets.

When it is reported: gpucheck reports this when a self-test over NCCL fails and NCCL's messages name
InfiniBand or RoCE as the cause.

It warns if NCCL_IB_HCA names an adapter by its whole name and none of its ports is active now. If
this machine has a single RDMA port, it gets a note when the kernel's log shows that the port had a
link and lost it. Any other port without a link may be one that nobody uses. The state of now
decides, and the log only says when the link was lost.

``gpucheck preflight`` names a host on which a port is down, or slower, that is up at its full rate
on most others: a warning, and an error if a collective fails as well. It warns if a port counts
errors of the link during the run, such as link_downed or symbol_error. It also names ranks that
pass only with NCCL_IB_DISABLE=1.

Fix: check ``ibv_devinfo`` on all nodes (state PORT_ACTIVE), ``ulimit -l`` (unlimited), ``lsmod |
grep peermem``, and on RoCE that NCCL_IB_GID_INDEX is the index of the RoCE v2 address
(``show_gids``). NCCL_IB_DISABLE=1 shows whether InfiniBand is at fault: if the job then runs, it
is.
""",
    title=say("InfiniBand or RoCE fails under NCCL"),
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight", "text"),
    named_by=("nccl",),
    preflight=InPreflight(
        fix=say("Look at the ports of the host that is named: their state should be PORT_ACTIVE."),
        commands=("ibv_devinfo", "ibstat"),
        passes_without=("NCCL_IB_DISABLE",),
    ),
)

_ADAPTERS, _OFF = "NCCL_IB_HCA", "NCCL_IB_DISABLE"
_YES = "1"
_ACTIVE, _DOWN = "ACTIVE", "DOWN"
_LOOK = ("ibv_devinfo", "ip -brief link")
_STATES = say(
    "Look at the port: DOWN means that it has no link (cable, transceiver, port of the switch), "
    "INIT that no subnet manager has set it up."
)


@NCCL_INFINIBAND.check
def check_nccl_infiniband(
    environment: Environment, network: Network, log: KernelLog, gpus: Gpus
) -> Judgement | None:
    """Look at the ports that the job is told to use, or at the only one."""
    ports = network.rdma_ports or []
    if not ports or environment.get(_OFF) == _YES or not _has_gpu(gpus):
        return None
    names = Names.of(environment.get(_ADAPTERS) or "")
    bad = _named_and_not_active(ports, names)
    if bad:
        return _named(bad, ports, log)
    if len(ports) == 1 and ports[0].state == _DOWN and not environment.get(_ADAPTERS):
        return _only(ports[0], log)
    return None


def _has_gpu(gpus: Gpus) -> bool:
    try:
        return gpus.present()
    except UnknownFactError:
        return False


def _named_and_not_active(ports: list[RdmaPort], names: Names) -> list[int]:
    """Return a port of each adapter that is named and of which no named port is active."""
    of_adapter: dict[str, list[int]] = {}
    for at, port in enumerate(ports):
        if port.adapter and names.name_port(port.adapter, port.port):
            of_adapter.setdefault(port.adapter, []).append(at)
    return [
        places[0]
        for places in of_adapter.values()
        if all(ports[at].state not in (_ACTIVE, None) for at in places)
    ]


def _named(bad: list[int], ports: list[RdmaPort], log: KernelLog) -> Hit:
    first, more = ports[bad[0]], len(bad) - 1
    headline = say(
        "{variable} names {adapter}, whose port {port} is not active: {state}",
        variable=_ADAPTERS,
        adapter=first.adapter,
        port=first.port,
        state=first.state,
    )
    if more:
        headline = say_many(
            more,
            "{headline}; the same is true of {count} more adapter",
            "{headline}; the same is true of {count} more adapters",
            headline=headline,
        )
    lost, when = _lost(first, log)
    return Hit(
        headline=with_age(headline, lost) if lost else headline,
        evidence=(
            f"environment.variables.{_ADAPTERS}",
            *(f"network.rdma_ports.{at}.state" for at in bad),
            *when,
        ),
        fixes=(
            Fix(text=_STATES, commands=_LOOK),
            Fix(
                text=say(
                    "If the job is to do without this adapter, take it out of {variable}.",
                    variable=_ADAPTERS,
                )
            ),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.LIKELY,
    )


def _only(port: RdmaPort, log: KernelLog) -> Hit | None:
    """Report the only port if it had a link since the boot; else it may never have been used."""
    lost, when = _lost(port, log)
    if not when:
        return None
    headline = say(
        "The only RDMA port of this machine, {port} of {adapter}, has lost its link",
        port=port.port,
        adapter=port.adapter,
    )
    return Hit(
        headline=with_age(headline, lost) if lost else headline,
        evidence=("network.rdma_ports.0.state", *when),
        fixes=(Fix(text=_STATES, commands=_LOOK),),
        severity=Severity.INFO,
        confidence=Confidence.POSSIBLE,
    )


def _lost(port: RdmaPort, log: KernelLog) -> tuple[float | None, tuple[str, ...]]:
    """Return how long ago the port lost its link, and the fact; only where it had one before."""
    for at, link in enumerate(log.lost_links or ()):
        if link.was_up and link.interface in (port.interfaces or ()):
            return link.seconds_ago, (f"kernel_log.lost_links.{at}.interface",)
    return None, ()


NCCL_NETWORK_INTERFACE = Rule(
    "nccl-network-interface",
    page="""\
NCCL or Gloo uses a network interface that does not reach the other nodes.

NCCL chooses an interface by itself. It may choose Docker's bridge, a VPN, the loopback interface,
or one that a firewall blocks. NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME choose another. If a node
has no interface of that name, it is left without any.

Symptoms: "Connect to 172.17.0.9<40001> failed : Connection refused", "No route to host", "Bootstrap
: no socket interface found", Gloo's "Unable to find address for: eth0" or "connectFullMesh failed".

A problem with the port of the rendezvous itself is reported as rendezvous-failed.

When it is reported: gpucheck reports this when a self-test over NCCL or Gloo fails and the printed
messages point to the interface. It warns if every interface that NCCL_SOCKET_IFNAME or
GLOO_SOCKET_IFNAME names is down now. An interface that neither names is not looked at.

``gpucheck preflight`` reports nodes that reached its own store and cannot connect to each other
afterwards. If one of two hosts does not reach a port of the other, it names both addresses. It does
not say whether a firewall, a route or a switch between them is the cause.

Fix: set the variable on every node to the interface that leads to the other nodes (``ip route get
ADDRESS`` shows it), open the ports between the nodes, and run containers with the host's network.
""",
    title=say("NCCL or Gloo cannot connect over the network interface that it uses"),
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight", "text"),
    named_by=("nccl", "gloo"),
    preflight=InPreflight(
        is_of_ways=True,
        exit_class=4,
        title=say("hosts that do not connect to each other"),
        fix=say(
            "Name the interface that leads to the other nodes, on every node. Open the ports "
            "between the nodes, and run containers with the host's network."
        ),
        commands=(
            "ip -brief address",
            "export NCCL_SOCKET_IFNAME=INTERFACE GLOO_SOCKET_IFNAME=INTERFACE",
        ),
    ),
)

_VARIABLES = ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME")
_WITHOUT_LINK = ("down", "lowerlayerdown")
"""States of an interface without a link of its own or of the one below (Linux, operstates.rst)."""


@NCCL_NETWORK_INTERFACE.check
def check_nccl_network_interface(
    environment: Environment, network: Network, log: KernelLog, gpus: Gpus
) -> Judgement | None:
    """Look whether all interfaces that a variable names are down."""
    interfaces = network.interfaces or []
    for variable in _VARIABLES:
        names = Names.of(environment.get(variable) or "")
        places = [at for at, found in enumerate(interfaces) if names.match(found.interface or "")]
        down = places and all(interfaces[at].state in _WITHOUT_LINK for at in places)
        if down and _nccl_network_interface_has_gpu(gpus):
            return _hit(variable, places, network, log)
    return None


def _nccl_network_interface_has_gpu(gpus: Gpus) -> bool:
    try:
        return gpus.present()
    except UnknownFactError:
        return False


def _hit(variable: str, places: list[int], network: Network, log: KernelLog) -> Hit:
    found = [(network.interfaces or [])[at].interface for at in places]
    headline = say_many(
        len(found),
        "{variable} names {interfaces}, which is down",
        "{variable} names {interfaces}, which are down",
        variable=variable,
        interfaces=listed([str(interface) for interface in found]),
    )
    lost = [
        (at, link)
        for at, link in enumerate(log.lost_links or ())
        if link.was_up and link.interface in found
    ]
    ages = [link.seconds_ago for _at, link in lost if link.seconds_ago is not None]
    return Hit(
        headline=with_age(headline, min(ages)) if ages else headline,
        evidence=(
            f"environment.variables.{variable}",
            *(f"network.interfaces.{at}.state" for at in places),
            *(f"kernel_log.lost_links.{at}.interface" for at, _link in lost),
        ),
        fixes=(
            Fix(
                text=say(
                    "Look at the cable and at the settings of the interface, or name another one "
                    "that leads to the other nodes. The command shows which interfaces are up."
                ),
                commands=("ip -brief address",),
            ),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.LIKELY,
    )


_VARIABLE = "NCCL_P2P_DISABLE"
_NCCL_P2P_BROKEN_LOOK = (
    "sudo dmesg | grep -i -e IO_PAGE_FAULT -e DMAR",
    "sudo lspci -vvv | grep ACSCtl",
)

NCCL_P2P_BROKEN = Rule(
    "nccl-p2p-broken",
    page="""\
Peer-to-peer copies between GPUs hang or corrupt data; NCCL_P2P_DISABLE=1 avoids this.

The GPUs of a machine exchange data directly over PCIe or NVLink. An IOMMU or PCIe ACS may redirect
these transfers, and a driver may offer them on boards that do not support them. NCCL then hangs
right after its initialisation, or transfers wrong bytes without any error.

Symptoms: all GPUs at 100 % and no progress after "Init COMPLETE"; a tensor that changes when it is
moved from one GPU to another; "AMD-Vi: Event logged [IO_PAGE_FAULT" or "DMAR" faults in dmesg.

When it is reported: a self-test has shown one of two things.
- A copy from one GPU to another is wrong, and the same values are right when they are copied
  through the CPU.
- A collective that hangs or gives a wrong result passes with NCCL_P2P_DISABLE=1 and fails again
  without it (only "likely" if no time was left for the last run).

``gpucheck preflight`` reports the same for the smallest group of ranks that fails, and names the
host.

Fix: disable the IOMMU in the BIOS or start the kernel with ``iommu=pt`` (a virtual machine needs
settings of its hypervisor), disable ACS on the PCIe bridges, and update the driver. Until then use
NCCL_P2P_DISABLE=1 for NCCL; the variable does not affect copies with ``tensor.to``.
""",
    title=say("peer-to-peer between GPUs hangs or corrupts data"),
    severity=Severity.ERROR,
    family="cluster",
    suppressed_by=("gpu-fallen-off-bus", "gpu-hardware-fault", "fabric-manager-down"),
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        fix=say(
            "Look for what redirects the transfers between GPUs: an IOMMU that translates, or PCIe "
            "ACS on a bridge."
        ),
        commands=_NCCL_P2P_BROKEN_LOOK,
        passes_without=(_VARIABLE,),
    ),
)

_COLLECTIVES = ("all-reduce",)
_CAUSE = Fix(
    text=say(
        "To repair it, look for what redirects the transfers: an IOMMU that translates (start the "
        "kernel with iommu=pt, or switch the IOMMU off in the BIOS), or PCIe ACS on a bridge "
        "(SrcValid+ in the output; in a virtual machine, its host must change this). The commands "
        "show both."
    ),
    commands=_NCCL_P2P_BROKEN_LOOK,
    verify="gpucheck selftest --tests peer-copy,all-reduce --level standard",
)


@NCCL_P2P_BROKEN.check
def check_nccl_p2p_broken(
    tests: SelfTests, says: SelfTestSays, nccl: NcclControl
) -> Judgement | None:
    """Look for copies that only work through the CPU, or collectives that need P2P off."""
    if tests.results is None:
        return None
    copies = [
        numbered_result
        for numbered_result in says.failed_with("wrong-value")
        if numbered_result[1].data.get("staged_is_right") is True
        and numbered_result[1].data.get("direct") is True
    ]
    if copies:
        return Hit(
            headline=say("Copies between GPUs arrive wrong: {detail}", detail=copies[0][1].detail),
            evidence=tuple(f"{path}.detail" for path, _result in copies[:6]),
            fixes=(_CAUSE, _for_now(say("Until then, for NCCL only; tensor.to() stays wrong."))),
        )
    passing = [control for control in nccl.passed_without() if _VARIABLE in control.variables]
    if passing:
        return _nccl_p2p_broken_hit(passing)
    return says.fine("peer-copy", *_COLLECTIVES)


def _nccl_p2p_broken_hit(passing: list[PassedWithout]) -> Hit:
    first = passing[0]
    return Hit(
        headline=say(
            "Peer-to-peer transfers between the GPUs do not work: the self-test {test} passes only "
            "with {variable}=1. Without it: {detail}",
            test=first.result.name,
            variable=_VARIABLE,
            detail=first.result.detail,
        ),
        evidence=tuple(
            fact
            for control in passing[:3]
            for fact in (f"{control.path}.detail", f"{control.path}.data.control")
        ),
        fixes=(_for_now(_AROUND), _CAUSE),
        confidence=Confidence.CERTAIN if first.again else Confidence.LIKELY,
    )


_AROUND = say(
    "Work around it: switch peer-to-peer off for NCCL, which then is slower. The other fix "
    "(gpucheck -v) looks for the cause."
)


def _for_now(text: str) -> Fix:
    return Fix(
        text=text,
        commands=(f"export {_VARIABLE}=1",),
        verify=f"{_VARIABLE}=1 gpucheck selftest --tests all-reduce",
    )


NCCL_TIMEOUT = Rule(
    "nccl-timeout",
    page="""\
An NCCL collective did not finish in time, and no more specific cause is visible.

All ranks must enter the same collective. If one of them hangs, dies, computes much longer than the
others, or calls another collective, the rest wait until the watchdog ends the job.

Symptoms: "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2, OpType=ALLREDUCE, ...)
ran for 1800328 milliseconds before timing out", on every rank except the one that caused it.

When it is reported: a more specific cause is reported instead if it shows: a network or InfiniBand
error, a rank that died, or ranks that call different collectives. A self-test over NCCL that no
rank finishes in time also gets this name if neither NCCL's messages nor a run without one of its
transports shows more.

``gpucheck preflight`` reports this for two ranks, or nodes, that never finish a collective with
each other while each finishes one with others. If it cannot name anybody, it ends with exit status
3.

Fix: find the rank that did not arrive (TORCH_NCCL_TRACE_BUFFER_SIZE=20000 with
TORCH_NCCL_DUMP_ON_TIMEOUT=1 writes what each rank was doing; py-spy dump --pid shows its stack). If
one rank prepares data or writes a checkpoint while the others wait, raise the timeout of
init_process_group, or let all ranks wait at a barrier of a CPU group (gloo).
""",
    title=say("a collective timed out"),
    severity=Severity.ERROR,
    family="cluster",
    suppressed_by=(
        "gpu-fallen-off-bus",
        "gpu-hardware-fault",
        "fabric-manager-down",
        "host-out-of-memory",
        "shm-too-small",
        "nccl-p2p-broken",
        "nccl-transport-broken",
        "nccl-infiniband",
        "nccl-network-interface",
        "nccl-version-mismatch",
    ),
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=3,
        fix=say("Run it again with more time and NCCL's own log, to see what the ranks wait for."),
        commands=("NCCL_DEBUG=INFO gpucheck preflight --timeout 600",),
        of_links=("connect", "hang"),
    ),
)


@NCCL_TIMEOUT.check
def check_nccl_timeout(ranks: SelfTestRanks) -> Hit | None:
    """Look for a collective of a self-test that no rank has left."""
    return ranks.timeout()


NCCL_TRANSPORT_BROKEN = Rule(
    "nccl-transport-broken",
    page="""\
One of NCCL's transports (NVLink SHARP, cuMem, shared memory, a protocol) fails here.

NCCL chooses among several ways to move data. If a driver, the limits of a container or the fabric
breaks one of them, the job runs as soon as this one is turned off.

Symptoms: "transport/nvls.cc ... NCCL WARN Cuda failure", "Failed to bind NVLink SHARP (NVLS)
Multicast memory", cuMem calls that fail, or a job that runs only with NCCL_NVLS_ENABLE=0,
NCCL_CUMEM_ENABLE=0, NCCL_SHM_DISABLE=1 or NCCL_PROTO=Simple.

Peer-to-peer has its own page: nccl-p2p-broken. A full /dev/shm is reported as shm-too-small, a
Fabric Manager that is not running as fabric-manager-down.

When it is reported: a collective of the self-tests fails, passes with one of these variables, and
fails again without it (only "likely" if no time was left for the last run).

``gpucheck preflight`` reports the same for the smallest group of ranks that fails, and names the
host.

Fix: set the one variable that helps until you have updated the driver, the Fabric Manager (same
release as the driver) and NCCL.
""",
    title=say("a transport of NCCL fails on this machine"),
    severity=Severity.ERROR,
    family="cluster",
    suppressed_by=(
        "fabric-manager-down",
        "shm-too-small",
        "gpu-fallen-off-bus",
        "gpu-hardware-fault",
    ),
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        fix=say(
            "Update the driver, on NVSwitch machines the Fabric Manager to the same release, and "
            "torch with its NCCL."
        ),
        of_links=("error",),
        passes_without=(
            "NCCL_NVLS_ENABLE",
            "NCCL_CUMEM_ENABLE",
            "NCCL_SHM_DISABLE",
            "NCCL_PROTO",
            "gloo",
        ),
    ),
)

_TRANSPORTS = {
    "NCCL_SHM_DISABLE": say("shared memory"),
    "NCCL_NVLS_ENABLE": "NVLink SHARP (NVLS)",
    "NCCL_CUMEM_ENABLE": say("memory mapped by cuMem"),
}


@NCCL_TRANSPORT_BROKEN.check
def check_nccl_transport_broken(
    tests: SelfTests, says: SelfTestSays, nccl: NcclControl
) -> Judgement | None:
    """Look for a collective that passes without one of NCCL's transports."""
    if tests.results is None:
        return None
    for control in nccl.passed_without():
        name = next((name for name in _TRANSPORTS if name in control.variables), None)
        if name is None:
            continue
        variables = settings(control.variables)
        again = run_tests(control.result.name)
        return Hit(
            headline=say(
                "NCCL's transport over {transport} fails here: the self-test {test} passes only "
                "with {variables}: {detail}",
                transport=_TRANSPORTS[name],
                test=control.result.name,
                variables=variables,
                detail=control.result.detail,
            ),
            evidence=(f"{control.path}.detail", f"{control.path}.data.control"),
            fixes=(
                Fix(
                    text=say("Do without this transport for now."),
                    commands=(f"export {variables}",),
                    verify=f"{variables} {again}",
                ),
                Fix(
                    text=say(
                        "To repair it, update the driver, on NVSwitch machines the Fabric Manager "
                        "to the same release, and torch with its NCCL; then try without the "
                        "variable."
                    ),
                    verify=again,
                ),
            ),
            confidence=Confidence.CERTAIN if control.again else Confidence.LIKELY,
        )
    return says.fine("all-reduce")
