"""The ranks of a job do not find one another: store, port, address or name.

Before any GPU is used the ranks meet at a store on MASTER_ADDR:MASTER_PORT. The port may be
taken, a name may lead to the wrong address, a firewall may stand between, or a rank never starts.

What one sees: "Address already in use" (EADDRINUSE), "The client socket has timed out after
300000ms while trying to connect to (10.0.0.1, 29500)", "RendezvousConnectionError", "gai error:
-3", "1/2 clients joined".

What fails later, between nodes that have already met, is nccl-network-interface.

``gpucheck preflight`` names the ranks that came to its board and not to the store of their group,
unless it was a host that another one did not reach: that is nccl-network-interface.

Cure: a port that is free on the master (``ss -ltn``), the master's address as the other nodes
reach it (not 127.0.0.1, nor a name that only its own host knows), the same values on all nodes,
all nodes started, the port open in the firewall; start one launcher per node.
"""

from gpucheck.findings import Severity
from gpucheck.rules import InPreflight, Rule

RULE = Rule(
    __name__,
    title="the ranks do not find one another",
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=4,
        fix="Give every rank an address and a port of the master that the other nodes reach "
        "(not 127.0.0.1), free on the master and open in the firewall.",
        commands=("ss -ltn",),
        of_ranks=("store",),
        of_links=("store",),
    ),
)
