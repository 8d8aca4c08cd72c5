"""What NCCL fails at between nodes: InfiniBand, interfaces, time."""

from gpucheck.derived import Gpus
from gpucheck.derived.job_network import Names
from gpucheck.derived.surroundings import Surroundings
from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import KernelLog
from gpucheck.facts.system import Environment, Network, RdmaPort
from gpucheck.findings.form import Hit, InPreflight, Judgement, Rule
from gpucheck.findings.ranks import STOPS_RANKS
from gpucheck.findings.witnesses.kernel_log import how_long_ago, with_age
from gpucheck.findings.witnesses.selftest_says import SelfTestRanks
from gpucheck.language import listed, say, say_many

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
    observes=True,
    preflight=InPreflight(
        fix=say("Look at the ports of the host that is named: their state should be PORT_ACTIVE."),
        commands=("ibv_devinfo", "ibstat"),
        passes_without=("NCCL_IB_DISABLE",),
    ),
)

_ADAPTERS, _OFF = "NCCL_IB_HCA", "NCCL_IB_DISABLE"
_YES = "1"
_ACTIVE, _DOWN, _INIT = "ACTIVE", "DOWN", "INIT"
_LOOK = ("ibv_devinfo", "ip -brief link")


def _look_at(port: RdmaPort) -> Fix:
    """Return what a state asks for.

    On Ethernet a port is DOWN as well while its interface is off (``mlx5_query_port_roce`` of
    Linux, drivers/infiniband/hw/mlx5/main.c). Only InfiniBand has a subnet manager, and INIT.
    """
    text = say(
        "Look at the cable, the transceiver and the switch port. On Ethernet (RoCE) the interface "
        "may only be off: switch it on (as root: ip link set {interface} up).",
        interface=next(iter(port.interfaces or ()), "INTERFACE"),
    )
    if port.state == _INIT:
        text = say("The link is up, but no subnet manager has set up the port: look at that one.")
    return Fix(text=text, commands=_LOOK)


def _without(value: str, adapter: str | None) -> str:
    """Return a list of whole names of adapters without one; "" if nothing is left."""
    prefix = "=" if value.startswith("=") else ""
    names = [name for name in value.removeprefix("=").split(",") if name.strip()]
    kept = [name for name in names if name.partition(":")[0].strip() != adapter]
    return prefix + ",".join(kept) if kept else ""


@NCCL_INFINIBAND.check
def check_nccl_infiniband(
    environment: Environment, network: Network, log: KernelLog, gpus: Gpus, around: Surroundings
) -> Judgement | None:
    """Look at the ports that the job is told to use, or at the only one."""
    ports = network.rdma_ports or []
    if not ports or environment.get(_OFF) == _YES or not _has_gpu(gpus):
        return None
    names = Names.of(environment.get(_ADAPTERS) or "")
    bad = _named_and_not_active(ports, names)
    if bad:
        return _named(bad, ports, log, environment.get(_ADAPTERS) or "", around)
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


def _named(
    bad: list[int], ports: list[RdmaPort], log: KernelLog, value: str, around: Surroundings
) -> Hit:
    first, more = ports[bad[0]], len(bad) - 1
    kept = _without(value, first.adapter) if not more else ""
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
        headline=_with_loss(headline, lost) if lost else headline,
        evidence=(
            f"environment.variables.{_ADAPTERS}",
            *(f"network.rdma_ports.{at}.state" for at in bad),
            *when,
        ),
        fixes=(
            _look_at(first),
            Fix(
                text=say(
                    "If the job can do without this adapter, take it out of {variable}.",
                    variable=_ADAPTERS,
                ),
                commands=around.set(_ADAPTERS, kept) if kept else (),
            ),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.LIKELY,
    )


def _with_loss(headline: str, seconds: float) -> str:
    """Add to what is down now when its link was lost."""
    ago = how_long_ago(seconds)
    return say("{headline}; the link was lost {ago}", headline=headline, ago=ago)


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
        fixes=(_look_at(port),),
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
    observes=True,
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
        headline=_with_loss(headline, min(ages)) if ages else headline,
        evidence=(
            f"environment.variables.{variable}",
            *(f"network.interfaces.{at}.state" for at in places),
            *(f"kernel_log.lost_links.{at}.interface" for at, _link in lost),
        ),
        fixes=(
            Fix(
                text=say(
                    "Look at the cable and at the settings of the interface, or name another one "
                    "that leads to the other nodes. The command below shows which interfaces are "
                    "up."
                ),
                commands=("ip -brief address",),
            ),
        ),
        severity=Severity.WARNING,
        confidence=Confidence.LIKELY,
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
    suppressed_by=STOPS_RANKS,
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
