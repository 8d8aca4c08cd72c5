"""The ranks of a job do not find each other: store, port, address or name.

Before any GPU is used, the ranks meet at a store on MASTER_ADDR:MASTER_PORT.

Symptoms: "Address already in use" (EADDRINUSE), "The client socket has timed out after 300000ms
while trying to connect to (10.0.0.1, 29500)", "RendezvousConnectionError", "gai error: -3", "1/2
clients joined".

Causes: the port is taken, a name resolves to the wrong address, a firewall blocks the connection,
or a rank never starts.

A failure later on, between nodes that have already met, is nccl-network-interface.

``gpucheck preflight`` names the ranks that reached its own store, but not the store of their group.
If one host does not reach another, it reports nccl-network-interface instead.

Fix: choose a free port on the master (``ss -ltn``) and the address of the master by which the other
nodes reach it (not 127.0.0.1, nor a name that only its own host knows). Use the same values on all
nodes, start all nodes, open the port in the firewall, and start one launcher per node.
"""

from gpucheck.facts.claims import Severity
from gpucheck.findings.form import InPreflight, Rule
from gpucheck.language import say

RULE = Rule(
    __name__,
    title=say("the ranks do not find each other"),
    severity=Severity.ERROR,
    family="cluster",
    seen_in=("pre-flight", "text"),
    preflight=InPreflight(
        exit_class=4,
        fix=say(
            "Give every rank an address of the master that the other nodes reach (not 127.0.0.1), "
            "and a port that is free on the master and open in the firewall."
        ),
        commands=("ss -ltn",),
        of_ranks=("store",),
        of_links=("store",),
    ),
)
