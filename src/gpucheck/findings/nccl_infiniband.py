"""InfiniBand or RoCE fails under NCCL: verbs errors, a port that is down, GID, locked memory.

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
"""

from gpucheck.derived import Gpus
from gpucheck.derived.job_network import Names
from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import KernelLog
from gpucheck.facts.system import Environment, Network, RdmaPort
from gpucheck.findings.form import Hit, InPreflight, Judgement, Rule
from gpucheck.findings.witnesses.kernel_log import with_age
from gpucheck.language import say, say_many

RULE = Rule(
    __name__,
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


@RULE.check
def check(
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
