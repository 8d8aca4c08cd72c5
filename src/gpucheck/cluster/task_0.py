"""What can be said of a task 0 that is not heard, and what nobody knows of it.

The other tasks can meet without task 0 only once it has named a task to meet at. Before that each
one is alone, and it names no host (decision 0017). What those that met can say is a pure function
of what each one saw.
"""

import socket
import threading
from collections.abc import Mapping

import msgspec

from gpucheck.cluster.diagnose.naming import words_of
from gpucheck.cluster.launcher import TaskPlace
from gpucheck.cluster.model import unpack
from gpucheck.cluster.store.attempt import Reason
from gpucheck.cluster.store.client import ConnectError
from gpucheck.cluster.store.task_messages import Attendees, Seen, Survivor, Verdict
from gpucheck.facts.claims import Confidence
from gpucheck.facts.preflight import Culprit, Preflight, RankOutcome
from gpucheck.findings.ranks import RANK_MISSING
from gpucheck.language import say, say_many

_SECONDS = 2.0
"""Seconds for a resolver. Chosen: one that works answers in less; the run waits for it."""
_SILENT: tuple[Reason, ...] = ("timed-out", "no-route")
"""Nothing at all came back: host, program and network are equally possible."""
_STRONGEST: tuple[Seen, ...] = (
    "ended", "refused", "stopped", "uninterruptible", "says-nothing", "unreachable"
)  # fmt: skip
"""What proves more, first: the kernel of the host, then its network, then silence. One of them
decides, so that another order would let a weak sight of one task hide a strong one of another."""
_CERTAIN: tuple[Seen, ...] = ("ended", "refused", "stopped")
"""What only an end or a signal can cause; the others may pass."""
_OF_THE_KERNEL: tuple[Seen, ...] = ("ended", "stopped", "uninterruptible")
"""What the kernel of its own machine says."""
_INCONCLUSIVE = 3  # exit status: docs/architecture.md, 1.2
_ACQUITS: tuple[Seen, ...] = ("answers", "runs")


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


class Loss(msgspec.Struct, frozen=True, kw_only=True):
    """The loss of task 0: which host it was on, who was there before, and who has met since."""

    host: str
    attendees: Attendees
    met: Mapping[int, Survivor]
    after: float
    """Seconds from the start of the run to the last sign of task 0."""
    tasks: int = 0
    """All tasks that the job should have; 0 means that all of them came."""


class LossConclusion(msgspec.Struct, frozen=True):
    """Whether the host of task 0 is named, how surely, and why or why not in a sentence."""

    confidence: Confidence | None
    sentence: str


def conclude(loss: Loss) -> LossConclusion:
    """Judge the loss of task 0.

    From another machine a single task cannot tell a dead task 0 from a connection of its own that
    is cut. So a host is named only if most tasks met, or all that were not on that host. If most
    of them do not even reach the host, most of all hosts must have met: otherwise these may be the
    ones that are cut off. The kernel of its own machine is not mistaken: one task there is enough.
    """
    sights = {survivor.seen for survivor in loss.met.values()}
    if "answers" in sights:
        return LossConclusion(None, _stopped_answering(loss, _still_answers(loss)))
    if "runs" in sights:
        why = say("its process runs and does not answer; its host may be too busy")
        return LossConclusion(None, _stopped_answering(loss, why))
    strongest = next((sight for sight in _STRONGEST if sight in sights), None)
    if strongest is None or not (_says_its_kernel(loss, strongest) or _are_enough(loss)):
        return LossConclusion(None, _too_few(loss))
    if _most_reach_nothing(loss) and not _are_most_hosts(loss):
        return LossConclusion(None, _cut_off(loss))
    sure = Confidence.CERTAIN if strongest in _CERTAIN else Confidence.LIKELY
    return LossConclusion(sure, _stopped_answering(loss, _sight(strongest, loss)))


def is_about_task_0(verdict: Verdict, loss: Loss) -> bool:
    """Whether a task can believe the verdict of a deputy: it accuses the host of task 0 or nobody.

    ``loss`` is what this task knows itself. If task 0 still answers it, nobody is to be accused.
    """
    if not verdict.culprits:
        return verdict.exit == _INCONCLUSIVE
    if any(survivor.seen in _ACQUITS for survivor in loss.met.values()):
        return False
    return all(
        culprit.slug == RANK_MISSING.slug and {culprit.host, *culprit.hosts} == {loss.host}
        for culprit in verdict.culprits
    )


def _says_its_kernel(loss: Loss, seen: Seen) -> bool:
    """Whether this was seen on the host of task 0 itself, by its kernel."""
    return seen in _OF_THE_KERNEL and any(
        survivor.seen == seen and survivor.host == loss.host for survivor in loss.met.values()
    )


