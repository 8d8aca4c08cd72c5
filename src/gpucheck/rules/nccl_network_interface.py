"""NCCL or Gloo uses a network interface over which the other nodes cannot be reached.

NCCL chooses an interface by itself: it may take docker's bridge, a VPN, the loopback interface,
or one that a firewall closes. NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME choose another, and a
name that does not exist on one of the nodes leaves it with none.

What one sees: "Connect to 172.17.0.9<40001> failed : Connection refused", "No route to host",
"Bootstrap : no socket interface found", Gloo's "Unable to find address for: eth0" or
"connectFullMesh failed".

The port of the rendezvous itself is another matter: see rendezvous-failed.

gpucheck says it when a self-test goes wrong over NCCL or Gloo and what was printed names it.

``gpucheck preflight`` says so of nodes that have met at its board and do not connect afterwards;
of two hosts one of which does not reach a port of the other it tells both addresses, and leaves
open whether a firewall, a route or a switch is between them.

Cure: name the interface that leads to the other nodes on every node (``ip route get ADDRESS``
tells it), open the ports between the nodes, and run containers with the host's network.
"""

from gpucheck.findings import Severity
from gpucheck.rules import InPreflight, Rule

RULE = Rule(
    __name__,
    title="NCCL or Gloo cannot connect over the network interface that it uses",
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight", "text"),
    named_by=("nccl", "gloo"),
    preflight=InPreflight(
        is_of_ways=True,
        exit_class=4,
        title="hosts that do not connect with each other",
        fix="Name the interface that leads to the other nodes, on every node, and open the "
        "ports between the nodes; run containers with the host's network.",
        commands=(
            "ip -brief address",
            "export NCCL_SOCKET_IFNAME=INTERFACE GLOO_SOCKET_IFNAME=INTERFACE",
        ),
    ),
)
