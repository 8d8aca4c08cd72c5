"""Names of nodes that a launcher gives and that this machine may not be able to look up.

Slurm's NodeName is a name of Slurm's own. Slurm itself connects to the NodeAddr, which may be
another name or an address, so a cluster can work although no name server knows its NodeNames.
"""

import socket
import threading

from gpucheck.cluster.launchers.entrance import TaskPlace
from gpucheck.language import say

_SECONDS = 2.0


def notices(entrance: TaskPlace, *, master_is_given: bool) -> tuple[str, ...]:
    """Return what task 0 should report about the name by which the others look for it.

    Args:
        entrance: what the launcher says.
        master_is_given: whether ``--master`` names task 0 instead.
    """
    asked = entrance.launcher == "slurm" and entrance.task == 0 and (entrance.nodes or 1) > 1
    if not asked or master_is_given or _resolves(entrance.master_host):
        return ()
    return (
        say(
            "The other tasks look for this one by Slurm's name of the node, {host}, which does not "
            "resolve here. If they do not arrive, give --master the NodeAddr that scontrol show "
            "node {host} prints.",
            host=entrance.master_host,
        ),
    )


def advice(why: str, host: str) -> str:
    """Return why another task did not find task 0, and what a name of Slurm's needs."""
    return say(
        "{why}; that is Slurm's name of the node: give --master the NodeAddr that scontrol show "
        "node {host} prints",
        why=why,
        host=host,
    )


def _resolves(name: str) -> bool:
    """Whether a name has an address; a resolver that hangs is abandoned and proves nothing."""
    unknown: list[bool] = []

    def look() -> None:
        try:
            socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            unknown.append(True)

    resolver = threading.Thread(target=look, name="resolver", daemon=True)
    resolver.start()
    resolver.join(_SECONDS)
    return not unknown