def _are_enough(loss: Loss) -> bool:
    """Whether most of the tasks that were there have met, or all that were elsewhere."""
    attendees = loss.attendees
    elsewhere = sum(1 for survivor in loss.met.values() if survivor.host != loss.host)
    are_all = elsewhere and elsewhere >= attendees.tasks - attendees.beside
    return (
        bool(are_all)
        or 2 * len(loss.met) > attendees.tasks
        or len(loss.met) >= attendees.tasks - 1 > 0
    )


def _most_reach_nothing(loss: Loss) -> bool:
    """Whether most who met do not reach the host, so that a single other voice decides nothing."""
    return 2 * sum(1 for survivor in loss.met.values() if survivor.seen == "unreachable") > len(
        loss.met
    )


def _are_most_hosts(loss: Loss) -> bool:
    """Whether most of all hosts met; tasks that never came may be on the side of task 0."""
    attendees = loss.attendees
    late = max(0, loss.tasks - attendees.tasks)
    hosts = attendees.hosts + -(-late * attendees.hosts // max(1, attendees.tasks))
    return 2 * len(_other_hosts(loss)) > hosts


def _other_hosts(loss: Loss) -> list[str]:
    return sorted({survivor.host for survivor in loss.met.values()} - {loss.host})


def _stopped_answering(loss: Loss, what: str) -> str:
    return say_many(
        len(loss.met),
        "task 0 on host {host} stopped answering after {seconds:.0f} s, while {count} other task "
        "was connected: {what}",
        "task 0 on host {host} stopped answering after {seconds:.0f} s, while {count:,} other "
        "tasks were connected: {what}",
        host=loss.host,
        seconds=loss.after,
        what=what,
    )


def _sight(seen: Seen, loss: Loss) -> str:
    """Return in words what was seen of it."""
    if seen == "ended":
        return say("its process has ended without a verdict")
    if seen == "refused":
        return say("its host refuses connections to its port, so its process has ended")
    if seen == "stopped":
        return say("its process is stopped, by a signal or a debugger")
    if seen == "uninterruptible":
        return say("its process waits in the kernel for a disk, a file server or a driver")
    if seen == "says-nothing":
        return say("its host accepts connections, but its process does not answer")
    return say_many(
        len(_other_hosts(loss)),
        "{count} other host does not reach its host any more",
        "{count} other hosts do not reach its host any more",
    )


def _still_answers(loss: Loss) -> str:
    count = sum(1 for survivor in loss.met.values() if survivor.seen == "answers")
    return say_many(
        count,
        "it still answers {count} of them, so their connections broke rather than task 0",
        "it still answers {count:,} of them, so their connections broke rather than task 0",
    )


def _too_few(loss: Loss) -> str:
    return say_many(
        len(loss.met),
        "task 0 on host {host} does not answer: it died, or this task is cut off from it. {count} "
        "of {all:,} tasks met without it ({tasks}), too few to tell",
        "task 0 on host {host} does not answer: it died, or these tasks are cut off from it. "
        "{count:,} of {all:,} tasks met without it ({tasks}), too few to tell",
        host=loss.host,
        all=loss.attendees.tasks,
        tasks=words_of(sorted(loss.met)),
    )


def _cut_off(loss: Loss) -> str:
    return say_many(
        len(_other_hosts(loss)),
        "task 0 on host {host} does not answer: it died, or {names} is cut off from it. {count} of "
        "{all} hosts met without it, too few to tell",
        "task 0 on host {host} does not answer: it died, or {names} are cut off from it. {count} "
        "of {all} hosts met without it, too few to tell",
        host=loss.host,
        names=words_of(_other_hosts(loss)),
        all=loss.attendees.hosts,
    )


def section(loss: Loss, found: LossConclusion) -> Preflight:
    """Return what is known; launcher, time limits and the like are for the caller to add."""
    ranks = unpack(loss.attendees.ranks)
    culprits = []
    if found.confidence is not None:
        culprits.append(
            Culprit(
                slug=RANK_MISSING.slug,
                confidence=found.confidence,
                rank=ranks[0] if ranks else None,
                ranks=ranks,
                host=loss.host,
                hosts=(loss.host,),
                evidence=found.sentence,
            )
        )
    outcomes = [
        *(RankOutcome(rank=rank, task=0, host=loss.host, status="lost") for rank in ranks),
        *(
            RankOutcome(rank=rank, task=task, host=survivor.host, device=device, status="stopped")
            for task, survivor in loss.met.items()
            for rank, device in survivor.ranks.items()
        ),
    ]
    return Preflight(
        world_size=loss.attendees.world_size or None,
        nodes=loss.attendees.hosts,
        culprits=culprits,
        ranks=sorted(outcomes, key=lambda outcome: outcome.rank),
        steps=[],
        finished=False,
        stopped_because=say("task 0 was lost before it had judged the job"),
        sources={"*": say("gpucheck preflight")},
    )
