"""What a task says that has no store: what is known of task 0, and what it does not know.

The other tasks can meet without task 0 only once it has named a task to meet at. Before that each
one is alone, and it names no host (decision 0017).
"""

import socket
import threading

from gpucheck.cluster.launchers.entrance import TaskPlace
from gpucheck.cluster.store.attempt import Reason
from gpucheck.cluster.store.client import ConnectError
from gpucheck.language import say

_SECONDS = 2.0
_SILENT: tuple[Reason, ...] = ("timed-out", "no-route")


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


def never_met(error: ConnectError, place: TaskPlace) -> str:
    """Return what a task says that never found the store of task 0.

    A refusal shows that somebody answers for the address, and no more: task 0 may have ended with a
    sentence of its own, for example because all of its ports were taken.
    """
    if error.reason == "refused" and error.was_there:
        return say(
            "task 0 on host {host} is gone: {why}. Its store was open before, and connections to "
            "its address are refused by now: task 0 has ended before this task could register. "
            "This task cannot tell why, so it names no host.",
            host=host_of_task_0(place),
            why=error.args[0],
        )
    if error.reason == "refused":
        return say(
            "task 0 on host {host} was not reached: {why}. Connections to its address are refused: "
            "task 0 has not started, has ended or could not listen, or a firewall refuses them. "
            "This task cannot tell which, so it names no host.",
            host=host_of_task_0(place),
            why=error.args[0],
        )
    if error.reason in _SILENT:
        return say(
            "task 0 on host {host} was not reached: {why}. The host may be down, task 0 may not "
            "be running, or the network between the hosts may be cut. This task cannot tell "
            "which, so it names no host.",
            host=host_of_task_0(place),
            why=error.args[0],
        )
    if error.reason == "no-store":
        return say(
            "task 0 on host {host} was not reached: {why}. Its address accepts connections, so "
            "task 0 may be stopped or busy, or another program listens there. This task cannot "
            "tell which, so it names no host.",
            host=host_of_task_0(place),
            why=error.args[0],
        )
    return str(error) if not error.args else error.args[0]


def lost_early(place: TaskPlace, address: str, port: int, why: str) -> str:
    """Return what a task says that lost task 0 before it knew where to meet the others."""
    return say(
        "task 0 on host {host} ({address}, port {port}) was lost before it had named a task to "
        "meet at: {why}. Task 0 may have died, or the network between the hosts may be cut. This "
        "task cannot tell which, so it names no host.",
        host=host_of_task_0(place),
        address=address,
        port=port,
        why=why,
    )


def mtu(host: str, address: str) -> str:
    """Return what a task says whose large messages to task 0, or from it, get lost."""
    return say(
        "small messages to and from task 0 on host {host} ({address}) pass, and one of 16 KiB does "
        "not: large packets get lost on the way. Compare the MTU of the network interfaces and "
        "switches (ping -M do -s 8972 {address}, then -s 1472).",
        host=host,
        address=address,
    )


def host_of_task_0(place: TaskPlace) -> str:
    """Return the launcher's name of the host of task 0, or where task 0 is looked for."""
    return next(iter(place.hosts), place.master_host)
