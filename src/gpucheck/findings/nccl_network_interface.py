"""NCCL or Gloo uses a network interface that does not reach the other nodes.

NCCL chooses an interface by itself. It may choose Docker's bridge, a VPN, the loopback interface,
or one that a firewall blocks. NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME choose another. If a node
has no interface of that name, it is left without any.

Symptoms: "Connect to 172.17.0.9<40001> failed : Connection refused", "No route to host", "Bootstrap
: no socket interface found", Gloo's "Unable to find address for: eth0" or "connectFullMesh failed".

A problem with the port of the rendezvous itself is reported as rendezvous-failed.

When it is reported: gpucheck reports this when a self-test over NCCL or Gloo fails and the printed
messages point to the interface.

``gpucheck preflight`` reports nodes that reached its own store and cannot connect to each other
afterwards. If one of two hosts does not reach a port of the other, it names both addresses. It does
not say whether a firewall, a route or a switch between them is the cause.

Fix: set the variable on every node to the interface that leads to the other nodes (``ip route get
ADDRESS`` shows it), open the ports between the nodes, and run containers with the host's network.
"""

from gpucheck.facts.claims import Severity
from gpucheck.findings.form import InPreflight, Rule
from gpucheck.language import say

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
