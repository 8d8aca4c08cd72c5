"""NCCL or Gloo uses a network interface that does not reach the other nodes.

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
"""

from gpucheck.derived import Gpus
from gpucheck.derived.job_network import Names
from gpucheck.facts import UnknownFactError
from gpucheck.facts.claims import Confidence, Fix, Severity
from gpucheck.facts.driver import KernelLog
from gpucheck.facts.system import Environment, Network
from gpucheck.findings.form import Hit, InPreflight, Judgement, Rule
from gpucheck.findings.witnesses.kernel_log import with_age
from gpucheck.language import listed, say, say_many

RULE = Rule(
    __name__,
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


@RULE.check
def check(
    environment: Environment, network: Network, log: KernelLog, gpus: Gpus
) -> Judgement | None:
    """Look whether all interfaces that a variable names are down."""
    interfaces = network.interfaces or []
    for variable in _VARIABLES:
        names = Names.of(environment.get(variable) or "")
        places = [at for at, found in enumerate(interfaces) if names.match(found.interface or "")]
        down = places and all(interfaces[at].state in _WITHOUT_LINK for at in places)
        if down and _has_gpu(gpus):
            return _hit(variable, places, network, log)
    return None


def _has_gpu(gpus: Gpus) -> bool:
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
