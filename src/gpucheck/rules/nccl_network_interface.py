"""NCCL or Gloo uses a network interface over which the other nodes cannot be reached.

NCCL chooses an interface by itself: it may take docker's bridge, a VPN, the loopback interface,
or one that a firewall closes. NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME choose another, and a
name that does not exist on one of the nodes leaves it with none.

What one sees: "Connect to 172.17.0.9<40001> failed : Connection refused", "No route to host",
"Bootstrap : no socket interface found", Gloo's "Unable to find address for: eth0" or
"connectFullMesh failed".

The port of the rendezvous itself is another matter: see rendezvous-failed.

gpucheck says it when a self-test goes wrong over NCCL or Gloo and what was printed names it.

``gpucheck preflight`` says so of nodes that have met at its store and do not connect afterwards;
of two hosts one of which does not reach a port of the other it tells both addresses, and leaves
open whether a firewall, a route or a switch is between them.

Cure: name the interface that leads to the other nodes on every node (``ip route get ADDRESS``
tells it), open the ports between the nodes, and run containers with the host's network.
"""

from gpucheck.findings import Judgement, Severity
from gpucheck.rules import Rule
from gpucheck.views.preflight_says import PreflightSays

RULE = Rule(
    title="NCCL or Gloo cannot connect over the network interface that it uses",
    severity=Severity.ERROR,
    family="cluster",
    preflight_class=4,
)


@RULE.check
def check(preflight: PreflightSays) -> Judgement:
    """Nothing that is read from a machine shows it; a pre-flight or a program's output does."""
    return preflight.fine()
