"""What a task says that has no store: what is known of task 0, and what it does not know.

The other tasks can meet without task 0 only once it has named a task to meet at. Before that each
one is alone, and it names no host (decision 0017).
"""

from gpucheck.cluster.launchers.entrance import TaskPlace
from gpucheck.cluster.store.attempt import Reason
from gpucheck.cluster.store.client import ConnectError
from gpucheck.language import say

_SILENT: tuple[Reason, ...] = ("timed-out", "no-route")


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
